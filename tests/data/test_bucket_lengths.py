"""The lengths of buckets are those that need the fewest padded tokens."""

import itertools

import hypothesis
import numpy as np
from hypothesis import strategies

from vaswani_jax.data import bucket_lengths


def padded_tokens(lengths, ends):
    """Positions if every sentence takes the smallest end that holds it."""
    return sum(min(end for end in ends if end >= length) for length in lengths)


@hypothesis.given(
    strategies.lists(strategies.integers(1, 30), min_size=1, max_size=40),
    strategies.integers(1, 5),
    strategies.integers(0, 6),
)
def test_no_other_lengths_need_fewer_padded_tokens(lengths, num_buckets, room):
    max_length = max(2, max(lengths) + room)
    ends = bucket_lengths.best_lengths(
        np.bincount(lengths), num_buckets=num_buckets, max_length=max_length
    )
    candidates = [*range(4, max_length, 4), max_length]
    assert set(ends) <= set(candidates)
    assert ends == sorted(set(ends))
    assert len(ends) <= num_buckets
    fewest = min(
        padded_tokens(lengths, subset)
        for count in range(1, num_buckets + 1)
        for subset in itertools.combinations(candidates, count)
        if subset[-1] >= max(lengths)
    )
    assert padded_tokens(lengths, ends) == fewest


def test_long_sentences_leave_few_lengths_to_try():
    ends = bucket_lengths.side_lengths(5000, max_length=5001)
    assert len(ends) < 400
    np.testing.assert_array_equal(ends[:128], np.arange(4, 516, 4))
    assert np.diff(ends[128:192]).tolist() == [8] * 63
    assert ends[-2] < 5000 <= ends[-1] <= 5001
