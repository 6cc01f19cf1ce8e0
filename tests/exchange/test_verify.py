"""Engines get lines that they have positions for, and the search that is configured."""

import pathlib
import types
from typing import Any
from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests import settings
from vaswani_jax.core import types as core_types
from vaswani_jax.data.prepared import PreparedData
from vaswani_jax.data.vocabulary import Vocabulary
from vaswani_jax.exchange import ctranslate, verify
from vaswani_jax.inference.translator import Translator


@pytest.fixture(scope="module")
def vocabulary() -> Vocabulary:
    return settings.letters_vocabulary()


def test_engines_get_no_line_that_our_search_would_cut(
    vocabulary: Vocabulary, tmp_path: pathlib.Path
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
    params = settings.random_params(small.model, vocab_size=vocabulary.size, seed=3)
    ctranslate.save(
        tmp_path,
        params=params,
        model=small.model,
        spellings=(vocabulary.source.spellings, vocabulary.target.spellings),
        quantization=None,
    )
    engine = verify.ctranslate2_engine(
        tmp_path, vocabulary, search=small.search, compute_type="float32"
    )
    # A subword a word, and an end mark.
    lines = [" ".join("abcdefgh"[:count]) for count in (5, 6, 1)] + ["a " * 30]
    assert verify.find_short_lines(lines, vocabulary, search=small.search) == [0, 2]
    assert len(engine([lines[0], lines[2]])) == 2
    with pytest.raises(RuntimeError, match="position"):
        engine(lines)


@pytest.mark.parametrize(("form", "expected"), [("paper", ""), ("power", "a a a a")])
def test_the_serialized_programs_are_searched_with_the_penalty_of_the_search(
    vocabulary: Vocabulary,
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
    form: str,
    expected: str,
) -> None:
    """ln 0.4 at once or ln 0.15 after four words: -0.92 and -1.14 by the paper's
    penalty of alpha 1, -0.92 and -0.38 by |Y|."""
    word = vocabulary.target.subword_id("\u2581a")
    ends = jnp.full(40, 1e-6).at[0].set(0.4).at[4].set(0.25)

    def decode_step(
        tokens: jax.Array, position: jax.Array, memory: Any, beams: Any
    ) -> tuple[jax.Array, Any]:
        probabilities = jnp.full((*tokens.shape, vocabulary.size), 1e-9)
        end = ends[position]
        probabilities = probabilities.at[..., core_types.EOS_ID].set(end)
        return jnp.log(probabilities.at[..., word].set(1 - end)), beams

    programs = types.SimpleNamespace(
        encode=lambda source: source, decode_step=decode_step, record=None
    )
    monkeypatch.setattr(verify.stablehlo, "load", lambda directory: programs)
    monkeypatch.setattr(
        verify.stablehlo,
        "empty_beams",
        lambda record, *, B, W, T: [jnp.zeros((B, W, T), np.int32)],
    )
    small = settings.small_settings(
        **{"search.length_penalty": 1.0, "search.length_penalty_form": form}
    )
    engine = verify.stablehlo_engine(tmp_path, vocabulary, search=small.search)
    assert engine(["a b"]) == [expected]


@pytest.mark.parametrize(
    "error",
    [
        FileNotFoundError("valid.source.txt is missing"),
        ValueError("valid.source.txt has changed"),
    ],
)
def test_text_that_cannot_be_read_is_a_warning_since_the_export_is_complete(
    vocabulary: Vocabulary,
    caplog: pytest.LogCaptureFixture,
    tmp_path: pathlib.Path,
    error: Exception,
) -> None:
    data = mock.Mock(spec=PreparedData, counts={"valid": {"kept": 10}})
    data.text.side_effect = error
    translator = mock.Mock(
        spec=Translator, config=settings.small_settings(), vocabulary=vocabulary
    )

    def compare(lines: int | None) -> str:
        return verify.compare(
            translator,
            data,
            directory=tmp_path,
            form="bundle",
            quantization=None,
            lines=lines,
        )

    # No line needs no text, hence no warning.
    assert compare(0) == "" and caplog.messages == []
    assert compare(None) == ""
    assert caplog.messages == [f"nothing is compared: {error}"]
