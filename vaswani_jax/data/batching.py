"""Section 5.1: sentence pairs batched together by approximate sequence length.

The batch is global: about so many padded source and target tokens, whatever the number
of devices. Which pairs are in it depends on (seed, step) alone.
"""

import dataclasses
from collections.abc import Callable

import numpy as np
from jaxtyping import Int

from vaswani_jax.core import types
from vaswani_jax.data import token_files

LENGTH_MULTIPLE = 4
OwnRows = Callable[[int], range]  # of a number of rows, those of this process
ROW_MULTIPLE = 8  # so that 2, 4 or 8 devices share a batch evenly


@dataclasses.dataclass(frozen=True)
class Bucket:
    """One padded shape: `rows` pairs of at most `length` tokens a side."""

    length: int
    rows: int


def best_lengths(
    histogram: Int[np.ndarray, "L"], *, num_buckets: int, max_length: int
) -> list[int]:
    """Up to `num_buckets` bucket lengths that need the fewest padded tokens.

    Lengths are multiples of 4 (the last may be `max_length`). By dynamic programming
    over the histogram: the cost of a bucket is its length times its sentences.

    >>> lengths = np.bincount([3, 4, 4, 4, 20])
    >>> best_lengths(lengths, num_buckets=2, max_length=64)
    [4, 20]
    """
    longest = len(histogram) - 1
    ends = np.arange(LENGTH_MULTIPLE, longest + LENGTH_MULTIPLE, LENGTH_MULTIPLE)
    ends = np.minimum(ends, max_length)
    up_to = np.cumsum(histogram)[np.minimum(ends, longest)]
    below = np.concatenate([[0], up_to])  # sentences up to an end
    cost = np.concatenate([[0.0], np.full(len(ends), np.inf)])
    choices = []
    for _ in range(min(num_buckets, len(ends))):
        # table[j, i]: the last bucket holds lengths in (ends[i-1], ends[j-1]].
        table = cost[None, :] + (below[1:, None] - below[None, :]) * ends[:, None]
        table[np.triu_indices(len(ends), k=1, m=len(below))] = np.inf
        choices.append(table.argmin(axis=1))
        cost = np.concatenate([[0.0], table.min(axis=1)])
    chosen, end = [], len(ends)
    for choice in reversed(choices):
        if end == 0:
            break
        chosen.append(int(ends[end - 1]))
        end = int(choice[end - 1])
    return chosen[::-1]


class Batches:
    """The batches of a corpus, any of them at any time."""

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
        self._corpus = corpus
        self._seed = seed
        self._shuffle = shuffle
        lengths = token_files.longer_sides(corpus)
        lengths += 1  # the end mark
        counts = token_files.histogram(lengths)
        ends = best_lengths(counts, num_buckets=num_buckets, max_length=max_length)
        budget = min(source_tokens, target_tokens)
        self.buckets = [Bucket(end, rows_within(budget, length=end)) for end in ends]
        bucket_of_length = np.searchsorted(ends, np.arange(len(counts)))
        self._bucket_of = bucket_of_length.astype(np.int16)[lengths]
        self._counts = np.bincount(
            bucket_of_length, weights=counts, minlength=len(ends)
        ).astype(np.int64)
        self._slices = self._plan_slices()
        self._epoch = -1
        self._order = np.zeros(0, np.int64)
        self._batch_order = np.zeros(0, np.int64)

    @property
    def batches_per_epoch(self) -> int:
        """Batches that hold every pair once."""
        return len(self._slices)

    @property
    def shapes(self) -> list[tuple[int, int]]:
        """Rows and length of the batches that there are."""
        used = sorted({bucket for bucket, _, _ in self._slices})
        return [(self.buckets[n].rows, self.buckets[n].length) for n in used]

    @property
    def padding_share(self) -> float:
        """Share of the positions of an epoch's batches that hold no token."""
        shapes = [self.buckets[bucket] for bucket, _, _ in self._slices]
        positions = 2 * sum(shape.rows * shape.length for shape in shapes)
        return 1 - token_files.positions(self._corpus) / positions

    def batch_at(self, step: int, own: OwnRows | None = None) -> types.Batch:
        """The batch of update number `step`, counted from 0.

        A pure function of (seed, step): epoch after epoch, each in its own order.
        Rows beyond an epoch's last pair are padding.

        Args:
            step: Which.
            own: Of a number of rows, those to read; the others stay empty. All by
                default.
        """
        number, pairs = self._chosen(step)
        bucket = self.buckets[number]
        return self._assemble(bucket, pairs, own(bucket.rows) if own else None)

    def pairs_at(self, step: int) -> Int[np.ndarray, "N"]:
        """The pairs of `batch_at`, by their places in the corpus."""
        return self._chosen(step)[1]

    def _chosen(self, step: int) -> tuple[int, Int[np.ndarray, "N"]]:
        epoch, index = divmod(step, self.batches_per_epoch)
        self._enter(epoch)
        bucket, start, end = self._slices[self._batch_order[index]]
        return bucket, self._order[start:end]

    def empty(self, bucket: Bucket) -> types.Batch:
        """A batch of padding in a bucket's shape."""
        return self._assemble(bucket, np.zeros(0, np.int64))

    def _plan_slices(self) -> list[tuple[int, int, int]]:
        """(bucket, start, end) of every batch in the pairs ordered by bucket.

        What does not fill a bucket's last batch moves up into the next bucket, so an
        epoch has one batch that is not full. Only counts matter, so every epoch has
        the same slices.
        """
        slices, start, end = [], 0, 0
        for number, bucket in enumerate(self.buckets):
            end += int(self._counts[number])
            while end - start >= bucket.rows:
                slices.append((number, start, start + bucket.rows))
                start += bucket.rows
        if end > start:
            slices.append((len(self.buckets) - 1, start, end))
        return slices

    def _enter(self, epoch: int) -> None:
        if epoch == self._epoch:
            return
        if self._shuffle:
            pairs = token_files.shuffled(len(self._bucket_of), [self._seed, epoch])
            slices = [self._seed, epoch, 1]
            self._batch_order = token_files.shuffled(len(self._slices), slices)
        else:
            pairs = np.arange(len(self._bucket_of))
            self._batch_order = np.arange(len(self._slices))
        bucket_of = self._bucket_of[pairs]
        self._order = np.concatenate(
            [pairs[bucket_of == number] for number in range(len(self.buckets))]
        )
        self._epoch = epoch

    def _assemble(
        self, bucket: Bucket, pairs: Int[np.ndarray, "N"], own: range | None = None
    ) -> types.Batch:
        shape = (bucket.rows, bucket.length)
        source, target_in, target_out = (np.zeros(shape, np.int32) for _ in range(3))
        row = np.arange(len(pairs))
        if own is not None:
            row = row[own.start : own.stop]
        pairs = pairs[row]
        ids, lengths = self._corpus.source.rows(pairs, length=bucket.length)
        source[row] = ids
        source[row, lengths] = types.EOS_ID
        ids, lengths = self._corpus.target.rows(pairs, length=bucket.length)
        target_in[row, 1:] = ids[:, :-1]
        target_in[row, 0] = types.BOS_ID
        target_out[row] = ids
        target_out[row, lengths] = types.EOS_ID
        return types.Batch(source, target_in, target_out)


def rows_within(budget: int, *, length: int) -> int:
    """Rows of so many tokens that fit a budget, evenly divisible where many do."""
    rows = budget // length
    if rows >= ROW_MULTIPLE:
        rows -= rows % ROW_MULTIPLE
    return max(1, rows)
