"""What runs an export is asked for what it has positions for."""

import pathlib

import pytest

from tests import settings
from vaswani_jax.data import vocabulary
from vaswani_jax.exchange import ctranslate, engines


@pytest.fixture(scope="module")
def subwords() -> vocabulary.Vocabulary:
    data = settings.small_settings(
        **{"data.byte_fallback": True, "data.vocab_size": 300}
    ).data
    return vocabulary.train(["a b c d e f g h", "hello world again"] * 20, data)


def test_lines_that_we_cut_are_not_for_engines(
    subwords: vocabulary.Vocabulary, tmp_path: pathlib.Path
) -> None:
    pytest.importorskip("ctranslate2", reason="ctranslate2 is not installed: .[export]")
    small = settings.small_settings(
        **{
            "model.positional_encoding": "learned",
            "model.max_positions": 20,
            "model.d_v": 4,
            "search.max_source_tokens": 6,
            "search.max_extra_tokens": 6,
        }
    )
    params = settings.random_params(small.model, vocab_size=subwords.size, seed=3)
    names = [subwords.name(token) for token in range(subwords.size)]
    ctranslate.save(tmp_path, params, small.model, names, quantization=None)
    engine = engines.ctranslate2(
        tmp_path, subwords, small.search, compute_type="float32"
    )
    # A subword a word, and an end mark.
    lines = [" ".join("abcdefgh"[:count]) for count in (5, 6, 1)] + ["a " * 30]
    assert engines.whole(lines, subwords, small.search) == [0, 2]
    assert len(engine([lines[0], lines[2]])) == 2
    with pytest.raises(RuntimeError, match="position"):
        engine(lines)
