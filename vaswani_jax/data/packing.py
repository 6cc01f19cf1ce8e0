"""Section 5.1's batches, packed: several pairs in a row, one static shape.

Rows are filled from the histogram of lengths, longest first (the idea of Krell et al.,
2021, "Efficient sequence packing without cross-contamination"), so that planning takes
seconds for tens of millions of pairs.
"""

import numpy as np
from jaxtyping import Int

from vaswani_jax.core import config, types
from vaswani_jax.data import batching, token_files


def patterns(
    counts: Int[np.ndarray, "L"], *, row_length: int
) -> list[tuple[list[int], int]]:
    """Fillings of a row, as lengths, and how many rows have each.

    Args:
        counts: How many pairs have each length; the index is the length.
        row_length: Tokens of a row.

    >>> patterns(np.array([0, 0, 3, 2, 1]), row_length=6)
    [([4, 2], 1), ([3, 3], 1), ([2, 2], 1)]
    """
    left = counts.astype(np.int64)
    found = []
    while left.any():
        filling: list[int] = []
        space, length = row_length, int(np.flatnonzero(left)[-1])
        while length:
            taken = min(space // length, int(left[length]))
            filling += [length] * taken
            space -= taken * length
            fitting = np.flatnonzero(left[: min(space + 1, length)])
            length = int(fitting[-1]) if len(fitting) else 0
        used = np.bincount(filling, minlength=len(left))
        times = int((left[used > 0] // used[used > 0]).min())
        left -= times * used
        found.append((filling, times))
    return found


class PackedBatches:
    """Batches whose rows hold several pairs, any of them at any time.

    Which pairs share a row depends on the seed alone, so that every epoch has as many
    rows; their order depends on (seed, epoch).
    """

    def __init__(
        self,
        corpus: token_files.Corpus,
        *,
        source_tokens: int,
        target_tokens: int,
        row_length: int,
        seed: int,
    ) -> None:
        self._corpus = corpus
        self._seed = seed
        budget = min(source_tokens, target_tokens)
        rows = batching.rows_within(budget, length=row_length)
        self.buckets = [batching.Bucket(row_length, rows)]
        self._pairs, self._starts = self._plan(row_length)
        self._epoch = -1
        self._order = np.zeros(0, np.int64)

    @property
    def batches_per_epoch(self) -> int:
        """Batches that hold every pair once."""
        return -(-(len(self._starts) - 1) // self.buckets[0].rows)

    @property
    def padding_share(self) -> float:
        """Share of the positions of an epoch's batches that hold no token."""
        shape = self.buckets[0]
        positions = 2 * self.batches_per_epoch * shape.rows * shape.length
        return 1 - token_files.positions(self._corpus) / positions

    def batch_at(self, step: int, own: batching.OwnRows | None = None) -> types.Batch:
        """The batch of update number `step`, counted from 0.

        A pure function of (seed, step). Rows beyond an epoch's last are padding.

        Args:
            step: Which.
            own: Of a number of rows, those to read; the others stay empty. All by
                default.
        """
        rows, bucket = self._rows_at(step), self.buckets[0]
        kept = own(bucket.rows) if own else range(bucket.rows)
        rows = rows[kept.start : kept.stop]
        return self._assemble(rows, kept.start) if len(rows) else self.empty(bucket)

    def pairs_at(self, step: int) -> Int[np.ndarray, "N"]:
        """The pairs of `batch_at`, by their places in the corpus."""
        return self._pairs_of(self._rows_at(step))[0]

    def _rows_at(self, step: int) -> Int[np.ndarray, "R"]:
        epoch, index = divmod(step, self.batches_per_epoch)
        if epoch != self._epoch:
            rows = len(self._starts) - 1
            self._order = token_files.shuffled(rows, [self._seed, epoch])
            self._epoch = epoch
        rows = self.buckets[0].rows
        return self._order[index * rows : (index + 1) * rows]

    def empty(self, bucket: batching.Bucket) -> types.Batch:
        """A batch of padding in the shape of all batches."""
        shape = (bucket.rows, bucket.length)
        source, target_in, target_out, *both = (np.zeros(shape, np.int32),) * 5
        return types.Batch(source, target_in, target_out, types.Segments(*both))

    def _plan(self, row_length: int) -> tuple[np.ndarray, np.ndarray]:
        """Pairs in the order of the rows, and where each row starts in them."""
        lengths = token_files.longer_sides(self._corpus)
        lengths += 1  # the end mark
        counts = token_files.histogram(lengths)
        longest = len(counts) - 1
        if longest > row_length:
            raise ValueError(
                f"a pair of {longest} tokens does not fit a packed row of {row_length}"
            )
        by_length = token_files.shuffled(len(lengths), [self._seed])
        # Keys of 16 bits are sorted in linear time.
        kind = np.uint16 if longest < 2**16 else np.int64
        keys = lengths.astype(kind)[by_length]
        by_length = by_length[np.argsort(keys, kind="stable")]
        following = np.cumsum(counts) - counts  # the next pair of each length
        pairs = np.empty_like(by_length)
        sizes, filled = [], 0
        for filling, times in patterns(counts, row_length=row_length):
            end = filled + times * len(filling)
            block = pairs[filled:end].reshape(times, len(filling))
            for column, length in enumerate(filling):
                first = following[length]
                block[:, column] = by_length[first : first + times]
                following[length] += times
            sizes.append(np.full(times, len(filling), np.int64))
            filled = end
        starts = np.concatenate([[0], np.cumsum(np.concatenate(sizes))])
        return pairs, starts

    def _pairs_of(self, rows: Int[np.ndarray, "R"]) -> tuple[Int[np.ndarray, "N"], ...]:
        """Pairs, the row of each, its number there, and each row's first pair."""
        counts = self._starts[rows + 1] - self._starts[rows]
        row = np.repeat(np.arange(len(rows)), counts)
        first = np.cumsum(counts) - counts
        number = np.arange(len(row)) - first[row]
        return self._pairs[self._starts[rows][row] + number], row, number, first

    def _assemble(self, rows: Int[np.ndarray, "R"], start: int) -> types.Batch:
        shape = (self.buckets[0].rows, self.buckets[0].length)
        pairs, row, number, first = self._pairs_of(rows)

        def side(file: token_files.TokenFile) -> tuple[np.ndarray, ...]:
            """Sentences with their end marks one after the other, where each begins
            there, where their ids go, and segments."""
            joined, lengths = file.joined(pairs)
            sizes = lengths + 1
            before = np.cumsum(sizes) - sizes
            ids = np.insert(joined, np.cumsum(lengths), types.EOS_ID)
            offset = (start + row) * shape[1] - before[first][row]
            places = np.repeat(offset, sizes) + np.arange(len(ids))
            segments = np.zeros(shape, np.int32)
            segments.flat[places] = np.repeat(number + 1, sizes)
            return ids, before, places, segments

        source, target_in, target_out = (np.zeros(shape, np.int32) for _ in range(3))
        ids, _, places, of_source = side(self._corpus.source)
        source.flat[places] = ids
        ids, before, places, of_target = side(self._corpus.target)
        target_out.flat[places] = ids
        shifted = np.roll(ids, 1)
        shifted[before] = types.BOS_ID
        target_in.flat[places] = shifted
        segments = types.Segments(of_source, of_target)
        return types.Batch(source, target_in, target_out, segments)


def training_batches(
    data: config.DataConfig, corpus: token_files.Corpus, *, seed: int
) -> batching.Batches | PackedBatches:
    """Return the batches that training takes from a corpus, as `data.batching` says."""
    if data.batching == "packed":
        return PackedBatches(
            corpus,
            source_tokens=data.source_tokens_per_batch,
            target_tokens=data.target_tokens_per_batch,
            row_length=data.packed_length,
            seed=seed,
        )
    return batching.Batches(
        corpus,
        source_tokens=data.source_tokens_per_batch,
        target_tokens=data.target_tokens_per_batch,
        num_buckets=data.num_buckets,
        max_length=data.max_length,
        seed=seed,
        shuffle=True,
    )
