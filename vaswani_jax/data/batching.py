"""Section 5.1: batch sentence pairs together by approximate sequence length.

A batch is global: its size does not depend on the number of devices. Which pairs it
holds depends on the seed and the step alone.
"""

import abc
import collections
import dataclasses
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from jaxtyping import Int

from vaswani_jax.core import types
from vaswani_jax.data import token_files

# Bucket lengths are multiples of this.
LENGTH_MULTIPLE = 4
# With this multiple of rows, 2, 4 or 8 devices share a batch evenly.
ROW_MULTIPLE = 8
# From the rows of a global batch to the rows that this process reads.
LocalRows = Callable[[int], range]


@dataclasses.dataclass(frozen=True)
class Bucket:
    """One padded shape: `rows` pairs of at most `length` tokens a side."""

    length: int
    rows: int


def best_lengths(
    histogram: Int[np.ndarray, "L"], *, num_buckets: int, max_length: int
) -> list[int]:
    """Return the bucket lengths that need the fewest padded tokens.

    By dynamic programming over the histogram: the cost of a bucket is its length times
    its sentences. Lengths are multiples of 4; the last may be `max_length`.

    Args:
        histogram: The number of sentences of each length; the index is the length.
        num_buckets: The largest number of lengths.
        max_length: The largest length that a bucket may have.

    >>> lengths = np.bincount([3, 4, 4, 4, 20])
    >>> best_lengths(lengths, num_buckets=2, max_length=64)
    [4, 20]
    """
    longest = len(histogram) - 1
    ends = np.arange(LENGTH_MULTIPLE, longest + LENGTH_MULTIPLE, LENGTH_MULTIPLE)
    ends = np.minimum(ends, max_length)
    # num_up_to[i]: sentences of at most ends[i - 1] tokens.
    num_up_to = np.cumsum(histogram)[np.minimum(ends, longest)]
    num_up_to = np.concatenate([[0], num_up_to])
    cost = np.concatenate([[0.0], np.full(len(ends), np.inf)])
    choices = []
    for _ in range(min(num_buckets, len(ends))):
        # table[j, i]: the last bucket holds lengths in (ends[i-1], ends[j-1]].
        table = (
            cost[None, :] + (num_up_to[1:, None] - num_up_to[None, :]) * ends[:, None]
        )
        table[np.triu_indices(len(ends), k=1, m=len(num_up_to))] = np.inf
        choices.append(table.argmin(axis=1))
        cost = np.concatenate([[0.0], table.min(axis=1)])
    lengths, end = [], len(ends)
    for choice in reversed(choices):
        if end == 0:
            break
        lengths.append(int(ends[end - 1]))
        end = int(choice[end - 1])
    return lengths[::-1]


class Slice(NamedTuple):
    """The rows of a batch in the order of an epoch, and the index of their bucket."""

    bucket: int
    start: int
    end: int


class Batches(abc.ABC):
    """The batches of a corpus, in any order: `batch_at` is a pure function.

    Only the order of the last epoch asked for is kept in memory.

    Attributes:
        buckets: The padded shapes of the batches.
    """

    def __init__(
        self, corpus: token_files.Corpus, *, buckets: list[Bucket], slices: list[Slice]
    ) -> None:
        self.buckets = buckets
        self._corpus = corpus
        self._slices = slices
        self._epoch = -1
        self._order = self._batch_order = np.zeros(0, np.int64)

    @property
    def batches_per_epoch(self) -> int:
        """Number of batches that together hold every pair once."""
        return len(self._slices)

    @property
    def shapes(self) -> list[tuple[int, int]]:
        """Rows and length of each shape of batch in an epoch."""
        numbers = sorted({batch.bucket for batch in self._slices})
        return [(self.buckets[n].rows, self.buckets[n].length) for n in numbers]

    @property
    def num_batches(self) -> dict[Bucket, int]:
        """Number of batches of each shape in an epoch."""
        counts = collections.Counter(batch.bucket for batch in self._slices)
        return {bucket: counts[n] for n, bucket in enumerate(self.buckets)}

    @property
    def padding_share(self) -> float:
        """Share of the positions of an epoch's batches that hold no token."""
        shapes = [self.buckets[batch.bucket] for batch in self._slices]
        positions = 2 * sum(shape.rows * shape.length for shape in shapes)
        return 1 - token_files.positions(self._corpus) / positions

    def batch_at(self, step: int, local_rows: LocalRows | None = None) -> types.Batch:
        """Return the batch of an update.

        A pure function of (seed, step), epoch after epoch.
        Rows beyond an epoch's last pair are padding.

        Args:
            step: The number of the update, from 0.
            local_rows: Returns the rows to read; the others are padding. By default
                all rows are read.
        """
        bucket, rows = self._rows_at(step)
        selection = local_rows(bucket.rows) if local_rows else range(bucket.rows)
        return self._assemble(
            bucket, rows[selection.start : selection.stop], first_row=selection.start
        )

    def pairs_at(self, step: int) -> Int[np.ndarray, "N"]:
        """Return the indices in the corpus of the pairs of `batch_at`."""
        return self._rows_at(step)[1]

    def empty(self, bucket: Bucket) -> types.Batch:
        """Return a batch of padding in the shape of a bucket."""
        return self._assemble(bucket, np.zeros(0, np.int64), first_row=0)

    def _rows_at(self, step: int) -> tuple[Bucket, Int[np.ndarray, "R"]]:
        epoch, index = divmod(step, self.batches_per_epoch)
        if epoch != self._epoch:
            self._order, self._batch_order = self._order_epoch(epoch)
            self._epoch = epoch
        number, start, end = self._slices[self._batch_order[index]]
        return self.buckets[number], self._order[start:end]

    @abc.abstractmethod
    def _order_epoch(self, epoch: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the order of the rows and of the batches of an epoch."""

    @abc.abstractmethod
    def _assemble(
        self, bucket: Bucket, rows: Int[np.ndarray, "R"], *, first_row: int
    ) -> types.Batch:
        """Return a batch with these rows from `first_row` on, and padding."""


class BucketedBatches(Batches):
    """Batches with one pair in a row, of similar length."""

    def __init__(
        self,
        corpus: token_files.Corpus,
        *,
        source_tokens: int,
        target_tokens: int,
        num_buckets: int,
        max_length: int,
        seed: int,
        shuffle: bool,
    ) -> None:
        """Plan the batches of an epoch.

        Args:
            corpus: The pairs.
            source_tokens: Padded source tokens of a batch, at most.
            target_tokens: Padded target tokens of a batch, at most.
            num_buckets: The largest number of padded lengths.
            max_length: Tokens of the longest sentence, with its end mark.
            seed: Decides the order of the pairs.
            shuffle: Whether to draw a new order for each epoch.
        """
        lengths = token_files.longer_sides(corpus)
        lengths += 1  # the end mark
        counts = token_files.histogram(lengths)
        ends = best_lengths(counts, num_buckets=num_buckets, max_length=max_length)
        budget = min(source_tokens, target_tokens)
        buckets = [Bucket(end, rows_within(budget, length=end)) for end in ends]
        bucket_of_length = np.searchsorted(ends, np.arange(len(counts)))
        bucket_counts = np.bincount(
            bucket_of_length, weights=counts, minlength=len(ends)
        ).astype(np.int64)
        super().__init__(
            corpus, buckets=buckets, slices=plan_slices(bucket_counts, buckets)
        )
        self._seed = seed
        self._shuffle = shuffle
        self._pair_buckets = bucket_of_length.astype(np.int16)[lengths]

    def _order_epoch(self, epoch: int) -> tuple[np.ndarray, np.ndarray]:
        if self._shuffle:
            pairs = token_files.shuffled(len(self._pair_buckets), [self._seed, epoch])
            batch_seed = [self._seed, epoch, 1]
            batch_order = token_files.shuffled(len(self._slices), batch_seed)
        else:
            pairs = np.arange(len(self._pair_buckets))
            batch_order = np.arange(len(self._slices))
        buckets = self._pair_buckets[pairs]
        order = np.concatenate(
            [pairs[buckets == number] for number in range(len(self.buckets))]
        )
        return order, batch_order

    def _assemble(
        self, bucket: Bucket, rows: Int[np.ndarray, "R"], *, first_row: int
    ) -> types.Batch:
        shape = (bucket.rows, bucket.length)
        source, target_in, target_out = (np.zeros(shape, np.int32) for _ in range(3))
        row = first_row + np.arange(len(rows))
        ids, lengths = self._corpus.source.rows(rows, length=bucket.length)
        source[row] = ids
        source[row, lengths] = types.EOS_ID
        ids, lengths = self._corpus.target.rows(rows, length=bucket.length)
        target_in[row, 1:] = ids[:, :-1]
        target_in[row, 0] = types.BOS_ID
        target_out[row] = ids
        target_out[row, lengths] = types.EOS_ID
        return types.Batch(source, target_in, target_out)


def plan_slices(counts: Int[np.ndarray, "K"], buckets: list[Bucket]) -> list[Slice]:
    """Return the batches of an epoch, in pairs ordered by bucket.

    Pairs that do not fill a bucket's last batch move up into the next bucket, so one
    batch of an epoch is not full. The slices depend on the counts alone, so every epoch
    has the same.
    """
    slices, start, end = [], 0, 0
    for number, bucket in enumerate(buckets):
        end += int(counts[number])
        while end - start >= bucket.rows:
            slices.append(Slice(number, start, start + bucket.rows))
            start += bucket.rows
    if end > start:
        slices.append(Slice(len(buckets) - 1, start, end))
    return slices


def rows_within(budget: int, *, length: int) -> int:
    """Return how many rows of a length fit a budget of tokens.

    A number above 8 is rounded down to a multiple of 8.
    """
    rows = budget // length
    if rows >= ROW_MULTIPLE:
        rows -= rows % ROW_MULTIPLE
    return max(1, rows)
