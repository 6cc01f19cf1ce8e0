"""The padded lengths of batches that leave the fewest positions without a token.

Section 5.1 batches pairs "by approximate sequence length"; these are the lengths.
"""

import numpy as np
from jaxtyping import Int

from vaswani_jax.data import token_files

# Bucket lengths are multiples of this.
LENGTH_MULTIPLE = 4
# Separate lengths above this are multiples of more, lest there be too many to try.
FINE_LENGTH = 512


def shared_lengths(
    token_pairs: token_files.TokenPairs, *, num_buckets: int, max_length: int
) -> tuple[list[tuple[int, int]], Int[np.ndarray, "N"]]:
    """Return the lengths of buckets, twice the same, and the bucket of each pair."""
    lengths = token_files.longer_sides(token_pairs)
    lengths += 1  # the end mark
    counts = token_files.histogram(lengths)
    ends = best_lengths(counts, num_buckets=num_buckets, max_length=max_length)
    bucket_of_length = np.searchsorted(ends, np.arange(len(counts)))
    return [(end, end) for end in ends], bucket_of_length.astype(np.int16)[lengths]


def separate_lengths(
    token_pairs: token_files.TokenPairs, *, num_buckets: int, max_length: int
) -> tuple[list[tuple[int, int]], Int[np.ndarray, "N"]]:
    """Return the lengths of buckets, source's and target's, and each pair's bucket."""
    # Pairs in a cell need the same two lengths.
    cells, ends = np.zeros(1, np.int32), []
    for side in token_pairs:
        lengths = side.lengths()
        lengths += 1  # the end mark
        longest = int(lengths.max())
        ends.append(side_lengths(longest, max_length=max_length))
        end_of_length = np.searchsorted(ends[-1], np.arange(longest + 1))
        cells = cells * len(ends[-1]) + end_of_length.astype(np.int32)[lengths]
    counts = np.zeros((len(ends[0]), len(ends[1])), np.int64)
    occupied_cells = token_files.histogram(cells)
    counts.flat[: len(occupied_cells)] = occupied_cells
    pairs = best_length_pairs(
        counts,
        source_lengths=ends[0],
        target_lengths=ends[1],
        num_buckets=num_buckets,
    )
    source, target = map(np.array, zip(*pairs, strict=True))
    bucket_of_cell = np.maximum.outer(
        np.searchsorted(source, ends[0]), np.searchsorted(target, ends[1])
    )
    return pairs, bucket_of_cell.ravel().astype(np.int16)[cells]


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


def side_lengths(longest: int, *, max_length: int) -> Int[np.ndarray, "L"]:
    """Return the lengths that one side of a bucket may have.

    Multiples of 4 up to 512, of 8 up to 1,024, of 16 up to 2,048 and so on. The last
    holds the longest sentence and may be `max_length`.

    Args:
        longest: Tokens of the longest sentence of the side.
        max_length: The largest length that a bucket may have.

    >>> side_lengths(9, max_length=10)
    array([ 4,  8, 10])
    """
    ends = [LENGTH_MULTIPLE]
    while ends[-1] < longest:
        doublings = (ends[-1] // FINE_LENGTH).bit_length()
        ends.append(ends[-1] + LENGTH_MULTIPLE * 2**doublings)
    return np.minimum(ends, max_length)


def best_length_pairs(
    counts: Int[np.ndarray, "S T"],
    *,
    source_lengths: Int[np.ndarray, "S"],
    target_lengths: Int[np.ndarray, "T"],
    num_buckets: int,
) -> list[tuple[int, int]]:
    """Return the bucket lengths, source's and target's, that need the fewest tokens.

    No length is below that of the bucket before, so each bucket holds what those before
    it hold, and a pair takes the first that holds both its sides. By dynamic
    programming over the last bucket: its cost is the sum of its lengths times the pairs
    that it holds and those before do not.

    Args:
        counts: The number of pairs that need these lengths, the smallest that hold
            them.
        source_lengths: The lengths that a bucket may have for the source, ascending.
        target_lengths: Those for the target.
        num_buckets: The largest number of buckets.

    >>> best_length_pairs(
    ...     np.array([[5, 0, 0], [0, 0, 3]]),
    ...     source_lengths=np.array([4, 8]),
    ...     target_lengths=np.array([4, 8, 12]),
    ...     num_buckets=2,
    ... )
    [(4, 4), (8, 12)]
    """
    # Index 0 on either axis stands for no bucket at all.
    source, target = (
        np.insert(ends, 0, 0) for ends in (source_lengths, target_lengths)
    )
    num_held = np.zeros((len(source), len(target)), np.int64)
    num_held[1:, 1:] = counts.cumsum(axis=0).cumsum(axis=1)
    row_lengths = source[:, None] + target
    by_length = np.argsort(row_lengths, axis=None, kind="stable")
    distinct, starts = np.unique(row_lengths.ravel()[by_length], return_index=True)
    groups = list(zip(distinct, np.split(by_length, starts[1:]), strict=True))
    unreachable = 2**60  # more tokens than there are, and far from an overflow
    cost = np.where(num_held == 0, 0, unreachable)
    costs = []
    for _ in range(num_buckets):
        costs.append(cost)
        next_cost = np.zeros_like(cost)
        # What pairs in earlier buckets save depends on the sum of the lengths alone.
        for row_length, cells in groups:
            cheapest = cost - row_length * num_held
            for axis in (0, 1):
                np.minimum.accumulate(cheapest, axis=axis, out=cheapest)
            held = row_length * num_held.flat[cells]
            next_cost.flat[cells] = cheapest.flat[cells] + held
        cost = next_cost
    pairs: list[tuple[int, int]] = []
    last = len(source_lengths), len(target_lengths)
    for cost in reversed(costs):
        if not num_held[last]:
            break
        held = tuple(slice(index + 1) for index in last)
        saved = cost[held] - row_lengths[last] * num_held[held]
        predecessor = np.unravel_index(saved.argmin(), saved.shape)
        if predecessor != last:
            pairs.append((int(source[last[0]]), int(target[last[1]])))
        last = int(predecessor[0]), int(predecessor[1])
    return pairs[::-1]
