"""Reranked lists against scores written out, and against a translator's own scores."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from tests import settings
from vaswani_jax.checkpoints.store import Checkpoint
from vaswani_jax.core import types
from vaswani_jax.inference.ensemble import Member
from vaswani_jax.inference.reranking import Reranking, rerank
from vaswani_jax.inference.results import Hypothesis, Output
from vaswani_jax.inference.scoring import Scored
from vaswani_jax.inference.translator import Translator

ALPHA = 0.6
FORTH: Any = {"data.source_locale": "en", "data.target_locale": "de"}
BACK: Any = {"data.source_locale": "de", "data.target_locale": "en"}
LINES = ["a b c", "", "d"]


class Rated(Translator):
    """Gives each target token minus the number of source tokens and the end mark."""

    def __init__(self, scale: float = 1.0, **changes: Any) -> None:
        small = settings.small_settings(**{"search.length_penalty": ALPHA, **changes})
        member = Member(small.model, Checkpoint(0, {}, {}))
        super().__init__(small, settings.letters_vocabulary(), members=[member])
        self.scale, self.pairs = scale, 0

    def score_ids(
        self, pairs: Any, *, layers: Mapping[str, Sequence[int]] | None = None
    ) -> list[Scored]:
        self.pairs += len(pairs)
        return [
            Scored(np.full(len(target), -self.scale * (len(source) + 1)), {})
            for source, target in pairs
        ]


def n_best_lists() -> list[list[Hypothesis]]:
    vocabulary = settings.letters_vocabulary()

    def hypothesis(text: str, score: float) -> Hypothesis:
        [ids] = vocabulary.encode([text])
        return Hypothesis(text, score, (), (Output((5,), (*ids, types.EOS_ID), score),))

    return [
        [hypothesis("a", -1.0), hypothesis("a b c d", -1.5), hypothesis("a b", -1.6)],
        [Hypothesis("", 0.0, (), ())],
        [hypothesis("d e", -2.0), hypothesis("d", -2.1), hypothesis("d e", -2.2)],
    ]


def texts_of(hypotheses: Sequence[Sequence[Hypothesis]]) -> list[list[str]]:
    return [[each.text for each in n_best] for n_best in hypotheses]


def scores_of(n_best: Sequence[Hypothesis]) -> list[float | None]:
    return [each.rank_score for each in n_best]


def penalty(num_tokens: int) -> float:
    return ((5 + num_tokens) / 6) ** ALPHA


def test_a_length_reward_counts_subwords_without_the_end_mark() -> None:
    ranked = Rated(**FORTH).rerank(LINES, n_best_lists(), length_reward=0.5)
    assert texts_of(ranked)[0] == ["a b c d", "a", "a b"]
    assert scores_of(ranked[0]) == pytest.approx([0.5, -0.5, -0.6])
    assert ranked[1] == [Hypothesis("", 0.0, (), (), rank_score=0.0)]
    shorter = Rated(**FORTH).rerank(LINES, n_best_lists(), length_reward=-0.5)
    assert texts_of(shorter)[2] == ["d", "d e", "d e"]


def test_a_forward_model_adds_its_normalised_score() -> None:
    forward = Rated(scale=0.1, **FORTH)
    ranked = Rated(**FORTH).rerank(
        LINES, n_best_lists(), forward=forward, forward_weight=2.0
    )
    # Three source tokens and the end mark; each target has an end mark, too.
    expected = {
        text: score - 2.0 * 0.4 * length / penalty(length)
        for text, score, length in (
            ("a", -1, 2),
            ("a b c d", -1.5, 5),
            ("a b", -1.6, 3),
        )
    }
    assert texts_of(ranked)[0] == sorted(expected, key=lambda text: -expected[text])
    assert scores_of(ranked[0]) == pytest.approx(
        sorted(expected.values(), reverse=True), rel=1e-6
    )
    # The text that occurs twice is scored once, the empty line never.
    assert forward.pairs == 5


def test_a_reverse_model_adds_its_score_of_the_source() -> None:
    reverse = Rated(scale=0.1, **BACK)
    ranked = Rated(**FORTH).rerank(
        LINES, n_best_lists(), reverse=reverse, reverse_weight=0.5
    )
    # Three tokens of X and its end mark, each for the tokens of Y and its end mark.
    expected = {
        text: score - 0.5 * 0.1 * length * 4 / penalty(4)
        for text, score, length in (
            ("a", -1, 2),
            ("a b c d", -1.5, 5),
            ("a b", -1.6, 3),
        )
    }
    assert texts_of(ranked)[0] == ["a", "a b", "a b c d"]
    assert scores_of(ranked[0]) == pytest.approx(
        sorted(expected.values(), reverse=True), rel=1e-6
    )


def test_weights_of_zero_change_no_order_and_no_score() -> None:
    ranked = Rated(**FORTH).rerank(
        LINES,
        n_best_lists(),
        forward=Rated(**FORTH),
        forward_weight=0.0,
        reverse=Rated(**BACK),
        reverse_weight=0.0,
    )
    for old, new in zip(n_best_lists(), ranked, strict=True):
        assert [dataclasses.replace(each, rank_score=None) for each in new] == old
        assert scores_of(new) == [each.score for each in old]


def test_a_line_is_reranked_as_it_is_alone() -> None:
    translator = Rated(**FORTH)
    options: Any = {"forward": Rated(scale=0.3, **FORTH)}
    together = translator.rerank(LINES, n_best_lists(), **options)
    for line, old, new in zip(LINES, n_best_lists(), together, strict=True):
        assert translator.rerank([line], [old], **options) == [new]
        plain = [dataclasses.replace(each, rank_score=None) for each in new]
        assert sorted(map(repr, plain)) == sorted(map(repr, old))


def test_a_line_that_is_too_long_for_a_model_keeps_its_order(
    caplog: pytest.LogCaptureFixture,
) -> None:
    short = Rated(
        **{**FORTH, "search.max_source_tokens": 3, "search.max_extra_tokens": 9}
    )
    ranked = Rated(**FORTH).rerank(LINES, n_best_lists(), forward=short)
    assert ranked[0] == n_best_lists()[0]
    assert texts_of(ranked)[2] == ["d", "d e", "d e"]
    [record] = caplog.records
    assert "1 line is too long for a model that reranks" in record.message


def test_parameters_that_are_no_numbers_are_named() -> None:
    with pytest.raises(ValueError, match="'a' has no probability"):
        Rated(**FORTH).rerank(
            LINES, n_best_lists(), forward=Rated(scale=float("nan"), **FORTH)
        )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"forward": BACK},
            "forward model translates de to en; name a run that translates en",
        ),
        (
            {"reverse": FORTH},
            "reverse model translates en to de; name a run that translates de",
        ),
        ({"reverse": settings.TWO_TARGETS}, "one target language, got de,fr; rerank"),
    ],
)
def test_a_model_of_other_languages_is_refused(
    options: dict[str, Any], message: str
) -> None:
    models: Any = {name: Rated(**changes) for name, changes in options.items()}
    with pytest.raises(ValueError, match=message):
        Rated(**FORTH).rerank(LINES, n_best_lists(), **models)
    with pytest.raises(ValueError, match="one target language, got de,fr; rerank"):
        Reranking(reverse=Rated(**BACK)).check(Rated(**settings.TWO_TARGETS))
    # A region is no other language.
    region = Rated(**{**FORTH, "data.source_locale": "en_GB"})
    Reranking(forward=region).check(Rated(**FORTH))


def translating_to(locales: str) -> Rated:
    tags = ",".join(f"<2{locale}>" for locale in locales.split(","))
    several = {"data.target_locale": locales, "data.user_symbols": tags}
    return Rated(**{**settings.TWO_TARGETS, **several})


def test_a_forward_model_has_the_tags_of_the_lines_in_any_order() -> None:
    sentence = "forward model has the tags <2fr>, <2pt>; name a run that has <2fr>, "
    with pytest.raises(ValueError, match=f"{sentence}<2pt_BR>$"):
        Reranking(forward=translating_to("pt,fr")).check(translating_to("pt_BR,fr"))
    Reranking(forward=translating_to("fr,de")).check(translating_to("de,fr"))


@pytest.mark.parametrize("name", ["forward_weight", "reverse_weight", "length_reward"])
@pytest.mark.parametrize("value", [float("nan"), float("inf"), -1001.0])
def test_a_weight_is_a_number_that_cannot_overflow(name: str, value: float) -> None:
    changes: Any = {name: value}
    with pytest.raises(ValueError, match=f"{name} must be a number from"):
        Reranking(**changes).check(Rated(**FORTH))


def test_samples_are_sorted_whatever_their_order() -> None:
    translator = Rated(**FORTH)
    drawn = [n_best_lists()[0][::-1]]
    ranked = rerank(
        ["a b c"],
        drawn,
        reranking=Reranking(),
        settings=translator.config,
    )
    assert texts_of(ranked) == texts_of(n_best_lists()[:1])


def test_a_reverse_model_scores_no_tag_and_no_language_code() -> None:
    reverse = Rated(scale=0.1, **BACK)
    options: Any = {"reverse": reverse, "reverse_weight": 0.5}
    ranked = [
        Rated(**FORTH, **settings.TAGGED).rerank(
            [prefix + line if line else "" for line in LINES],
            n_best_lists(),
            **options,
        )
        for prefix in ("", ">>deu<< ", "<x> ")
    ]
    assert ranked[0] == ranked[1] == ranked[2]


def test_a_forward_model_scores_no_tag_and_no_code_that_it_lacks() -> None:
    ranked = [
        Rated(**FORTH, **settings.TAGGED).rerank(
            [prefix + line if line else "" for line in LINES],
            n_best_lists(),
            forward=Rated(scale=0.1, **FORTH),
        )
        for prefix in ("", ">>deu<< ", "<x> ", ">>deu<< <x> ")
    ]
    assert ranked[0] == ranked[1] == ranked[2] == ranked[3]


def test_a_forward_model_reads_the_tag_and_the_code_that_it_has() -> None:
    forward = Rated(scale=0.1, **FORTH)
    forward.vocabulary = settings.letters_vocabulary().extend([">>deu<<", "<x>"])
    translator = Rated(**FORTH, **settings.TAGGED)
    lengths = {"a": 2, "a b c d": 5, "a b": 3}
    prefixes = {"": 0, ">>deu<< ": 1, "<x> ": 1, ">>deu<< <x> ": 2}
    for prefix, num_tags in prefixes.items():
        [ranked] = translator.rerank(
            [f"{prefix}a b c"], n_best_lists()[:1], forward=forward
        )
        for each in ranked:
            length = lengths[each.text]
            addition = -0.1 * (num_tags + 4) * length / penalty(length)
            assert each.rank_score == pytest.approx(each.score + addition, rel=1e-6)


@pytest.mark.parametrize("has_model", [True, False])
def test_a_line_without_its_tag_is_named_by_its_number(has_model: bool) -> None:
    translator = Rated(**settings.TWO_TARGETS)
    options: Any = {"forward": translator} if has_model else {"length_reward": 0.5}
    first, _, second = n_best_lists()
    with pytest.raises(ValueError, match=r"^line 2 must begin with a tag .*got 'd'$"):
        translator.rerank(["<2de> a b c", "d"], [first, second], **options)


@pytest.mark.parametrize("side", ["forward", "reverse"])
def test_a_weight_without_its_model_is_refused(side: str) -> None:
    weight: Any = {f"{side}_weight": 0.5}
    with pytest.raises(ValueError, match=f"{side}_weight=0.5 needs a {side} model"):
        Rated(**FORTH).rerank(LINES, n_best_lists(), **weight)
