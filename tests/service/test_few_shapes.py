"""A translator of few shapes gives the model's results, and compiles ahead."""

import contextlib
import dataclasses
from collections.abc import Iterator

import jax
import numpy as np
import pytest

from tests import settings
from tests.service import small_models
from vaswani_jax.inference import generate
from vaswani_jax.inference.results import Hypothesis
from vaswani_jax.inference.translator import Translator
from vaswani_jax.service.engine import Engine
from vaswani_jax.service.few_shapes import FewShapesTranslator

LINES = ["a b c", "", "d e f g", "h a a", "b", "a b c d e f g h " * 4]


@pytest.fixture(scope="module")
def served() -> FewShapesTranslator:
    """A model whose programs are compiled."""
    with small_models.five_programs():
        engine = Engine(
            small_models.translator(), limits=small_models.LIMITS, name="tiny"
        )
    engine.warm()
    return engine.translator


@contextlib.contextmanager
def no_compilation() -> Iterator[None]:
    """Fail if anything is compiled within."""
    compiled = []

    def listen(event: str, seconds: float, **details: str) -> None:
        if "backend_compile" in event:
            compiled.append(event)

    jax.monitoring.register_event_duration_secs_listener(listen)
    try:
        yield
    finally:
        jax.monitoring.unregister_event_duration_listener(listen)
    assert not compiled


def assert_close(
    results: list[list[Hypothesis]], expected: list[list[Hypothesis]]
) -> None:
    assert len(results) == len(expected)
    for n_best, expected_n_best in zip(results, expected, strict=True):
        texts, expected_texts = (
            [hypothesis.text for hypothesis in hypotheses]
            for hypotheses in (n_best, expected_n_best)
        )
        assert texts == expected_texts
        np.testing.assert_allclose(
            [hypothesis.score for hypothesis in n_best],
            [hypothesis.score for hypothesis in expected_n_best],
            rtol=1e-5,
        )


@pytest.mark.parametrize("alpha, n_best", [(0.6, 1), (1.5, 3)])
def test_translations_are_those_of_the_model(
    served: FewShapesTranslator, alpha: float, n_best: int
) -> None:
    options = {"length_penalty": alpha, "n_best": n_best}
    with no_compilation():
        results = served.hypotheses(LINES, **options)
    assert len(results[-1][0].outputs) > 1  # It was cut.
    assert_close(results, small_models.translator().hypotheses(LINES, **options))


def test_prefixes_scores_and_attention_are_those_of_the_model(
    served: FewShapesTranslator,
) -> None:
    model, lines = small_models.translator(), LINES[:3]
    prefixes = ["g h", "", "b"]
    with no_compilation():
        results = served.hypotheses(lines, prefixes=prefixes)
        scores = served.score(lines, lines[::-1])
        pairs = served.attend(lines)
    assert_close(results, model.hypotheses(lines, prefixes=prefixes))
    for score, expected in zip(scores, model.score(lines, lines[::-1]), strict=True):
        assert score.tokens == expected.tokens
        np.testing.assert_allclose(score.log_probs, expected.log_probs, rtol=1e-4)
    for pair, attended in zip(pairs, model.attend(lines), strict=True):
        assert (pair.text, pair.ids) == (attended.text, attended.ids)
        for name in ("encoder", "decoder", "memory"):
            np.testing.assert_allclose(
                getattr(pair.attention, name),
                getattr(attended.attention, name),
                atol=1e-6,
            )


def test_a_glossary_is_followed_as_by_the_model(served: FewShapesTranslator) -> None:
    """Lines with a prefix, with terms and with both share batches."""
    model = small_models.translator()
    glossary = {"b": "h g", "h": "a"}
    for prefixes in (None, ["c", "", "c", "a", "h g", ""]):
        with no_compilation():
            results = served.hypotheses(LINES, prefixes=prefixes, glossary=glossary)
        expected = model.hypotheses(LINES, prefixes=prefixes, glossary=glossary)
        assert_close(results, expected)
        missing = [n_best[0].missing_phrases for n_best in results]
        assert missing == [n_best[0].missing_phrases for n_best in expected]
        assert "h g" in results[0][0].text and missing[:5] == [()] * 5
        # The prefix has the translation already.
        if prefixes:
            assert results[4][0].text.startswith("h g")


def test_phrases_beyond_the_compiled_shape_are_only_checked(
    served: FewShapesTranslator,
) -> None:
    glossary = {"b": "a " * 17, "c": "d"}
    [found] = served.find_phrases(["c b c"], glossary=glossary)
    assert [bool(phrase.ids) for phrase in found] == [True, False, True]
    with no_compilation():
        [[best]] = served.hypotheses(["c b c"], glossary=glossary)
    assert best.text.split().count("d") >= 2
    assert best.missing_phrases == (("a " * 17).strip(),)


def test_a_beam_size_that_is_not_compiled_is_refused(
    served: FewShapesTranslator,
) -> None:
    with pytest.raises(ValueError, match="beam_size must be one of 3, got 2"):
        served.hypotheses(["a"], beam_size=2)
    with pytest.raises(ValueError, match="n_best=4 is more than"):
        served.hypotheses(["a"], n_best=4)


def test_attention_and_pages_search_as_requests_do_by_default() -> None:
    limits = dataclasses.replace(small_models.LIMITS, beam_sizes=(2, 4))
    first = FewShapesTranslator(small_models.translator(), limits=limits)
    assert small_models.translator().config.search.beam_size not in limits.beam_sizes
    assert first.config.search.beam_size == 2
    assert first.line_translator(2, 1) is first.line_translator(2, 1)


@pytest.mark.parametrize("min_tokens", [1, 99])
def test_the_longest_output_of_the_search_can_be_scored(min_tokens: int) -> None:
    tiny = small_models.translator()
    search = dataclasses.replace(tiny.config.search, min_tokens=min_tokens)
    assert search.max_source_tokens + search.max_extra_tokens < 99
    translator = FewShapesTranslator(
        Translator(
            dataclasses.replace(tiny.config, search=search),
            tiny.vocabulary,
            members=tiny.members,
        ),
        limits=small_models.LIMITS,
    )
    longest = generate.longest_output(
        search.max_source_tokens, 0, search=search, models=[tiny.config.model]
    )
    assert translator.shapes.pair_length(longest) == longest


def test_a_model_that_draws_its_outputs_is_refused() -> None:
    small = settings.small_settings(**{"search.sampling": True})
    sampler = Translator(small, small_models.vocabulary(), members=[])
    limits = dataclasses.replace(small_models.LIMITS, n_best=1)
    with pytest.raises(ValueError, match=r"config\.search\.sampling=True draws"):
        FewShapesTranslator(sampler, limits=limits)
