"""Measure what attention heads look at, beside what chance would give.

A measure is a mean over the tokens, or words, of a text. Its chance level is the mean
of heads whose weights ignore the text. Begin and end marks are left out, as queries and
as keys, unless a measure says otherwise.
"""

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from vaswani_jax.analysis.views import View

ALL = ("encoder", "decoder", "memory")
SELF = ("encoder", "decoder")
# A mean of fewer tokens says little.
MIN_TOKENS = 30
# Heads that always look this far away are rivals of those that follow syntax.
OFFSETS = (-3, -2, -1, 1, 2, 3)
# A smaller total is noise: how it is distributed means nothing.
SMALLEST_WEIGHT = 1e-6
# The value and the chance level by a measure's name.
Values = Mapping[str, tuple[float | None, float | None]]


class Observation(NamedTuple):
    """A measure of N heads at O tokens of a sentence.

    Attributes:
        values: To be averaged over tokens.
        chances: The values of chance and of R - 1 other rivals, for all heads or for
            each. The best mean is the chance level. None if the measure has none.
    """

    values: Float[np.ndarray, "N O"]
    chances: Float[np.ndarray, "R #N O"] | None


@dataclasses.dataclass(frozen=True)
class Measure:
    """A measure of heads.

    Attributes:
        name: In tables and JSON.
        description: What it is, a sentence.
        kinds: The attention that has it.
        observe: Measures all heads at the tokens of a sentence; None if it has no
            token that can be measured.
    """

    name: str
    description: str
    kinds: tuple[str, ...]
    observe: Callable[[View], Observation | None]


def measure(
    views: Iterable[View],
) -> dict[str, list[Values]]:
    """Return each kind's heads, with the values of each.

    None stands for a measure of too few tokens, and for a chance level that does not
    exist.
    """
    sums: dict[tuple[str, str], _Sum] = {}
    num_heads: dict[str, int] = {}
    for view in views:
        num_heads[view.kind] = len(view.weights)
        for head_measure in MEASURES:
            if view.kind in head_measure.kinds and (
                observation := head_measure.observe(view)
            ):
                key = view.kind, head_measure.name
                sums[key] = sums.get(key, _Sum()) + observation
    return {
        kind: [
            {
                head_measure.name: sums.get((kind, head_measure.name), _Sum()).mean(
                    head
                )
                for head_measure in MEASURES
                if kind in head_measure.kinds
            }
            for head in range(count)
        ]
        for kind, count in num_heads.items()
    }


@dataclasses.dataclass(frozen=True)
class _Sum:
    """Sums of a measure over the tokens of some sentences."""

    values: Float[np.ndarray, "N"] | float = 0.0
    chances: Float[np.ndarray, "R #N"] | float | None = 0.0
    count: int = 0

    def __add__(self, observed: Observation) -> "_Sum":
        chances = None
        if observed.chances is not None and self.chances is not None:
            chances = self.chances + observed.chances.sum(axis=2)
        return _Sum(
            values=self.values + observed.values.sum(axis=1),
            chances=chances,
            count=self.count + observed.values.shape[1],
        )

    def mean(self, head: int) -> tuple[float | None, float | None]:
        if self.count < MIN_TOKENS:
            return None, None
        values, chance = np.asarray(self.values), None
        if self.chances is not None:
            by_head = np.broadcast_to(np.max(self.chances, axis=0), len(values))
            chance = float(by_head[head]) / self.count
        return float(values[head]) / self.count, chance


def words_of(
    view: View, *, shift: int = 0
) -> Float[np.ndarray, "N query_words key_words"]:
    """Return weights between words, as Clark et al. (2019) define them.

    The weight on a word is the sum over its subwords; the weight from a word is the
    mean over its subwords.

    Args:
        view: The weights between subwords.
        shift: How many subwords to the right each weight is moved first. The last ones
            go to the beginning; marks keep theirs.
    """
    is_inner = ~view.keys.is_mark
    weights = np.roll(view.weights[:, :, is_inner], shift, axis=2)
    parts = _is_part(view.queries.words)
    from_words = np.swapaxes(parts / parts.sum(axis=0), 0, 1) @ weights
    by_word: np.ndarray = from_words @ _is_part(view.keys.words[is_inner])
    return by_word


def _is_part(words: np.ndarray) -> Float[np.ndarray, "tokens words"]:
    """Return 1 where a token is a part of a word."""
    numbers = np.arange(words.max(initial=-1) + 1)
    return (words[:, None] == numbers).astype(np.float64)


def _largest(
    weights: Float[np.ndarray, "N Q K"],
    *,
    targets: Bool[np.ndarray, "Q K"],
    candidates: Bool[np.ndarray, "Q K"],
) -> Observation | None:
    """Return 1 where the largest weight of a query's candidates is on a target.

    Queries whose candidates are all targets, or none, do not count. Where K largest
    weights are equal, each is 1 / K of one.
    """
    targets = targets & candidates
    num_targets, num_candidates = targets.sum(axis=1), candidates.sum(axis=1)
    rows = (num_targets > 0) & (num_targets < num_candidates)
    if not rows.any():
        return None
    masked = np.where(candidates[rows], weights[:, rows], -1.0)
    is_largest = masked == masked.max(axis=2, keepdims=True)
    hits = (is_largest & targets[rows]).sum(axis=2) / is_largest.sum(axis=2)
    return Observation(hits, (num_targets[rows] / num_candidates[rows])[None, None])


def _largest_word(
    view: View,
    *,
    targets: Bool[np.ndarray, "query_words key_words"],
    candidates: Bool[np.ndarray, "query_words key_words"],
) -> Observation | None:
    """Return `_largest` of weights between words, with the chance of each head.

    Long words have more weight than short ones. So chance is the mean over all places
    to which a head's weights can be moved together.
    """
    observation = _largest(words_of(view), targets=targets, candidates=candidates)
    if observation is None:
        return None
    num_shifts = np.count_nonzero(~view.keys.is_mark)
    chance = np.zeros_like(observation.values)
    for shift in range(num_shifts):
        weights = words_of(view, shift=shift)
        attended = _largest(weights, targets=targets, candidates=candidates)
        if attended:
            chance += attended.values / num_shifts
    return Observation(observation.values, chance[None])


def _total(view: View, targets: Bool[np.ndarray, "Q K"]) -> Observation | None:
    """Return the weight on targets, for the queries that may look at any."""
    targets = targets & view.may_look & ~view.queries.is_mark[:, None]
    num_visible = view.may_look.sum(axis=1)
    rows = targets.any(axis=1) & (num_visible > 1)
    if not rows.any():
        return None
    totals = (view.weights[:, rows] * targets[rows]).sum(axis=2)
    return Observation(totals, (targets.sum(axis=1) / num_visible)[rows][None, None])


def _candidates(view: View) -> Bool[np.ndarray, "Q K"]:
    """Return what a query that is no mark may look at that is no mark."""
    return view.may_look & ~view.keys.is_mark & ~view.queries.is_mark[:, None]


def _at_offset(view: View, offset: int) -> Observation | None:
    Q, K = view.may_look.shape
    targets = np.eye(Q, K, k=offset, dtype=bool)
    return _largest(view.weights, targets=targets, candidates=_candidates(view))


def _rarest(view: View) -> Observation | None:
    if view.keys.counts is None:
        return None
    candidates = _candidates(view)
    counts = np.where(candidates, view.keys.counts, np.iinfo(np.int64).max)
    targets = counts == counts.min(axis=1, keepdims=True)
    return _largest(view.weights, targets=targets, candidates=candidates)


def _entropy(view: View) -> Observation | None:
    num_visible = view.may_look.sum(axis=1)
    rows = (num_visible > 1) & ~view.queries.is_mark
    if not rows.any():
        return None
    weights = view.weights[:, rows]
    logs = np.log(np.where(weights > 0, weights, 1.0))
    entropies = -(weights * logs).sum(axis=2) / np.log(num_visible[rows])
    return Observation(entropies, None)


def _confidence(view: View) -> Observation | None:
    candidates = _candidates(view)
    rows = candidates.sum(axis=1) > 1
    if not rows.any():
        return None
    largest = np.where(candidates[rows], view.weights[:, rows], 0.0).max(axis=2)
    return Observation(largest, None)


def _punctuation(view: View) -> Observation | None:
    targets = np.tile(view.keys.is_punctuation, (len(view.queries), 1))
    return _total(view, _without_itself(view, targets))


def _without_itself(
    view: View, targets: Bool[np.ndarray, "Q K"]
) -> Bool[np.ndarray, "Q K"]:
    """Return targets without the token that looks."""
    if not view.is_self:
        return targets
    return targets & ~np.eye(len(view.keys), dtype=bool)


def _is_same(view: View) -> Bool[np.ndarray, "Q K"]:
    return view.queries.ids[:, None] == view.keys.ids


def _same_word(view: View) -> Observation | None:
    if not view.is_shared:
        return None
    return _total(view, _without_itself(view, _is_same(view) & ~view.keys.is_mark))


def _similar_words(view: View) -> Observation | None:
    if not view.is_shared:
        return None
    candidates = _candidates(view) & ~_is_same(view)
    rows = candidates.sum(axis=1) > 1
    if not rows.any():
        return None
    uniform = candidates[rows] / candidates[rows].sum(axis=1, keepdims=True)
    weights = view.weights[:, rows] * candidates[rows]
    totals = weights.sum(axis=2, keepdims=True)
    weights = np.where(
        totals > SMALLEST_WEIGHT, weights / np.maximum(totals, SMALLEST_WEIGHT), uniform
    )
    cosines = view.queries.embeddings[rows] @ view.keys.embeddings.T
    return Observation(
        (weights * cosines).sum(axis=2), (uniform * cosines).sum(axis=1)[None, None]
    )


def _diagonal(view: View) -> Observation | None:
    num_queries, num_keys = (
        int(tokens.words.max(initial=-1)) + 1 for tokens in (view.queries, view.keys)
    )
    # The middle of a word is as far in its sentence as that of the other word.
    middles = (np.arange(num_queries) + 0.5) * num_keys / max(1, num_queries)
    targets = middles.astype(int)[:, None] == np.arange(num_keys)
    return _largest_word(view, targets=targets, candidates=np.ones_like(targets))


def _alignment(view: View) -> Observation | None:
    if view.links is None:
        return None
    candidates = np.ones_like(view.links)
    return _largest_word(view, targets=view.links, candidates=candidates)


def _constituent(view: View) -> Observation | None:
    if view.constituents is None:
        return None
    number = np.arange(len(view.constituents))
    begin, end = view.constituents[:, :1], view.constituents[:, 1:]
    is_other = ~np.eye(len(number), dtype=bool)
    targets = (number >= begin) & (number < end) & is_other
    observation = _largest_word(view, targets=targets, candidates=is_other)
    if observation is None or observation.chances is None:
        return None
    # Words whose constituent is the whole sentence do not count.
    rows = targets.sum(axis=1) < len(number) - 1
    chances = [observation.chances[0]]
    for offset in OFFSETS:
        neighbour = np.clip(number + offset, 0, len(number) - 1)
        is_there = neighbour == number + offset
        hits = (targets[number, neighbour] & is_there)[rows]
        chances.append(np.broadcast_to(hits, observation.values.shape))
    return Observation(observation.values, np.stack(chances))


MEASURES = (
    Measure(
        "previous",
        "How often the largest weight of a subword is on the one before it.",
        SELF,
        lambda view: _at_offset(view, -1),
    ),
    Measure(
        "next",
        "How often the largest weight of a subword is on the one after it.",
        ("encoder",),
        lambda view: _at_offset(view, 1),
    ),
    Measure(
        "self",
        "How often the largest weight of a subword is on itself.",
        SELF,
        lambda view: _at_offset(view, 0),
    ),
    Measure(
        "mark",
        "The mean weight on the end mark; in the decoder's self-attention, on the "
        "begin mark.",
        ALL,
        lambda view: _total(
            view, np.broadcast_to(view.keys.is_mark, view.may_look.shape)
        ),
    ),
    Measure(
        "punctuation",
        "The mean weight on other subwords that are punctuation, if there are any.",
        ALL,
        _punctuation,
    ),
    Measure(
        "rarest",
        "How often the largest weight is on the sentence's subword that is rarest in "
        "the training text.",
        ALL,
        _rarest,
    ),
    Measure(
        "entropy",
        "The mean entropy of the weights, divided by that of equal weights: 0 is one "
        "subword alone, 1 all alike.",
        ALL,
        _entropy,
    ),
    Measure(
        "confidence",
        "The mean of the largest weight, marks left out.",
        ALL,
        _confidence,
    ),
    Measure(
        "same word",
        "The mean weight on other occurrences of the same subword, if there are any; "
        "in encoder-decoder attention, on source subwords equal to the predicted one.",
        ALL,
        _same_word,
    ),
    Measure(
        "similar words",
        "The mean cosine, by weight, between the embeddings of other subwords and that "
        "of the subword that looks, or is predicted.",
        ALL,
        _similar_words,
    ),
    Measure(
        "diagonal",
        "How often the largest weight of a target word is on the source word at the "
        "same relative position.",
        ("memory",),
        _diagonal,
    ),
    Measure(
        "alignment",
        "How often the largest weight of a target word is on a source word that it is "
        "aligned with.",
        ("memory",),
        _alignment,
    ),
    Measure(
        "constituent",
        "How often the largest weight of a word is on another word of its smallest "
        "constituent; chance is the best of random weights and of fixed distances up "
        "to three words.",
        ("encoder",),
        _constituent,
    ),
)
DESCRIPTIONS: Mapping[str, str] = {
    measure.name: measure.description for measure in MEASURES
}
