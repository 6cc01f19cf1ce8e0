"""Lines in, lines out: the number, the order and the content of each."""

from typing import Any

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest

from tests import settings
from tests.inference import echo
from vaswani_jax.core import parallel, side_by_side, types
from vaswani_jax.data.vocabulary import Vocabulary
from vaswani_jax.inference import generate
from vaswani_jax.inference.line_translator import LineTranslator


@pytest.fixture(scope="module")
def vocabulary() -> Vocabulary:
    return settings.letters_vocabulary()


@hypothesis.settings(
    suppress_health_check=[hypothesis.HealthCheck.function_scoped_fixture]
)
@hypothesis.given(lines=st.lists(st.text(max_size=30), max_size=12))
def test_any_lines_come_back_in_number_and_order(
    vocabulary: Vocabulary, monkeypatch: pytest.MonkeyPatch, lines: list[str]
) -> None:
    translator = echo.echo_translator(vocabulary, monkeypatch)
    outputs = translator.translate(None, lines)
    assert len(outputs) == len(lines)
    assert all("\n" not in text and "\r" not in text for text in outputs)
    for line, output in zip(lines, outputs, strict=True):
        # What repeats its source gives the line, up to spaces and cuts.
        expected = vocabulary.decode(vocabulary.encode([line])[0])
        assert output.replace(" ", "") == expected.replace(" ", "")


def test_long_line_is_translated_whole_with_a_warning(
    vocabulary: Vocabulary,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    translator = echo.echo_translator(vocabulary, monkeypatch, max_source_tokens=8)
    line = " ".join("abcdefgh" * 5)
    assert translator.translate(None, ["a b", line]) == ["a b", line]
    [record] = caplog.records
    assert record.levelname == "WARNING"
    assert "1 line over config.search.max_source_tokens=8" in record.message


def _same_texts(
    vocabulary: Vocabulary, monkeypatch: pytest.MonkeyPatch, **overrides: object
) -> list[list[tuple[str, float]]]:
    """Return the texts and scores of two lines, of which three are asked.

    The search finds each source (with and without an end mark, one text), and it with
    its subwords reversed.
    """
    small = settings.small_settings(
        **{f"search.{key}": value for key, value in overrides.items()}
    )
    translator = LineTranslator(small, vocabulary, n_best=3)

    def find(params: object, rows: generate.Rows) -> types.Hypotheses:
        source = np.asarray(rows.source)
        unended = np.where(source == types.EOS_ID, types.PAD_ID, source)
        backwards = np.flip(unended, axis=-1)
        tokens = np.stack([source, unended, backwards, backwards], axis=2)
        scores = np.broadcast_to(np.float32([-1, -2, -3, -4]), tokens.shape[:-1])
        return types.Hypotheses(tokens, scores)

    monkeypatch.setattr(translator, "search", find)
    return [
        [(hypothesis.text, hypothesis.score) for hypothesis in n_best]
        for n_best in translator.hypotheses((None,), ["a b c", "a a", "a b c d a b"])
    ]


def test_hypotheses_of_one_text_are_one_with_the_best_score(
    vocabulary: Vocabulary, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The third line is two pieces.
    assert _same_texts(vocabulary, monkeypatch, max_source_tokens=5) == [
        [("a b c", -1.0), ("c b a", -3.0)],
        [("a a", -1.0)],
        [("a b c d a b", -2.0), ("d c b a b a", -6.0)],
    ]


def test_samples_of_one_text_stay_as_they_are_drawn(
    vocabulary: Vocabulary, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = _same_texts(vocabulary, monkeypatch, sampling=True)
    assert drawn[1] == [("a a", -1.0), ("a a", -2.0), ("a a", -3.0)]


def test_few_shapes_are_compiled(
    vocabulary: Vocabulary, monkeypatch: pytest.MonkeyPatch
) -> None:
    translator = echo.echo_translator(
        vocabulary, monkeypatch, max_source_tokens=64, source_tokens_per_batch=256
    )
    shapes = set()

    repeat_source = translator.search

    def record(params: object, rows: generate.Rows) -> types.Hypotheses:
        shapes.add(rows.source.shape)
        return repeat_source(params, rows)

    monkeypatch.setattr(translator, "search", record)
    generator = np.random.default_rng(0)
    lines = [" ".join("a" * generator.integers(1, 60)) for _ in range(500)]
    translator.translate(None, lines)
    # Lengths 8, 16, 24, 32, 48, 64; rows full, or the end of a group.
    assert len(shapes) <= 12
    assert all(shape[1] * shape[2] <= 256 or shape[1] == 1 for shape in shapes)
    # `shapes` knows them, for all devices together.
    beforehand = {(-(-rows // 8), length) for rows, length in translator.shapes(lines)}
    assert beforehand == {shape[1:] for shape in shapes}


@pytest.mark.parametrize(("tokens", "expected"), [(2048, 3), (1024, 2), (256, 1)])
def test_cores_of_a_cpu_search_different_batches_of_no_more_tokens(
    vocabulary: Vocabulary, monkeypatch: pytest.MonkeyPatch, tokens: int, expected: int
) -> None:
    monkeypatch.setattr(side_by_side, "small_programs_at_a_time", lambda: 3)
    compute, limits = side_by_side.compute, []

    def record_limit(*args: Any, limit: int) -> Any:
        limits.append(limit)
        return compute(*args, limit=limit)

    monkeypatch.setattr(side_by_side, "compute", record_limit)
    translator = echo.echo_translator(
        vocabulary, monkeypatch, source_tokens_per_batch=tokens
    )
    lines = [" ".join("abcdefgh"[k % 8] * (k % 15 + 1)) for k in range(600)]
    assert translator.translate(None, lines) == lines
    assert limits == [expected]


def test_real_model_translates_odd_lines(vocabulary: Vocabulary) -> None:
    small = settings.small_settings()
    params = settings.random_params(small.model, vocab_size=vocabulary.size, seed=3)
    translator = LineTranslator(small, vocabulary)
    lines = ["", "   ", "a b c", "\u2028", "漢字 \x0b", "a b c", "x" * 40]
    outputs = translator.translate(parallel.replicate(params), lines)
    assert len(outputs) == len(lines)
    assert outputs[0] == outputs[1] == ""
    assert outputs[2] == outputs[5] != ""


def test_result_does_not_depend_on_the_other_lines(
    vocabulary: Vocabulary,
) -> None:
    small = settings.small_settings()
    params = settings.random_params(small.model, vocab_size=vocabulary.size, seed=4)
    translator = LineTranslator(small, vocabulary)
    shared = parallel.replicate(params)
    lines = ["a b c", "hello", "world again hello", "d e f g h a b"]
    together = translator.translate(shared, lines)
    alone = [translator.translate(shared, [line])[0] for line in lines]
    assert together == alone


def test_output_is_at_most_input_length_plus_extra(
    vocabulary: Vocabulary,
) -> None:
    small = settings.small_settings(**{"search.max_extra_tokens": 3})
    params = settings.random_params(small.model, vocab_size=vocabulary.size, seed=5)
    search = parallel.over_rows(settings.search_of(small, vocab_size=vocabulary.size))
    source = np.zeros((8, 6), np.int32)
    for row in range(8):
        source[row, : row % 6] = 7
        source[row, row % 6] = types.EOS_ID
    rows = parallel.split_rows(source, num_microbatches=1)
    hypotheses = search(parallel.replicate(params), rows)
    tokens = parallel.join_rows(hypotheses.tokens[:, :, 0])
    lengths = (tokens != types.PAD_ID).sum(axis=1)
    allowed = (source != types.PAD_ID).sum(axis=1) + 3
    assert (lengths <= allowed).all()
    assert (lengths == allowed).any(), "the limit is never reached: nothing is tested"
