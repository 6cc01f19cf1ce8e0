"""Section 5.1's batches, packed: several pairs in a row, one static shape.

Rows are filled from the histogram of lengths, longest first. The idea is that of Krell
et al., 2021, "Efficient sequence packing without cross-contamination". Planning takes
seconds for tens of millions of pairs.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Int

from vaswani_jax.core import types
from vaswani_jax.data import batching, token_files
from vaswani_jax.data.mixture import Mixture
from vaswani_jax.data.sequences import Draws, Fragment, UnitSequence

# The last number of the seed of the rows of a corpus.
ROWS = 6


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


class Rows(NamedTuple):
    """Rows of pairs that follow one another: where each starts, and how many it has."""

    starts: Int[np.ndarray, "R"]
    counts: Int[np.ndarray, "R"]


class Layout(NamedTuple):
    """Pairs in the order of the rows that they fill, and these rows."""

    pairs: Int[np.ndarray, "N"]
    rows: Rows


class PackedBatches(batching.Batches):
    """Batches whose rows hold several pairs.

    Which pairs share a row depends on the seed alone, so every epoch has the same
    rows. Their order depends on the seed and the epoch. In a mixture each corpus has
    rows of its own; an epoch divides a few, to have the exact pairs of each corpus. A
    first stage with every pair once has the rows of one text.
    """

    def __init__(
        self,
        token_pairs: token_files.TokenPairs,
        *,
        source_tokens: int,
        target_tokens: int,
        row_length: int,
        seed: int,
        mixture: Mixture | None = None,
    ) -> None:
        """Plan the rows.

        Args:
            token_pairs: The pairs.
            source_tokens: Padded source tokens of a batch, at most.
            target_tokens: Padded target tokens of a batch, at most.
            row_length: Tokens of a row.
            seed: Decides which pairs share a row, and the order of the rows.
            mixture: What each epoch has of parts of the pairs; if None, every pair.

        Raises:
            ValueError: A pair is longer than a row.
        """
        self._token_pairs = token_pairs
        self._seed = seed
        self._draws: Draws | None = None
        lengths = token_files.longer_sides(token_pairs)
        lengths += 1  # the end mark
        budget = min(source_tokens, target_tokens)
        size = batching.rows_within(budget, length=row_length)
        self._plain_layout: Layout | None = None
        epoch_plans = []
        if not mixture or mixture.begins_plain:
            pairs, starts = plan_rows(lengths, row_length=row_length, seed=[seed])
            self._layout = Layout(pairs, Rows(starts[:-1], np.diff(starts)))
            self._plain_layout = self._layout
            epoch_plans = [batching.EpochPlan(0, _slices(len(starts) - 1, size=size))]
        if mixture:
            sequences = self._plan_mixture(mixture, lengths, row_length=row_length)
            # The most rows: an epoch that has fewer of them divides some.
            for quotas in mixture.quotas[len(epoch_plans) :]:
                num_rows = sum(
                    min(sequence.most_units(count), count)
                    for sequence, count in zip(sequences, quotas.pairs, strict=True)
                    if count
                )
                epoch_plans.append(
                    batching.EpochPlan(quotas.first_batch, _slices(num_rows, size=size))
                )
            self._draws = Draws(
                mixture,
                sequences,
                num_batches=[len(plan.slices) for plan in epoch_plans],
            )
        super().__init__(
            buckets=[batching.Bucket(size, row_length, row_length)],
            epoch_plans=epoch_plans,
            tokens_per_epoch=batching.tokens_per_epoch(token_pairs, mixture),
        )

    def _plan_mixture(
        self, mixture: Mixture, lengths: Int[np.ndarray, "N"], *, row_length: int
    ) -> list[UnitSequence]:
        """Plan the rows of each corpus, and return their sequences."""
        pairs, starts, sequences = [], [], []
        num_rows = num_pairs = 0
        for number, part in enumerate(mixture.parts):
            pairs_of_corpus, starts_of_corpus = plan_rows(
                lengths[part], row_length=row_length, seed=[self._seed, number, ROWS]
            )
            pairs.append(part.start + pairs_of_corpus)
            starts.append(num_pairs + starts_of_corpus[:-1])
            counts = np.diff(starts_of_corpus)
            kinds = np.unique(counts).tolist()
            sequences.append(
                UnitSequence(
                    [num_rows + token_files.indices_of(kind, counts) for kind in kinds],
                    pairs_per_unit=kinds,
                    seed=[self._seed, number],
                )
            )
            num_rows += len(counts)
            num_pairs += len(pairs_of_corpus)
        starts.append(np.array([num_pairs]))
        ends = np.concatenate(starts)
        self._layout = self._mixed_layout = Layout(
            np.concatenate(pairs), Rows(ends[:-1], np.diff(ends))
        )
        return sequences

    def pairs_at(self, index: int) -> Int[np.ndarray, "N"]:
        return self._pairs_of(super().pairs_at(index))[0]

    def _order_epoch(self, stage: int, epoch: int) -> tuple[np.ndarray, np.ndarray]:
        slices = self.epoch_plans[stage].slices
        num_rows = slices[-1].end
        seed = [self._seed, epoch]
        if stage == 0 and self._plain_layout:
            self._layout = self._plain_layout
        elif self._draws:
            rows, fragments = self._draws.epoch(stage, epoch)
            self._layout = self._mixed_layout._replace(
                rows=divide_rows(
                    self._mixed_layout.rows, rows, fragments, num_rows=num_rows
                )
            )
            seed = [self._seed, stage, epoch, batching.EPOCH]
        return token_files.shuffled(num_rows, seed), np.arange(len(slices))

    def _pairs_of(self, rows: Int[np.ndarray, "R"]) -> tuple[Int[np.ndarray, "N"], ...]:
        """Return pairs, the row and the column of each, and each row's first pair."""
        pairs, (starts, counts) = self._layout
        counts = counts[rows]
        row = np.repeat(np.arange(len(rows)), counts)
        first = np.cumsum(counts) - counts
        column = np.arange(len(row)) - first[row]
        return pairs[starts[rows][row] + column], row, column, first

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
        ids, _, positions, source_segments = side(self._token_pairs.source)
        source.flat[positions] = ids
        ids, starts, positions, target_segments = side(self._token_pairs.target)
        target_out.flat[positions] = ids
        shifted = np.roll(ids, 1)
        shifted[starts] = types.BOS_ID
        target_in.flat[positions] = shifted
        segments = types.Segments(source_segments, target_segments)
        return types.Batch(source, target_in, target_out, segments)


def divide_rows(
    planned: Rows,
    rows: Int[np.ndarray, "U"],
    fragments: Sequence[Fragment],
    *,
    num_rows: int,
) -> Rows:
    """Return the rows of an epoch: as many as `num_rows`, none of them empty.

    Args:
        planned: All rows that there are.
        rows: Those of the epoch, by their indices.
        fragments: The parts of rows that the epoch has besides.
        num_rows: The number of rows to return; single pairs are divided from the first
            rows until there are so many.
    """
    parts = [
        (planned.starts[row] + start, end - start) for row, start, end in fragments
    ]
    starts, counts = (
        np.concatenate([row_values[rows], np.array(part_values, np.int64)])
        for row_values, part_values in zip(
            planned, zip(*parts, strict=True) if parts else ((), ()), strict=True
        )
    )
    single_pairs: list[int] = []
    for row, count in enumerate(counts):
        missing = num_rows - len(starts) - len(single_pairs)
        if not missing:
            break
        num_single = min(int(count) - 1, missing)
        first = int(starts[row])
        single_pairs += range(first, first + num_single)
        starts[row] += num_single
        counts[row] -= num_single
    ones = np.ones(len(single_pairs), np.int64)
    return Rows(
        np.concatenate([starts, np.array(single_pairs, np.int64)]),
        np.concatenate([counts, ones]),
    )


def _slices(num_rows: int, *, size: int) -> list[batching.Slice]:
    """Return batches of so many rows; the last may have fewer."""
    return [
        batching.Slice(0, start, min(start + size, num_rows))
        for start in range(0, num_rows, size)
    ]


def plan_rows(
    lengths: Int[np.ndarray, "N"], *, row_length: int, seed: list[int]
) -> tuple[np.ndarray, np.ndarray]:
    """Return the pairs row by row, and the index of the first pair of each row.

    Args:
        lengths: Tokens of the longer side of each pair.
        row_length: Tokens of a row.
        seed: Decides which pairs share a row.

    Raises:
        ValueError: A pair is longer than a row.
    """
    counts = token_files.histogram(lengths)
    longest = len(counts) - 1
    if longest > row_length:
        raise ValueError(
            f"a pair of {longest} tokens does not fit a packed row of {row_length}"
        )
    by_length = token_files.shuffled(len(lengths), seed)
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
