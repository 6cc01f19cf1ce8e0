"""Packed rows: every pair once, whole, within the row, and few rows."""

import itertools

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies

from tests.data import small_corpora
from vaswani_jax.core import types
from vaswani_jax.data import packing


def packed(lengths, **overrides):
    options = {
        "source_tokens": 90,
        "target_tokens": 90,
        "row_length": 30,
        "seed": 1,
    }
    return packing.PackedBatches(
        small_corpora.token_pairs_of(lengths), **(options | overrides)
    )


def unpacked(batch):
    """Each pair of a batch as (source, target_in, target_out), read by its segment."""
    for row in range(batch.source.shape[0]):
        source_segments, target_segments = (side[row] for side in batch.segments)
        numbers = set(source_segments.tolist()) | set(target_segments.tolist())
        for number in sorted(numbers - {0}):
            yield tuple(
                ids[row][segments == number].tolist()
                for ids, segments in (
                    (batch.source, source_segments),
                    (batch.target_in, target_segments),
                    (batch.target_out, target_segments),
                )
            )


@strategies.composite
def plans(draw):
    row_length = draw(strategies.integers(2, 40))
    # No token but the end: token files may have it, the preparation leaves it out.
    length = strategies.integers(0, row_length - 1)
    lengths = draw(
        strategies.lists(strategies.tuples(length, length), min_size=1, max_size=90)
    )
    budget = strategies.integers(row_length, 10 * row_length)
    return lengths, {
        "row_length": row_length,
        "source_tokens": draw(budget),
        "target_tokens": draw(budget),
        "seed": draw(strategies.integers(0, 2**40)),
    }


@hypothesis.given(plans(), strategies.integers(0, 3))
def test_every_pair_is_in_an_epoch_once_as_it_was_written(plan, number):
    lengths, options = plan
    pairs = []
    for batch in small_corpora.epoch(packed(lengths, **options), number):
        assert batch.source.shape == batch.target_out.shape
        rows, row_length = batch.source.shape
        assert row_length == options["row_length"]
        budget = min(options["source_tokens"], options["target_tokens"])
        assert rows * row_length <= budget
        for ids, segments in zip(
            (batch.source, batch.target_out), batch.segments, strict=True
        ):
            np.testing.assert_array_equal(segments == 0, ids == types.PAD_ID)
        pairs += unpacked(batch)
    expected = []
    for pair, (source, target) in enumerate(lengths):
        words = small_corpora.sentence(pair, length=target, side=1)
        expected.append(
            (
                [*small_corpora.sentence(pair, length=source, side=0), types.EOS_ID],
                [types.BOS_ID, *words],
                [*words, types.EOS_ID],
            )
        )
    assert sorted(pairs) == sorted(expected)


@hypothesis.given(plans())
def test_the_segments_of_a_row_are_numbered_from_its_start_without_gaps(plan):
    lengths, options = plan
    for batch in small_corpora.epoch(packed(lengths, **options), 0):
        for row in np.concatenate(batch.segments):
            numbers = [number for number, _ in itertools.groupby(row.tolist())]
            words = [number for number in numbers if number]
            assert words == list(range(1, len(words) + 1))
            assert 0 not in numbers[:-1]


def test_a_batch_is_a_function_of_seed_and_index_alone():
    lengths = small_corpora.random_lengths(60, longest=20, seed=3)
    batches = packed(lengths)
    for step in (7, 0, 23, 8):
        batch, expected = batches.batch_at(step), packed(lengths).batch_at(step)
        np.testing.assert_array_equal(batch.source, expected.source)
        np.testing.assert_array_equal(batch.segments.target, expected.segments.target)
    assert not np.array_equal(
        packed(lengths, seed=2).batch_at(0).source, batches.batch_at(0).source
    )


def test_epochs_have_orders_of_their_own():
    batches = packed(small_corpora.random_lengths(60, longest=20, seed=3))
    count = batches.batches_per_epoch
    first, second = (batches.batch_at(epoch * count).source for epoch in (0, 1))
    assert not np.array_equal(first, second)


@hypothesis.given(
    strategies.lists(strategies.integers(0, 40), min_size=2, max_size=30),
    strategies.integers(0, 20),
)
def test_patterns_hold_each_length_as_often_as_it_occurs(counts, slack):
    row_length = len(counts) - 1 + slack
    remaining = np.array([0, *counts[1:]])
    for filling, times in packing.patterns(remaining, row_length=row_length):
        assert times > 0
        assert sum(filling) <= row_length
        remaining = remaining - times * np.bincount(filling, minlength=len(remaining))
    assert not remaining.any()


def test_rows_of_real_lengths_are_nearly_full():
    generator = np.random.default_rng(5)
    lengths = np.clip(generator.lognormal(3.0, 0.6, 40_000).astype(int), 1, 255)
    counts = np.bincount(lengths, minlength=256)
    rows = sum(times for _, times in packing.patterns(counts, row_length=256))
    # The least number of rows there can be, and 1 %.
    assert rows <= 1.01 * lengths.sum() / 256


def test_the_padding_share_is_that_of_the_batches():
    batches = packed(small_corpora.random_lengths(70, longest=25, seed=4))
    ids = [(b.source, b.target_out) for b in small_corpora.epoch(batches, 0)]
    assert batches.padding_share == pytest.approx(
        np.mean(np.array(ids) == types.PAD_ID), abs=1e-12
    )


def test_a_pair_longer_than_a_row_is_refused_with_both_lengths():
    with pytest.raises(ValueError, match=r"31 tokens does not fit .* row of 30"):
        packed([(3, 4), (30, 2)])


@pytest.mark.parametrize("processes", [1, 2, 3])
def test_a_process_has_its_rows_alone(processes):
    batches = packed(small_corpora.random_lengths(83, longest=15, seed=2))
    small_corpora.assert_processes_have_the_whole(batches, processes)
