"""Expected utilities against sacreBLEU's own sentence scores, pair by pair."""

import dataclasses
import math
import random
from typing import Any

import numpy as np
import pytest
import sacrebleu

from tests import settings
from vaswani_jax.core.config import Config, DataConfig
from vaswani_jax.inference import beam_search, minimum_bayes_risk
from vaswani_jax.inference.results import Hypothesis, Output

TEXTS = [
    "Ein Hund läuft über den Strand.",
    "ein Hund rennt am Strand entlang .",
    "Der Hund",
    "a",
    "",
    "Ein Hund, ein Hund und noch ein Hund laufen (schnell) über „den“ Strand!",
    "  zwei\u00a0Katzen ",
]
EVERY_UTILITY = pytest.mark.parametrize("utility", minimum_bayes_risk.UTILITIES)


def make_settings(**changes: Any) -> Config:
    return settings.small_settings(**{"data.text_form": "detokenized", **changes})


def score(utility: str, text: str, reference: str, data: DataConfig) -> float:
    """Return sacreBLEU's own score of a sentence."""
    lowercase = data.lowercase_scores
    metric: Any = sacrebleu.CHRF(lowercase=lowercase)
    if utility == "bleu":
        tokenizer = "13a" if data.text_form == "detokenized" else "none"
        metric = sacrebleu.BLEU(
            lowercase=lowercase, tokenize=tokenizer, effective_order=True
        )
    return float(metric.sentence_score(text, [reference]).score)


def hypothesis(text: str, score: float = -1.0, num_ids: int = 3) -> Hypothesis:
    return Hypothesis(text, score, (), (Output((5,), (9,) * num_ids, score),))


@EVERY_UTILITY
@pytest.mark.parametrize("text_form", ["detokenized", "tokenized"])
@pytest.mark.parametrize("lowercase", [False, True])
def test_gains_are_the_sentence_scores_of_sacrebleu_to_the_digit(
    utility: str, text_form: str, lowercase: bool
) -> None:
    data = make_settings(
        **{"data.text_form": text_form, "data.lowercase_scores": lowercase}
    ).data
    generator = random.Random(1)
    words = "a b c aa ab ü . , A".split()
    texts = [*TEXTS, *(" ".join(generator.choices(words, k=k)) for k in range(2, 14))]
    utilities = minimum_bayes_risk.pairwise_utilities(
        texts, utility=utility, data=data, locale="de"
    )
    expected = [[score(utility, a, b, data) for b in texts] for a in texts]
    assert utilities.tolist() == expected


@EVERY_UTILITY
def test_the_expected_utility_of_samples_is_the_mean_over_all_of_them(
    utility: str,
) -> None:
    config = make_settings(**{"search.sampling": True})
    texts = [*TEXTS, TEXTS[0], TEXTS[2], TEXTS[0]]
    [ranked] = minimum_bayes_risk.rank_lines(
        ["x"],
        [[hypothesis(text, -float(i)) for i, text in enumerate(texts)]],
        utility=utility,
        data=config.data,
        search=config.search,
    )
    means = [
        sum(score(utility, text, other, config.data) for other in texts) / len(texts)
        for text in texts
    ]
    # Equal samples stay in the order in which they were drawn.
    order = sorted(range(len(texts)), key=lambda i: (-round(means[i], 9), i))
    assert [each.score for each in ranked] == [-float(i) for i in order]
    rank_scores = [each.rank_score for each in ranked]
    np.testing.assert_allclose(rank_scores, [means[i] for i in order], rtol=1e-12)
    assert ranked[0].text != texts[np.argmin(means)]


@EVERY_UTILITY
def test_an_n_best_list_counts_by_probability(utility: str) -> None:
    config = make_settings(**{"search.length_penalty": 0.6})
    lengths, scores = [4, 9, 2], [-0.7, -0.6, -1.5]
    [ranked] = minimum_bayes_risk.rank_lines(
        ["x"],
        [list(map(hypothesis, TEXTS, scores, lengths))],
        utility=utility,
        data=config.data,
        search=config.search,
    )
    # log P is the score times ((5 + |Y|) / 6)^0.6.
    probabilities = [
        math.exp(value * ((5 + length) / 6) ** 0.6)
        for value, length in zip(scores, lengths, strict=True)
    ]
    for each in ranked:
        expected = sum(
            probability * score(utility, each.text, other, config.data)
            for probability, other in zip(probabilities, TEXTS, strict=False)
        )
        assert each.rank_score == pytest.approx(expected / sum(probabilities), rel=1e-6)


def test_agreement_outweighs_the_highest_probability_of_all() -> None:
    config = make_settings()
    texts = ["zwei Katzen", "ein Hund läuft", "ein Hund läuft dort", "ein Hund rennt"]
    candidates = list(map(hypothesis, texts, [-1.0, -1.01, -1.02, -1.03]))
    [ranked] = minimum_bayes_risk.rank_lines(
        ["x"], [candidates], utility="chrf", data=config.data, search=config.search
    )
    assert ranked[0].text == "ein Hund läuft dort"
    assert ranked[-1].text == "zwei Katzen"
    plain = [dataclasses.replace(each, rank_score=None) for each in ranked]
    assert sorted(map(repr, plain)) == sorted(map(repr, candidates))


@EVERY_UTILITY
@pytest.mark.parametrize("sampling", [False, True])
def test_one_candidate_gives_itself_and_equal_ones_their_order(
    utility: str, sampling: bool
) -> None:
    config = make_settings(**{"search.sampling": sampling})
    lines = ["x", "y", "z"]
    empty = Hypothesis("", 0.0, (), ())
    candidates = [[hypothesis("ja", -3.0)], [empty], [hypothesis("gut so")] * 3]
    ranked = minimum_bayes_risk.rank_lines(
        lines, candidates, utility=utility, data=config.data, search=config.search
    )
    for old, new in zip(candidates, ranked, strict=True):
        assert [dataclasses.replace(each, rank_score=None) for each in new] == old
        itself = score(utility, old[0].text, old[0].text, config.data)
        assert new[0].rank_score == pytest.approx(itself)
    assert ranked[0][0].rank_score == pytest.approx(100)
    # A line's order depends on no other line.
    for number, line in enumerate(lines):
        [alone] = minimum_bayes_risk.rank_lines(
            [line],
            [candidates[number]],
            utility=utility,
            data=config.data,
            search=config.search,
        )
        assert alone == ranked[number]


def test_bleu_finds_the_words_of_a_language_without_spaces() -> None:
    config = make_settings(**{"data.target_locale": "zh"})
    texts = ["你好世界和平", "你好世界和", "再见"]
    utilities = minimum_bayes_risk.pairwise_utilities(
        texts, utility="bleu", data=config.data, locale="zh"
    )
    metric = sacrebleu.BLEU(tokenize="zh", effective_order=True)
    assert utilities[1, 0] == metric.sentence_score(texts[1], [texts[0]]).score > 0


def test_the_weights_undo_the_length_penalty_of_either_form() -> None:
    for form in ("paper", "power"):
        changes = {"search.length_penalty_form": form, "search.length_penalty": 1.5}
        search = make_settings(**changes).search
        penalties = [
            float(beam_search.length_penalty(float(length), 1.5, form=form))
            for length in (2, 7)
        ]
        # Two hypotheses of log P -3.
        candidates = [
            hypothesis("a", -3 / penalties[0], 2),
            hypothesis("b", -3 / penalties[1], 7),
        ]
        weights = minimum_bayes_risk.candidate_weights(candidates, search)
        np.testing.assert_allclose(weights, [0.5, 0.5], rtol=1e-6)


def test_an_unknown_gain_is_refused() -> None:
    with pytest.raises(ValueError, match="utility must be chrf or bleu, got 'ter'"):
        minimum_bayes_risk.check_utility("ter")
