"""Suspect blocks of lines whose two sides do not belong together.

For each source, its target is compared with targets of lines close by: which fits
better? In aligned text nearly every source fits its own target best; where lines are
shifted or shuffled, half of them do. What fits is learned from the text itself
(`association`), with the lengths of the lines. So only a comparison within the text
counts: free translations and lines sorted by length are not suspected.
"""

import dataclasses
import functools
from collections.abc import Sequence

import numpy as np

from vaswani_jax.core import plurals
from vaswani_jax.text_checks import association, findings
from vaswani_jax.text_checks.findings import Example, Finding
from vaswani_jax.text_checks.sample import BLOCK_PAIRS, Block, numbered

# Fewer pairs teach too little to judge the text by.
MIN_PAIRS = 300
# The largest distance of the lines that a pair is compared with, and their number.
DISTANCE = 200
NUM_COMPARISONS = 4
# Lines that have this share of their words in common are too alike to compare.
TOO_ALIKE = 0.5
# Pairs of the smallest block that is judged.
MIN_BLOCK_PAIRS = 20
# A pair that is right wins most comparisons, one that is wrong half of them. A block is
# suspected if it looks as if more than this share of its pairs is wrong.
SUSPECTED_SHARE = 0.55
# ... and if it is this many standard errors below the text's good blocks.
MIN_DEVIATIONS = 4.0
# All of a text is suspected if fewer comparisons are won, and no block is good either.
MIN_AGREEMENT = 0.6
MIN_GOOD_AGREEMENT = 0.8
# The penalty of a standard deviation of the ratio of lengths, and how many count.
LENGTH_WEIGHT = 0.3
MAX_LENGTH_DEVIATION = 4.0
MAX_SHIFT = 10
# A shift is right if this share of at most so many pairs of a part fit better by it.
NUM_SHIFTED = 500
MIN_GAINING_SHARE = 0.75
# Lines that are compared at once.
_CHUNK = 200
SHARES = {"minor": 1e-9, "serious": 0.01}
NUM_LISTED = 5


@dataclasses.dataclass(frozen=True)
class Part:
    """Lines that are suspected.

    Attributes:
        first_line: The number of the first, from 1.
        last_line: The number of the last.
        shift: Lines by which their targets come too late, negative if too early; 0 if
            no shift fits.
    """

    first_line: int
    last_line: int
    shift: int

    def describe(self) -> str:
        """Return the lines and their shift in words."""
        lines = f"{self.first_line:,} to {self.last_line:,}"
        if not self.shift:
            return lines
        direction = "late" if self.shift > 0 else "early"
        distance = plurals.format_count(abs(self.shift), "line")
        return f"{lines} (targets come {distance} too {direction})"


@dataclasses.dataclass(frozen=True)
class Alignment:
    """The result of the comparisons of a text.

    Attributes:
        agreement: The share of comparisons that the pairs won; None if there are too
            few pairs to judge them.
        num_pairs: How many pairs were judged.
        parts: Lines that are suspected.
        share: The share of the judged blocks' lines that are suspected.
    """

    agreement: float | None
    num_pairs: int
    parts: Sequence[Part] = ()
    share: float = 0.0


def judge(blocks: Sequence[Block]) -> Alignment:
    """Compare the pairs of a text with targets of other lines."""
    lines = [(number, pair) for number, pair in numbered(blocks) if all(pair)]
    if len(lines) < MIN_PAIRS:
        return Alignment(None, len(lines))
    comparison = _Comparison(lines)
    # (pairs, comparisons): 1 where the pair's own target fits better, NaN if too alike.
    wins = comparison.wins()
    if np.isfinite(wins).any(axis=1).sum() < MIN_PAIRS:
        return Alignment(None, len(lines))
    agreement = float(np.nanmean(wins))
    block_of = (comparison.line_numbers - 1) // BLOCK_PAIRS
    numbers, means, errors = _by_block(wins, block_of)
    good = float(np.quantile(means, 0.95)) if len(means) else 0.5
    if agreement < MIN_AGREEMENT and good < MIN_GOOD_AGREEMENT:
        shift = comparison.best_shift(np.arange(len(lines)))
        parts = [Part(1, blocks[-1].last_line, shift)]
        return Alignment(agreement, len(lines), parts, 1.0)
    limit = 0.5 + (1 - SUSPECTED_SHARE) * (good - 0.5)
    is_suspected = (means < limit) & (good - means > MIN_DEVIATIONS * errors)
    last_lines = {block.number: block.last_line for block in blocks}
    good_blocks = numbers[means >= limit]
    parts = []
    previous_last = -1
    for first, last in _runs(numbers[is_suspected], all_numbers=np.unique(block_of)):
        rows = np.flatnonzero((block_of >= first) & (block_of <= last))
        shift = comparison.best_shift(rows)
        first_line = first * BLOCK_PAIRS + 1
        is_between = (previous_last < good_blocks) & (good_blocks < first)
        if shift and parts and parts[-1].shift == shift and not is_between.any():
            # Between parts of one shift, lines repeat each other too much to tell.
            first_line = parts.pop().first_line
        parts.append(Part(first_line, last_lines[last], shift))
        previous_last = last
    # Only some blocks of a large text are read: the share refers to them.
    line_numbers = np.array([number for number, _ in numbered(blocks)])
    is_inside = np.zeros(len(line_numbers), bool)
    for part in parts:
        is_inside |= (part.first_line <= line_numbers) & (
            line_numbers <= part.last_line
        )
    return Alignment(agreement, len(lines), parts, float(is_inside.mean()))


def find(alignment: Alignment, blocks: Sequence[Block], *, split: str) -> list[Finding]:
    """Return a finding if blocks of a text are suspected.

    Args:
        alignment: What `judge` said of the text.
        blocks: The text.
        split: Which one it is.
    """
    severity = findings.severity_of(alignment.share, **SHARES)
    if severity is None or alignment.agreement is None:
        return []
    parts = [part.describe() for part in alignment.parts]
    if (num_unlisted := len(parts) - NUM_LISTED) > 0:
        parts[NUM_LISTED:] = [f"and {num_unlisted:,} more parts"]
    return [
        Finding(
            kind="misaligned",
            severity=severity,
            split=split,
            message=(
                f"the two sides do not seem to belong together in lines "
                f"{', '.join(parts)}: {findings.percent(alignment.share)} of the text"
            ),
            share=alignment.share,
            remedies=_remedies(alignment.parts),
            lines=[(part.first_line, part.last_line) for part in alignment.parts],
            examples=_examples(alignment.parts, blocks),
        )
    ]


def _remedies(parts: Sequence[Part]) -> list[str]:
    remedies = []
    for part in parts:
        if part.shift:
            sides = ("target", "source") if part.shift > 0 else ("source", "target")
            lines = plurals.format_count(abs(part.shift), "line")
            remedies.append(
                f"look around line {part.first_line:,} for {lines} too many in the "
                f"{sides[0]} file, or missing in the {sides[1]} file"
            )
    return [
        *remedies[:NUM_LISTED],
        "leave these lines out of both files, or align them again",
    ]


def _examples(parts: Sequence[Part], blocks: Sequence[Block]) -> list[Example]:
    lines = dict(numbered(blocks))
    examples = []
    for part in parts[: findings.NUM_EXAMPLES]:
        middle = (part.first_line + part.last_line) // 2
        number = min(lines, key=lambda n: abs(n - middle))
        examples.append(findings.pair_example(number, *lines[number]))
    return examples


class _Comparison:
    """Pairs, and what is learned from them, to compare them with other lines."""

    def __init__(self, lines: Sequence[tuple[int, tuple[str, str]]]) -> None:
        self.line_numbers = np.array([number for number, _ in lines])
        index = association.Index()
        self._source, self._target = (
            index.side([pair[side] for _, pair in lines]) for side in (0, 1)
        )
        self._weights = association.stem_weights(
            self._source, self._target, index, len(lines)
        )
        # A half of the text is judged by what the other half teaches. Neighbours go to
        # the same half, as they may repeat each other.
        self._half = (np.arange(len(lines)) // BLOCK_PAIRS) % 2
        self._log_lengths = [
            np.log([len(pair[side]) + 3.0 for _, pair in lines]) for side in (0, 1)
        ]
        ratios = self._log_lengths[1] - self._log_lengths[0]
        self._ratio = np.median(ratios)
        self._ratio_deviation = max(0.1, 1.48 * np.median(abs(ratios - self._ratio)))

    @functools.cached_property
    def _associations(self) -> list[association.Associations]:
        return [
            association.Associations(
                self._source, self._target, np.flatnonzero(self._half != half)
            )
            for half in (0, 1)
        ]

    def wins(self) -> np.ndarray:
        """Return, for each pair and comparison, whether its own target fits better."""
        generator = np.random.default_rng(0)
        num_pairs = len(self.line_numbers)
        distance = min(DISTANCE, num_pairs // 2 - 1)
        result = np.full((num_pairs, NUM_COMPARISONS), np.nan)
        for rows in self._chunks(np.arange(num_pairs)):
            fits = self._fit(rows, rows)
            for number in range(NUM_COMPARISONS):
                steps = generator.integers(1, distance + 1, len(rows))
                steps *= generator.choice([-1, 1], len(rows))
                # Beyond an end, lines of the other direction.
                is_inside = (rows + steps >= 0) & (rows + steps < num_pairs)
                target_rows = np.where(is_inside, rows + steps, rows - steps)
                difference = fits - self._fit(rows, target_rows)
                result[rows, number] = np.where(
                    self._are_alike(rows, target_rows),
                    np.nan,
                    (np.sign(difference) + 1) / 2,
                )
        return result

    def best_shift(self, rows: np.ndarray) -> int:
        """Return by how many lines targets come too late; 0 if no shift fits better."""
        row_of = {int(line): row for row, line in enumerate(self.line_numbers)}
        rows = rows[:: -(-len(rows) // NUM_SHIFTED)]
        best, best_share = 0, MIN_GAINING_SHARE
        for shift in range(-MAX_SHIFT, MAX_SHIFT + 1):
            target_rows = np.array(
                [row_of.get(int(self.line_numbers[row]) + shift, -1) for row in rows]
            )
            usable = target_rows >= 0
            if not shift or usable.sum() < len(rows) / 2:
                continue
            gains = [
                self._fit(part, target_rows[np.searchsorted(rows, part)])
                - self._fit(part, part)
                for part in self._chunks(rows[usable])
            ]
            share = float((np.concatenate(gains) > 0).mean())
            if share > best_share:
                best, best_share = shift, share
        return best

    def _chunks(self, rows: np.ndarray) -> list[np.ndarray]:
        """Return rows in parts, each of one half."""
        parts = []
        for half in (0, 1):
            rows_of_half = rows[self._half[rows] == half]
            num_parts = -(-len(rows_of_half) // _CHUNK)
            if num_parts:
                parts += np.array_split(rows_of_half, num_parts)
        return parts

    def _fit(self, rows: np.ndarray, target_rows: np.ndarray) -> np.ndarray:
        """Return how well sources of rows of one half go with targets of other rows."""
        scores = association.scores(
            self._associations[self._half[rows[0]]],
            self._weights,
            source=(self._source, rows),
            target=(self._target, target_rows),
        )
        ratios = self._log_lengths[1][target_rows] - self._log_lengths[0][rows]
        deviations = abs(ratios - self._ratio) / self._ratio_deviation
        return scores - LENGTH_WEIGHT * np.minimum(deviations, MAX_LENGTH_DEVIATION)

    def _are_alike(self, rows: np.ndarray, other_rows: np.ndarray) -> np.ndarray:
        result = rows == other_rows
        for side in (self._source, self._target):
            shares = association.share_of_words(
                side.padded(rows), side.padded(other_rows)
            )
            result = result | (shares >= TOO_ALIKE)
        return result


def _by_block(
    wins: np.ndarray, block_of: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the blocks with enough comparisons, the means of their pairs, and errors.

    The standard error of a block's mean is that of a block of as many pairs of the
    whole text.
    """
    is_compared = np.isfinite(wins)
    counts = is_compared.sum(1)
    usable = counts > 0
    if not usable.any():
        nothing = np.zeros(0)
        return nothing.astype(np.int64), nothing, nothing
    pair_means = np.nansum(wins, 1)[usable] / counts[usable]
    numbers, indices = np.unique(block_of[usable], return_inverse=True)
    sizes = np.bincount(indices)
    means = np.bincount(indices, pair_means) / sizes
    deviation = max(0.1, float(np.std(pair_means)))
    is_judged = sizes >= MIN_BLOCK_PAIRS
    errors = deviation / np.sqrt(sizes)
    return numbers[is_judged], means[is_judged], errors[is_judged]


def _runs(numbers: np.ndarray, *, all_numbers: np.ndarray) -> list[tuple[int, int]]:
    """Return first and last of numbers that follow each other among all."""
    runs: list[tuple[int, int]] = []
    positions = np.searchsorted(all_numbers, numbers)
    previous = -2
    for number, position in zip(numbers.tolist(), positions.tolist(), strict=True):
        if position == previous + 1:
            runs[-1] = (runs[-1][0], number)
        else:
            runs.append((number, number))
        previous = position
    return runs
