"""Measure a text and its lines; find empty, too long and unequally long sides."""

import collections
import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from vaswani_jax.core import config, types
from vaswani_jax.text_checks import findings
from vaswani_jax.text_checks.findings import Example, Finding, Severity
from vaswani_jax.text_checks.sample import Block, Pair, numbered

# A pair's ratio of lengths is odd if it differs from the text's by this factor, and one
# side has at least this many characters.
ODD_RATIO = 3.0
MIN_ODD_LENGTH = 30
EMPTY = {"minor": 0.005, "serious": 0.2}
TOO_LONG = {"minor": 0.01, "serious": 0.2}
ODD = {"minor": 0.02, "serious": 0.3}
QUANTILES = {"median": 0.5, "95%": 0.95, "maximum": 1.0}


@dataclasses.dataclass
class Distribution:
    """Counts of lengths."""

    counts: collections.Counter[int] = dataclasses.field(
        default_factory=collections.Counter
    )

    def summary(self) -> dict[str, float]:
        """Return the mean and some quantiles, as JSON can hold them."""
        if not self.counts:
            return {}
        values = np.array(sorted(self.counts))
        sums = np.cumsum([self.counts[value] for value in values.tolist()])
        indices = [np.searchsorted(sums, q * sums[-1]) for q in QUANTILES.values()]
        mean = sum(value * count for value, count in self.counts.items()) / sums[-1]
        quantiles = dict(zip(QUANTILES, values[indices].tolist(), strict=True))
        return {"mean": round(float(mean), 2), **quantiles}


class Lengths:
    """Counts pairs, empty sides, characters and words, chunk by chunk."""

    def __init__(
        self,
        *,
        has_trees: bool = False,
        is_empty_source: Callable[[str], bool] = lambda line: not line.strip(),
    ) -> None:
        """Start with no pair.

        Args:
            has_trees: True if the targets are trees: their symbols are no words, so
                the sources alone tell what is too long.
            is_empty_source: Returns True for a source line without text.
        """
        self._has_trees = has_trees
        self._is_empty_source = is_empty_source
        self.num_pairs = self.num_empty = self.num_too_long = 0
        self.characters = {side: Distribution() for side in types.SIDES}
        self.words = {side: Distribution() for side in types.SIDES}
        self._examples: list[Example] = []

    def add(self, pairs: Sequence[Pair], *, max_words: int) -> None:
        """Take the next pairs of the text.

        Args:
            pairs: The pairs.
            max_words: A line of more words is certainly too long.
        """
        for number, pair in enumerate(pairs, start=self.num_pairs + 1):
            if self._is_empty_source(pair[0]) or not pair[1].strip():
                self.num_empty += 1
                if len(self._examples) < findings.NUM_EXAMPLES:
                    self._examples.append(findings.pair_example(number, *pair))
        numbers_of_words = []
        for side, name in enumerate(types.SIDES):
            lines = [pair[side] for pair in pairs]
            words = [len(line.split()) for line in lines]
            numbers_of_words.append(words)
            self.characters[name].counts.update(map(len, lines))
            self.words[name].counts.update(words)
        sources, targets = numbers_of_words
        longest = sources if self._has_trees else map(max, sources, targets)
        self.num_too_long += sum(number > max_words for number in longest)
        self.num_pairs += len(pairs)

    def measures(self) -> dict[str, Any]:
        """Return sizes and lengths, as JSON can hold them."""
        return {
            "pairs": self.num_pairs,
            "empty": self.num_empty,
            "characters": {k: v.summary() for k, v in self.characters.items()},
            "words": {k: v.summary() for k, v in self.words.items()},
        }

    def find_empty(self, *, split: str) -> list[Finding]:
        """Return a finding if there is no pair, or if many have an empty side."""
        if not self.num_pairs:
            return [
                Finding(
                    kind="no_pairs",
                    severity=Severity.SERIOUS,
                    split=split,
                    message="the text has no pair",
                    share=1.0,
                    remedies=["name files that have text"],
                )
            ]
        share = self.num_empty / max(1, self.num_pairs)
        severity = findings.severity_of(share, **EMPTY)
        if not severity:
            return []
        message = (
            f"{self.num_empty:,} pairs ({findings.percent(share)}) have an empty side"
        )
        if split == "train":
            message += " and are left out"
        return [
            Finding(
                kind="empty",
                severity=severity,
                split=split,
                message=message,
                share=share,
                remedies=["leave these lines out of both files"],
                examples=self._examples,
            )
        ]

    def find_too_long(self, data: config.DataConfig) -> list[Finding]:
        """Return a finding if training leaves out many pairs that are too long.

        A line of n words has at least n tokens, and its end mark.
        """
        share = self.num_too_long / max(1, self.num_pairs)
        severity = findings.severity_of(share, **TOO_LONG)
        return [too_long(share, data, severity=severity)] if severity else []


def too_long(
    share: float, data: config.DataConfig, *, severity: Severity, unit: str = "words"
) -> Finding:
    """Return the finding that many training pairs are longer than `data.max_length`."""
    longest = data.max_length - 1
    return Finding(
        kind="too_long",
        severity=severity,
        split="train",
        message=(
            f"{findings.percent(share)} of the pairs have a side of more than "
            f"{longest} {unit}, and are left out"
        ),
        share=share,
        remedies=[
            f"--config.data.max_length={2 * data.max_length}, or more",
            "split long lines into sentences, the same on both sides",
        ],
    )


def usual_ratio(blocks: Sequence[Block]) -> float:
    """Return the longer side's length over the shorter side's, in a usual pair.

    Lengths are in characters; the ratio is 1.0 if no pair has two sides with text.
    """
    lengths = _lengths([pair for _, pair in numbered(blocks) if all(pair)])
    return float(np.exp(abs(np.median(_log_ratios(lengths))))) if len(lengths) else 1.0


def _lengths(pairs: Sequence[Pair]) -> np.ndarray:
    """Return the characters of source and target, (number of pairs, 2)."""
    lengths = [[len(source), len(target)] for source, target in pairs]
    return np.array(lengths, np.int64).reshape(-1, 2)


def _log_ratios(lengths: np.ndarray) -> np.ndarray:
    """Return log(target length / source length) of each pair."""
    return np.log(lengths[:, 1] / lengths[:, 0])


def find_odd_ratios(
    blocks: Sequence[Block], *, split: str, locale: str = ""
) -> list[Finding]:
    """Return a finding if many pairs have sides of very different lengths.

    They are compared with the usual ratio of the text, in characters.

    Args:
        blocks: Pairs of one target language.
        split: The text.
        locale: The target language, if the text has several.
    """
    pairs = [(number, pair) for number, pair in numbered(blocks) if all(pair)]
    if not pairs:
        return []
    lengths = _lengths([pair for _, pair in pairs])
    logs = _log_ratios(lengths)
    logs -= np.median(logs)
    is_odd = (abs(logs) > np.log(ODD_RATIO)) & (lengths.max(1) >= MIN_ODD_LENGTH)
    share = float(is_odd.mean())
    severity = findings.severity_of(share, **ODD)
    if not severity:
        return []
    order = np.argsort(-abs(np.where(is_odd, logs, 0)), kind="stable")
    odd = [pairs[index] for index in order[: findings.NUM_EXAMPLES] if is_odd[index]]
    return [
        Finding(
            kind="length_ratio",
            severity=severity,
            split=split,
            message=(
                f"{findings.percent(share)} of the pairs "
                + (f"whose target is in {locale} " if locale else "")
                + f"have one side that is over {ODD_RATIO:.0f} times longer than the "
                "other side suggests"
            ),
            share=share,
            remedies=["leave these lines out of both files, or align them again"],
            examples=[findings.pair_example(n, *pair) for n, pair in odd],
        )
    ]
