"""Repeated pairs, repeated lines, and targets that copy their sources.

Lines are compared by 64-bit hashes. Of a large text only the hashes of one line in 2, 4
or more are kept, always those of the same lines: memory is bounded, and every
repetition of a kept line is counted. A line that is common when sampling begins is
always kept, so that the sample cannot miss it.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from vaswani_jax.core import locales, types
from vaswani_jax.data import cleaning
from vaswani_jax.text_checks import findings
from vaswani_jax.text_checks.findings import Example, Finding
from vaswani_jax.text_checks.sample import Pair

MAX_KEPT = 4_000_000
DUPLICATES = {"minor": 0.05, "serious": 0.5}
EQUAL_SIDES = {"minor": 0.05, "serious": 0.5}
# One line is a fault if it has this share of a side, and occurs this often.
ONE_LINE = {"minor": 0.02, "serious": 0.2}
MIN_ONE_LINE = 20
# The share of the lines from which on a line is common.
COMMON = 0.005
_BUFFER = 500_000
# Letters of scripts without spaces that are as much as three words.
MIN_LETTERS_WITHOUT_SPACES = 8


class Hashes:
    """Counts of lines by hash; of many lines, a sample of one in `divisor`."""

    def __init__(self, *, max_kept: int = MAX_KEPT) -> None:
        """Start with no line."""
        self._max_kept = max_kept
        self._divisor = 1
        self._num_lines = 0
        # A hash may occur several times; `_add_equal` adds its counts.
        self._hashes = np.zeros(0, np.uint64)
        self._counts = np.zeros(0, np.int64)
        self._buffer: list[int] = []

    def add(self, hashes: Iterable[int]) -> None:
        """Take hashes of more lines."""
        self._buffer.extend(hashes)
        if len(self._buffer) >= _BUFFER:
            self._flush()

    def counts(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the different hashes that are kept, and how often each was there."""
        self._flush()
        self._add_equal()
        return self._hashes, self._counts

    def merge(self, other: "Hashes") -> None:
        """Take each of the different hashes that another object keeps, once."""
        hashes, _ = other.counts()
        self._divisor = max(self._divisor, other._divisor)
        self._take(hashes)
        self._keep(self._is_sampled(self._hashes))
        self._num_lines = int(self._counts.sum()) * self._divisor

    def share_repeated(self) -> float:
        """Return the share of lines that repeat an earlier one."""
        hashes, counts = self.counts()
        # The sample stands for all lines but the common ones that were kept.
        is_common = self._is_common(counts) | ~self._is_sampled(hashes)
        common, sample = counts[is_common], counts[~is_common]
        repeated = float((common - 1).sum())
        if len(sample):
            num_others = self._num_lines - int(common.sum())
            repeated += num_others * (1 - len(sample) / int(sample.sum()))
        return repeated / max(1, self._num_lines)

    def largest(self) -> tuple[int, float]:
        """Return the hash of the commonest line, and its share of all lines."""
        hashes, counts = self.counts()
        if not len(hashes):
            return 0, 0.0
        index = int(np.argmax(counts))
        return int(hashes[index]), int(counts[index]) / self._num_lines

    def _flush(self) -> None:
        new = np.array(self._buffer, np.uint64)
        self._buffer = []
        self._num_lines += len(new)
        kept_hashes = self._hashes[~self._is_sampled(self._hashes)]
        self._take(new[self._is_sampled(new) | np.isin(new, kept_hashes)])

    def _take(self, hashes: np.ndarray) -> None:
        self._hashes = np.concatenate([self._hashes, hashes])
        self._counts = np.concatenate([self._counts, np.ones(len(hashes), np.int64)])
        if len(self._hashes) <= self._max_kept:
            return
        self._add_equal()
        while len(self._hashes) > self._max_kept and self._divisor < 1 << 40:
            self._divisor *= 2
            is_common = self._is_common(self._counts)
            self._keep(self._is_sampled(self._hashes) | is_common)

    def _keep(self, is_kept: np.ndarray) -> None:
        self._hashes, self._counts = self._hashes[is_kept], self._counts[is_kept]

    def _add_equal(self) -> None:
        """Keep each hash once, with all of its lines."""
        self._hashes, inverse = np.unique(self._hashes, return_inverse=True)
        counts = np.bincount(inverse, weights=self._counts, minlength=len(self._hashes))
        self._counts = counts.astype(np.int64)

    def _is_sampled(self, hashes: np.ndarray) -> np.ndarray:
        return hashes % np.uint64(self._divisor) == 0

    def _is_common(self, counts: np.ndarray) -> np.ndarray:
        return counts >= max(MIN_ONE_LINE, COMMON * self._num_lines)


class Duplicates:
    """Counts repeated pairs, sources and targets, chunk by chunk."""

    def __init__(
        self,
        *,
        max_kept: int = MAX_KEPT,
        remove_tag: Callable[[str], str] = lambda line: line,
    ) -> None:
        """Start with no pair.

        Args:
            max_kept: The most hashes to keep.
            remove_tag: Returns a source line without its tag or language code.
        """
        self._remove_tag = remove_tag
        self._pairs = Hashes(max_kept=max_kept)
        self._sides = [Hashes(max_kept=max_kept) for _ in range(2)]
        self._num_pairs = self._num_equal = 0
        self._equal_examples: list[Example] = []
        # The first lines show what is repeated, if something is all over the text.
        self._lines: list[dict[int, str]] = [{}, {}]

    @property
    def pairs(self) -> Hashes:
        """The hashes of its pairs."""
        return self._pairs

    def add(self, pairs: Sequence[Pair]) -> None:
        """Take the next pairs of the text. Empty sides count as no repetition."""
        full_pairs = [pair for pair in pairs if pair[0].strip() and pair[1].strip()]
        self._pairs.add(cleaning.hash_text("\n".join(pair)) for pair in full_pairs)
        for side, hashes in enumerate(self._sides):
            lines = [pair[side] for pair in full_pairs]
            values = list(map(cleaning.hash_text, lines))
            hashes.add(values)
            if len(self._lines[side]) < 1000:
                self._lines[side] |= dict(zip(values, lines, strict=True))
        for number, (source, target) in enumerate(pairs, start=self._num_pairs + 1):
            # A tag stands before the text; most lines need no closer look.
            is_equal = source == target or (
                source.endswith(target) and self._remove_tag(source).strip() == target
            )
            if is_equal and _has_words(target):
                self._num_equal += 1
                if len(self._equal_examples) < findings.NUM_EXAMPLES:
                    self._equal_examples.append(
                        findings.pair_example(number, source, target)
                    )
        self._num_pairs += len(pairs)

    def measures(self) -> dict[str, Any]:
        """Return the shares of repeated lines, as JSON can hold them."""
        return {
            "repeated_pairs": round(self._pairs.share_repeated(), 6),
            "repeated_sources": round(self._sides[0].share_repeated(), 6),
            "repeated_targets": round(self._sides[1].share_repeated(), 6),
            "equal_sides": round(self._num_equal / max(1, self._num_pairs), 6),
        }

    def find(
        self, *, split: str, may_copy: bool, may_repeat: bool = False
    ) -> list[Finding]:
        """Return findings of repeated pairs, copied sources and repeated lines.

        Args:
            split: The text.
            may_copy: True if targets may equal their sources.
            may_repeat: True if pairs may be repeated.
        """
        result = []
        share = self._pairs.share_repeated()
        severity = findings.severity_of(share, **DUPLICATES)
        if severity and not may_repeat:
            result.append(
                Finding(
                    kind="duplicates",
                    severity=severity,
                    split=split,
                    message=f"{findings.percent(share)} of the pairs repeat another",
                    share=share,
                    remedies=["keep each pair once in the files"],
                )
            )
        share = self._num_equal / max(1, self._num_pairs)
        severity = findings.severity_of(share, **EQUAL_SIDES)
        if severity and not may_copy:
            result.append(
                Finding(
                    kind="equal_sides",
                    severity=severity,
                    split=split,
                    message=(
                        f"{findings.percent(share)} of the pairs have the same text as "
                        "source and as target"
                    ),
                    share=share,
                    remedies=["leave these lines out of both files"],
                    examples=self._equal_examples,
                )
            )
        for side in range(2):
            result += self._find_one_line(side, split=split)
        return result

    def _find_one_line(self, side: int, *, split: str) -> list[Finding]:
        value, share = self._sides[side].largest()
        severity = findings.severity_of(share, **ONE_LINE)
        if not severity or share * self._num_pairs < MIN_ONE_LINE:
            return []
        line = self._lines[side].get(value)
        example = f": {findings.shorten(line)}" if line else ""
        return [
            Finding(
                kind="one_line",
                severity=severity,
                split=split,
                message=(
                    f"{findings.percent(share)} of the {types.SIDES[side]} lines are "
                    f"one and the same{example}"
                ),
                share=share,
                remedies=["look at these lines, and leave most of them out"],
            )
        ]


class AcrossCorpora:
    """Counts the pairs of a corpus that are in an earlier corpus, too."""

    def __init__(self, *, max_kept: int = MAX_KEPT) -> None:
        """Start with no corpus."""
        self._pairs = Hashes(max_kept=max_kept)

    def add(self, corpus: Duplicates) -> None:
        """Take the different pairs of the next corpus."""
        self._pairs.merge(corpus.pairs)

    def find(self) -> list[Finding]:
        """Return a finding if corpora have many pairs in common."""
        share = self._pairs.share_repeated()
        severity = findings.severity_of(share, **DUPLICATES)
        if not severity:
            return []
        return [
            Finding(
                kind="duplicates",
                severity=severity,
                split="train",
                message=(
                    f"{findings.percent(share)} of the pairs are in an earlier corpus, "
                    "too (repetitions in a corpus aside)"
                ),
                share=share,
                remedies=["keep each pair in one corpus"],
            )
        ]


def _has_words(line: str) -> bool:
    """Return True for a line that a translation would change: of three words or more.

    Names and numbers stay as they are.
    """
    num_letters = len(locales.LETTERS_WITHOUT_SPACES.findall(line))
    if num_letters >= MIN_LETTERS_WITHOUT_SPACES:
        return True
    return sum(word.isalpha() for word in line.split()) >= 3
