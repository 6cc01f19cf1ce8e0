"""The BLEU of an evaluation is that of all lines, each with its own reference."""

import random
from typing import Any

import numpy as np
import pytest
import sacrebleu

from tests import settings
from vaswani_jax.core import types
from vaswani_jax.data import vocabulary
from vaswani_jax.evaluation import validation
from vaswani_jax.inference import generate
from vaswani_jax.inference.line_translator import LineTranslator

WORDS = "ba ko ri tu sen mal do fi gra lo-pe zu-ri".split()
LINES, LONG, EMPTY = 23, 4, 7
# What a score of each kind is, by the library that defines it.
SACREBLEU = {
    ("detokenized", False): {},
    ("detokenized", True): {"lowercase": True},
    ("tokenized", False): {"tokenize": "none", "smooth_method": "none", "force": True},
}


def random_text() -> list[str]:
    """Lines of a few words; one that is too long for the search, one that is empty."""
    generator = random.Random(1)
    made = [" ".join(generator.choices(WORDS, k=3 + n % 6)) for n in range(LINES)]
    made[LONG] = " ".join(WORDS * 4)
    made[EMPTY] = ""
    return made


def imperfect(outputs: list[str]) -> list[str]:
    """References from which each kind of score finds the outputs differently far."""
    references = list(outputs)
    references[0::5] = [line.title() for line in references[0::5]]
    references[1::5] = [f"{line}." for line in references[1::5]]
    references[2::5] = [" ".join(line.split()[::-1]) for line in references[2::5]]
    return references


def dictionary(seed: int) -> np.ndarray:
    """Which subword stands for which; the marks stay."""
    subwords = np.random.default_rng(seed).permutation(np.arange(types.UNK_ID + 1, 40))
    return np.concatenate([np.arange(types.UNK_ID + 1), subwords])


@pytest.fixture
def translator(monkeypatch: pytest.MonkeyPatch) -> LineTranslator:
    """Its model translates subword by subword, the parameters being the dictionary."""
    small = settings.small_settings(
        **{"search.max_source_tokens": 24, "search.source_tokens_per_batch": 64}
    )
    subwords = vocabulary.train([" ".join(WORDS)] * 20, small.data)
    made = LineTranslator(small, subwords)

    def look_up(params: Any, rows: generate.Rows) -> types.Hypotheses:
        found = params[0][rows.source]
        return types.Hypotheses(found[:, :, None], np.zeros((*found.shape[:2], 1)))

    monkeypatch.setattr(made, "search", look_up)
    return made


@pytest.mark.parametrize(("text_form", "lowercase"), SACREBLEU)
def test_bleu_evaluator_scores_every_line_with_its_reference(
    translator: LineTranslator,
    text_form: str,
    lowercase: bool,
    caplog: pytest.LogCaptureFixture,
) -> None:
    source, params = random_text(), dictionary(8)
    outputs = [translator.translate(params, [line])[0] for line in source]
    references = imperfect(outputs)
    assert any("-" in line for line in outputs), "split compounds would not be seen"

    def score(outputs: list[str], references: list[str]) -> float:
        kind = SACREBLEU[text_form, lowercase]
        return sacrebleu.corpus_bleu(outputs, [references], **kind).score

    data = settings.small_settings(
        **{"data.text_form": text_form, "data.lowercase_scores": lowercase}
    ).data
    evaluate = validation.bleu_evaluator(
        data, translator, (source, references), name="held_out"
    )
    right = score(outputs, references)
    assert evaluate(params) == {"held_out/bleu": pytest.approx(right, rel=1e-9)}
    warning = caplog.messages[-1]
    assert warning.startswith("1 lines over config.search.max_source_tokens=24")
    # What another order, a line less or the source itself would have given.
    wrong = [
        score(outputs[::-1], references),
        score(outputs[1:], references[1:]),
        score(outputs[:-1], references[:-1]),
        score(source, references),
    ]
    assert all(abs(value - right) > 0.1 for value in wrong)


def test_bleu_evaluator_translates_with_the_parameters_it_is_given(
    translator: LineTranslator,
) -> None:
    source = random_text()
    references = translator.translate(dictionary(1), source)
    evaluate = validation.bleu_evaluator(
        settings.small_settings().data, translator, (source, references), name="valid"
    )
    scores = [evaluate(dictionary(seed))["valid/bleu"] for seed in (1, 2, 1)]
    assert scores == [pytest.approx(100), pytest.approx(0, abs=10), scores[0]]


@pytest.mark.parametrize(
    "locale", ["zh", "zh_CN", "zh-CN", "zh-Hans-CN", "zho", "cmn_CN", "yue"]
)
def test_either_form_of_a_locale_is_scored_as_its_language(locale: str) -> None:
    data = settings.small_settings(**{"data.target_locale": locale}).data
    first = validation.score(data, ["我今天去北京了"], ["我今天去上海了"])[0]
    assert "|tok:zh|" in first.signature and first.value > 10


@pytest.mark.parametrize("locale", ["de_AT", "de-AT", "DE", "deu", "ger_AT"])
def test_score_splits_the_compounds_of_german_of_any_country(locale: str) -> None:
    data = settings.small_settings(
        **{"data.text_form": "tokenized", "data.target_locale": locale}
    ).data
    output, reference = "wir gehen heute den Nord-Weg", "wir gehen heute den Ost-Weg"
    _, found = validation.score(data, [output], [reference])
    whole, split = (
        sacrebleu.corpus_bleu(
            [output.replace("-", hyphen)],
            [[reference.replace("-", hyphen)]],
            **SACREBLEU["tokenized", False],
        ).score
        for hyphen in ("-", " ##AT##-##AT## ")
    )
    assert found.value == pytest.approx(split, rel=1e-9)
    assert abs(whole - split) > 1
