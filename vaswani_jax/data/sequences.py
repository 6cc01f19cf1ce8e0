"""The endless sequence of a corpus: pass after pass, each in an order of its own.

The units that are drawn are pairs, or packed rows of several pairs. Units of a class (a
bucket, or a number of pairs) are spread evenly over a pass. So every part of the
sequence has nearly the same number of each class, and all epochs can have the same
batches. A position in the sequence counts pairs; its unit is computed directly.
"""

import itertools
from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from jaxtyping import Int

from vaswani_jax.data import token_files
from vaswani_jax.data.mixture import Mixture

# The last number of the seed of a pass: no other order has it.
PASS = 3


def apportion(total: int, sizes: Sequence[int]) -> list[int]:
    """Return how many of the first units of a pass belong to each class.

    By Sainte-Laguë's method: unit k of a class of n comes at (2k + 1) / 2n of the pass,
    the first class first where these are equal. So no part gets smaller as the total
    grows, and a whole pass has all units of each class.

    Args:
        total: Number of units, at most the sum of the sizes.
        sizes: Number of units of each class.

    >>> [apportion(total, [4, 2]) for total in range(7)]
    [[0, 0], [1, 0], [1, 1], [2, 1], [3, 1], [3, 2], [4, 2]]
    """
    num_units = sum(sizes)
    # All units up to the share total / num_units of the pass, inclusive.
    parts = [(2 * total * size + num_units) // (2 * num_units) for size in sizes]
    while sum(parts) > total:
        *_, last = max(
            (Fraction(2 * part - 1, size), number)
            for number, (part, size) in enumerate(zip(parts, sizes, strict=True))
            if part
        )
        parts[last] -= 1
    while sum(parts) < total:
        *_, first = min(
            (Fraction(2 * part + 1, size), number)
            for number, (part, size) in enumerate(zip(parts, sizes, strict=True))
            if part < size
        )
        parts[first] += 1
    return parts


class Fragment(NamedTuple):
    """Some of the pairs of a unit, from `start` to before `end`."""

    unit: int
    start: int
    end: int


class _Position(NamedTuple):
    """A position: a pass, whole units of it, and pairs of the unit that follows."""

    number: int
    unit: int
    offset: int


class UnitSequence:
    """The endless sequence of the units of a corpus; a pure function of its seed.

    Only the order of the last pass asked for is kept, class by class.
    """

    def __init__(
        self,
        classes: Sequence[Int[np.ndarray, "_"]],
        *,
        pairs_per_unit: Sequence[int],
        seed: Sequence[int],
    ) -> None:
        """Take the units.

        Args:
            classes: The units of each class.
            pairs_per_unit: The number of pairs of a unit of each class.
            seed: Decides the order in each pass.
        """
        self._classes = classes
        self._pairs_per_unit = pairs_per_unit
        self._seed = seed
        self._sizes = [len(units) for units in classes]
        self._num_units = sum(self._sizes)
        self._num_pairs = self._count_pairs(self._sizes)
        self._orders: dict[int, tuple[int, np.ndarray]] = {}

    def draw(self, start: int, end: int) -> tuple[Int[np.ndarray, "U"], list[Fragment]]:
        """Return the units between two positions, in any order.

        Units that a position divides are fragments. Each pass between them is whole.

        Args:
            start: The number of pairs before the first, from 0.
            end: The number of pairs before the one after the last.
        """
        first, last = self._find_position(start), self._find_position(end)
        fragments = []
        if first.offset:
            unit, size = self._unit(first)
            is_last = first[:2] == last[:2]
            fragments.append(
                Fragment(unit, first.offset, last.offset if is_last else size)
            )
            first = _Position(first.number, first.unit + 1, 0)
        if last.offset and first[:2] <= last[:2]:
            fragments.append(Fragment(self._unit(last)[0], 0, last.offset))
        if first[:2] > last[:2]:
            return np.zeros(0, np.int64), fragments
        begins = apportion(first.unit, self._sizes)
        ends = apportion(last.unit, self._sizes)
        parts = [
            part
            for number, (begin, end) in enumerate(zip(begins, ends, strict=True))
            for part in self._draw_class(
                number, (first.number, begin), (last.number, end)
            )
        ]
        return np.concatenate(parts or [np.zeros(0, np.int64)]), fragments

    def least_counts(self, num_pairs: int) -> list[int]:
        """Return the least number of units of the first classes, for each class.

        Entry k is a lower bound of the units of classes 0 to k among any `num_pairs`
        pairs in sequence, if each unit has one pair.
        """
        cumulative = list(itertools.accumulate(self._sizes))
        if num_pairs % self._num_units == 0:
            passes = num_pairs // self._num_units
            return [passes * count for count in cumulative]
        num_occupied = list(itertools.accumulate(size > 0 for size in self._sizes))
        counts = []
        for count, below in zip(cumulative, num_occupied, strict=True):
            share = Fraction(count, self._num_units)
            # Each class is at most half a unit ahead or behind, at either end.
            error = (1 - share) * below + share * (num_occupied[-1] - below)
            counts.append(max(0, -int(-(num_pairs * share - error) // 1)))
        return list(itertools.accumulate(counts, max))

    def most_units(self, num_pairs: int) -> int:
        """Return an upper bound of the units, fragments included, of so many pairs."""
        if num_pairs % self._num_pairs == 0:
            return num_pairs // self._num_pairs * self._num_units + 1
        density = Fraction(self._num_units, self._num_pairs)
        occupied_pairs = [
            pairs
            for pairs, size in zip(self._pairs_per_unit, self._sizes, strict=True)
            if size
        ]
        # Each class is at most half a unit ahead or behind, at either end.
        error = sum(abs(1 - pairs * density) for pairs in occupied_pairs)
        divided = 2 * (max(occupied_pairs) - 1)
        return int((num_pairs + divided) * density + error)

    def _count_pairs(self, counts: Sequence[int]) -> int:
        return sum(
            count * pairs
            for count, pairs in zip(counts, self._pairs_per_unit, strict=True)
        )

    def _find_position(self, position: int) -> _Position:
        number, offset = divmod(position, self._num_pairs)
        if self._num_units == self._num_pairs:
            return _Position(number, offset, 0)
        low, high = 0, self._num_units - 1
        while low < high:
            middle = (low + high + 1) // 2
            if self._count_pairs(apportion(middle, self._sizes)) <= offset:
                low = middle
            else:
                high = middle - 1
        return _Position(
            number, low, offset - self._count_pairs(apportion(low, self._sizes))
        )

    def _unit(self, position: _Position) -> tuple[int, int]:
        """Return the unit at a position, and the number of its pairs."""
        counts = apportion(position.unit, self._sizes)
        next_counts = apportion(position.unit + 1, self._sizes)
        [kind] = [
            n for n, (a, b) in enumerate(zip(counts, next_counts, strict=True)) if a < b
        ]
        order = self._order(kind, position.number)
        return int(order[counts[kind]]), self._pairs_per_unit[kind]

    def _draw_class(
        self, kind: int, first: tuple[int, int], last: tuple[int, int]
    ) -> list[np.ndarray]:
        """Return units of a class, from (pass, rank) to before (pass, rank)."""
        (number, begin), (last_number, end) = first, last
        if number == last_number:
            return [self._part(kind, number, begin, end)]
        return [
            self._part(kind, number, begin, self._sizes[kind]),
            *[self._classes[kind]] * (last_number - number - 1),
            self._part(kind, last_number, 0, end),
        ]

    def _part(self, kind: int, number: int, begin: int, end: int) -> np.ndarray:
        if end - begin in (0, self._sizes[kind]):  # The order does not matter.
            return self._classes[kind][: end - begin]
        return self._order(kind, number)[begin:end]

    def _order(self, kind: int, number: int) -> np.ndarray:
        """Return the units of a class in the order of a pass."""
        kept_number, order = self._orders.get(kind, (-1, self._classes[kind]))
        if kept_number != number:
            seed = [*self._seed, kind, number, PASS]
            order = self._classes[kind][token_files.shuffled(self._sizes[kind], seed)]
            self._orders[kind] = number, order
        return order


class Draws:
    """The units of each epoch of a mixture; a pure function of stage and epoch."""

    def __init__(
        self,
        mixture: Mixture,
        sequences: Sequence[UnitSequence],
        *,
        num_batches: Sequence[int],
    ) -> None:
        """Find where each stage begins in the sequences of the corpora.

        A stage continues where the epoch that it interrupts would have ended.

        Args:
            mixture: The pairs that each epoch has of each corpus.
            sequences: Those of the corpora.
            num_batches: The number of batches of an epoch of each stage.
        """
        self._quotas = [quotas.pairs for quotas in mixture.quotas]
        self._sequences = sequences
        first_batches = [quotas.first_batch for quotas in mixture.quotas]
        starts = [0] * len(sequences)
        self._starts = [starts]
        for number, (first, end) in enumerate(itertools.pairwise(first_batches)):
            num_epochs = -((first - end) // num_batches[number])
            starts = [
                start + num_epochs * quota
                for start, quota in zip(starts, self._quotas[number], strict=True)
            ]
            self._starts.append(starts)

    def epoch(
        self, stage: int, number: int
    ) -> tuple[Int[np.ndarray, "U"], list[Fragment]]:
        """Return the units of an epoch, corpus by corpus, and parts of units."""
        parts, fragments = [], []
        for sequence, start, quota in zip(
            self._sequences, self._starts[stage], self._quotas[stage], strict=True
        ):
            if not quota:
                continue
            first = start + number * quota
            units, fragments_of_corpus = sequence.draw(first, first + quota)
            parts.append(units)
            fragments += fragments_of_corpus
        return np.concatenate(parts), fragments
