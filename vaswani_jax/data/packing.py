"""Section 5.1's batches, packed: several pairs in a row, one static shape.

Rows are filled from the histogram of lengths, longest first. The idea is that of Krell
et al., 2021, "Efficient sequence packing without cross-contamination". Planning takes
seconds for tens of millions of pairs.
"""

import numpy as np
from jaxtyping import Int

from vaswani_jax.core import config, types
from vaswani_jax.data import batching, token_files


def patterns(
    counts: Int[np.ndarray, "L"], *, row_length: int
) -> list[tuple[list[int], int]]:
    """Return fillings of a row as lists of lengths, and how many rows have each.

    Args:
        counts: The number of pairs of each length; the index is the length.
        row_length: Tokens of a row.

    >>> patterns(np.array([0, 0, 3, 2, 1]), row_length=6)
    [([4, 2], 1), ([3, 3], 1), ([2, 2], 1)]
    """
    remaining = counts.astype(np.int64)
    fillings = []
    while remaining.any():
        filling: list[int] = []
        space, length = row_length, int(np.flatnonzero(remaining)[-1])
        while length:
            number = min(space // length, int(remaining[length]))
            filling += [length] * number
            space -= number * length
            fitting_lengths = np.flatnonzero(remaining[: min(space + 1, length)])
            length = int(fitting_lengths[-1]) if len(fitting_lengths) else 0
        counts_per_row = np.bincount(filling, minlength=len(remaining))
        is_used = counts_per_row > 0
        num_rows = int((remaining[is_used] // counts_per_row[is_used]).min())
        remaining -= num_rows * counts_per_row
        fillings.append((filling, num_rows))
    return fillings


class PackedBatches(batching.Batches):
    """Batches whose rows hold several pairs.

    Which pairs share a row depends on the seed alone, so every epoch has the same
    rows. Their order depends on the seed and the epoch.
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
        """Plan the rows.

        Args:
            corpus: The pairs.
            source_tokens: Padded source tokens of a batch, at most.
            target_tokens: Padded target tokens of a batch, at most.
            row_length: Tokens of a row.
            seed: Decides which pairs share a row, and the order of the rows.

        Raises:
            ValueError: A pair is longer than a row.
        """
        self._pairs, self._starts = plan_rows(corpus, row_length=row_length, seed=seed)
        self._num_rows = len(self._starts) - 1
        self._seed = seed
        budget = min(source_tokens, target_tokens)
        size = batching.rows_within(budget, length=row_length)
        super().__init__(
            corpus,
            buckets=[batching.Bucket(size, row_length, row_length)],
            slices=[
                batching.Slice(0, start, min(start + size, self._num_rows))
                for start in range(0, self._num_rows, size)
            ],
        )

    def pairs_at(self, step: int) -> Int[np.ndarray, "N"]:
        return self._pairs_of(super().pairs_at(step))[0]

    def _order_epoch(self, epoch: int) -> tuple[np.ndarray, np.ndarray]:
        order = token_files.shuffled(self._num_rows, [self._seed, epoch])
        return order, np.arange(self.batches_per_epoch)

    def _pairs_of(self, rows: Int[np.ndarray, "R"]) -> tuple[Int[np.ndarray, "N"], ...]:
        """Return pairs, the row and the column of each, and each row's first pair."""
        counts = self._starts[rows + 1] - self._starts[rows]
        row = np.repeat(np.arange(len(rows)), counts)
        first = np.cumsum(counts) - counts
        column = np.arange(len(row)) - first[row]
        return self._pairs[self._starts[rows][row] + column], row, column, first

    def _assemble(
        self, bucket: batching.Bucket, rows: Int[np.ndarray, "R"], *, first_row: int
    ) -> types.Batch:
        shape = (bucket.rows, bucket.source_length)
        pairs, row, column, first = self._pairs_of(rows)

        def side(file: token_files.TokenFile) -> tuple[np.ndarray, ...]:
            """Return sentences with their end marks one after the other, the index of
            the first id of each, the position of each id in the batch, and segments.
            """
            joined, lengths = file.joined(pairs)
            sizes = lengths + 1
            starts = np.cumsum(sizes) - sizes
            ids = np.insert(joined, np.cumsum(lengths), types.EOS_ID)
            offsets = (first_row + row) * shape[1] - starts[first][row]
            positions = np.repeat(offsets, sizes) + np.arange(len(ids))
            segments = np.zeros(shape, np.int32)
            segments.flat[positions] = np.repeat(column + 1, sizes)
            return ids, starts, positions, segments

        source, target_in, target_out = (np.zeros(shape, np.int32) for _ in range(3))
        ids, _, positions, source_segments = side(self._corpus.source)
        source.flat[positions] = ids
        ids, starts, positions, target_segments = side(self._corpus.target)
        target_out.flat[positions] = ids
        shifted = np.roll(ids, 1)
        shifted[starts] = types.BOS_ID
        target_in.flat[positions] = shifted
        segments = types.Segments(source_segments, target_segments)
        return types.Batch(source, target_in, target_out, segments)


def plan_rows(
    corpus: token_files.Corpus, *, row_length: int, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the pairs row by row, and the index of the first pair of each row.

    Raises:
        ValueError: A pair is longer than a row.
    """
    lengths = token_files.longer_sides(corpus)
    lengths += 1  # the end mark
    counts = token_files.histogram(lengths)
    longest = len(counts) - 1
    if longest > row_length:
        raise ValueError(
            f"a pair of {longest} tokens does not fit a packed row of {row_length}"
        )
    by_length = token_files.shuffled(len(lengths), [seed])
    # Keys of 16 bits are sorted in linear time.
    kind = np.uint16 if longest < 2**16 else np.int64
    keys = lengths.astype(kind)[by_length]
    by_length = by_length[np.argsort(keys, kind="stable")]
    next_of_length = np.cumsum(counts) - counts
    pairs = np.empty_like(by_length)
    sizes, start = [], 0
    for filling, num_rows in patterns(counts, row_length=row_length):
        end = start + num_rows * len(filling)
        block = pairs[start:end].reshape(num_rows, len(filling))
        for column, length in enumerate(filling):
            first = next_of_length[length]
            block[:, column] = by_length[first : first + num_rows]
            next_of_length[length] += num_rows
        sizes.append(np.full(num_rows, len(filling), np.int64))
        start = end
    starts = np.concatenate([[0], np.cumsum(np.concatenate(sizes))])
    return pairs, starts


def training_batches(
    data: config.DataConfig, corpus: token_files.Corpus, *, seed: int
) -> batching.Batches:
    """Return the batches of a training corpus, by length or packed."""
    if data.batching == "packed":
        return PackedBatches(
            corpus,
            source_tokens=data.source_tokens_per_batch,
            target_tokens=data.target_tokens_per_batch,
            row_length=data.packed_length,
            seed=seed,
        )
    return batching.BucketedBatches(
        corpus,
        source_tokens=data.source_tokens_per_batch,
        target_tokens=data.target_tokens_per_batch,
        num_buckets=data.num_buckets,
        bucket_lengths=data.bucket_lengths,
        max_length=data.max_length,
        seed=seed,
        shuffle=True,
    )
