"""Every pair once an epoch, within the budget, in few shapes, from (seed, step)."""

import collections
import functools
import itertools

import hypothesis
import jax
import numpy as np
import pytest
from hypothesis import strategies

from tests.data import small_corpora
from vaswani_jax.core import parallel, types
from vaswani_jax.data import batching


def batches_of(lengths, **overrides):
    options = {
        "source_tokens": 64,
        "target_tokens": 64,
        "num_buckets": 3,
        "max_length": 16,
        "seed": 1,
        "shuffle": True,
    }
    return batching.BucketedBatches(
        small_corpora.corpus_of(lengths), **(options | overrides)
    )


def pair_numbers(batch):
    """Return the pairs of a batch, read from its target."""
    real = batch.target_out[batch.target_out[:, 0] != types.PAD_ID, 0]
    return ((real - 4) // 100).tolist()


@functools.cache
def first_asked(step):
    """The batch of batches made for this step alone, as when a run resumes there."""
    return batches_of(small_corpora.random_lengths(83, longest=15, seed=2)).batch_at(
        step
    )


@strategies.composite
def plans(draw):
    """Lengths of the pairs and options under which each of them fits."""
    max_length = draw(strategies.integers(2, 30))
    length = strategies.integers(1, max_length - 1)
    pair = strategies.tuples(length, length)
    budget = strategies.integers(max_length, 20 * max_length)
    return draw(strategies.lists(pair, min_size=1, max_size=90)), {
        "source_tokens": draw(budget),
        "target_tokens": draw(budget),
        "num_buckets": draw(strategies.integers(1, 6)),
        "max_length": max_length,
        "seed": draw(strategies.integers(0, 2**40)),
        "shuffle": draw(strategies.booleans()),
    }


@hypothesis.given(plans(), strategies.integers(0, 3))
def test_every_pair_is_in_an_epoch_once_as_it_was_written(plan, number):
    lengths, options = plan
    pairs = []
    for batch in small_corpora.epoch(batches_of(lengths, **options), number):
        for source, target_in, target_out in zip(*batch[:3], strict=True):
            if not target_out.any():
                assert not source.any()
                assert not target_in.any()
                continue
            pair = (int(target_out[0]) - 4) // 100
            pairs.append(pair)
            left, right = (
                small_corpora.sentence(pair, length=lengths[pair][side], side=side)
                for side in (0, 1)
            )
            padding = [types.PAD_ID] * (len(source) - len(left) - 1)
            assert source.tolist() == [*left, types.EOS_ID, *padding]
            padding = [types.PAD_ID] * (len(target_in) - len(right) - 1)
            assert target_in.tolist() == [types.BOS_ID, *right, *padding]
            assert target_out.tolist() == [*right, types.EOS_ID, *padding]
    assert sorted(pairs) == list(range(len(lengths)))


@hypothesis.given(plans())
def test_batches_stay_within_both_budgets_in_few_shapes(plan):
    lengths, options = plan
    batches = small_corpora.epoch(batches_of(lengths, **options), 0)
    assert all(batch.source.size <= options["source_tokens"] for batch in batches)
    assert all(batch.target_in.size <= options["target_tokens"] for batch in batches)
    shapes = {tuple(side.shape for side in batch[:3]) for batch in batches}
    assert len(shapes) <= options["num_buckets"]


@hypothesis.given(plans())
def test_rows_divide_evenly_over_eight_devices_where_the_budget_allows(plan):
    lengths, options = plan
    budget = min(options["source_tokens"], options["target_tokens"])
    for batch in small_corpora.epoch(batches_of(lengths, **options), 0):
        rows, length = batch.source.shape
        most = budget // length
        assert rows == (most - most % 8 if most >= 8 else most)


@hypothesis.given(plans())
def test_one_batch_of_an_epoch_at_most_is_not_full(plan):
    lengths, options = plan
    batches = small_corpora.epoch(batches_of(lengths, **options), 0)
    fillings = [(len(pair_numbers(b)), b.source.shape[0]) for b in batches]
    assert sum(pairs < rows for pairs, rows in fillings) <= 1
    assert all(pairs > 0 for pairs, _ in fillings)


@hypothesis.given(plans())
def test_padding_share_is_that_of_the_positions_of_an_epoch(plan):
    lengths, options = plan
    batches = batches_of(lengths, **options)
    sides = [
        side
        for b in small_corpora.epoch(batches, 0)
        for side in (b.source, b.target_out)
    ]
    positions = sum(side.size for side in sides)
    empty = sum(int((side == types.PAD_ID).sum()) for side in sides)
    assert batches.padding_share == pytest.approx(empty / positions, rel=1e-9)


@hypothesis.given(strategies.lists(strategies.integers(0, 60), min_size=1, max_size=20))
def test_a_batch_is_the_same_whatever_was_asked_before(steps):
    batches = batches_of(small_corpora.random_lengths(83, longest=15, seed=2))
    for step in steps:
        for side, expected in zip(
            batches.batch_at(step), first_asked(step), strict=True
        ):
            np.testing.assert_array_equal(side, expected)


def test_epochs_differ_and_seeds_differ():
    lengths = small_corpora.random_lengths(83, longest=15, seed=3)

    def order(seed, number):
        batches = small_corpora.epoch(batches_of(lengths, seed=seed), number)
        return tuple(tuple(pair_numbers(batch)) for batch in batches)

    orders = [order(seed, number) for seed in (1, 2) for number in (0, 1, 2)]
    assert len(set(orders)) == 6
    assert order(2, 1) == orders[4]
    # Other pairs meet, too: not the same batches in another order.
    company = [{frozenset(batch) for batch in order} for order in orders]
    assert all(a != b for a, b in itertools.combinations(company, 2))


def test_lengths_come_mixed_when_shuffled():
    batches = batches_of(small_corpora.random_lengths(400, longest=15, seed=4))
    widths = [batch.source.shape[1] for batch in small_corpora.epoch(batches, 0)]
    assert len(set(widths)) > 1
    assert widths not in (sorted(widths), sorted(widths, reverse=True))


def test_unshuffled_epochs_are_equal_and_keep_the_order_of_the_text():
    lengths = small_corpora.random_lengths(83, longest=15, seed=5)
    batches = batches_of(lengths, shuffle=False)
    first, second = (
        [pair_numbers(batch) for batch in small_corpora.epoch(batches, number)]
        for number in (0, 1)
    )
    assert first == second
    ends = [bucket.length for bucket in batches.buckets]
    by_bucket = collections.defaultdict(list)
    for pair in itertools.chain(*first):
        needed = max(lengths[pair]) + 1
        by_bucket[min(end for end in ends if end >= needed)].append(pair)
    assert all(pairs == sorted(pairs) for pairs in by_bucket.values())


@pytest.mark.parametrize("max_length", [2, 3, 4, 5, 8, 10, 13])
@pytest.mark.parametrize("longer", [0, 1])
def test_the_longest_sentence_fills_its_row_with_its_end_mark(max_length, longer):
    pair = [1, 1]
    pair[longer] = max_length - 1
    options = {"max_length": max_length, "source_tokens": max_length}
    batch = batches_of([tuple(pair)], **options).batch_at(0)
    assert [side.shape for side in batch[:3]] == [(1, max_length)] * 3
    side = (batch.source, batch.target_out)[longer]
    assert side[0].tolist() == [
        *small_corpora.sentence(0, length=max_length - 1, side=longer),
        types.EOS_ID,
    ]


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
    ends = batching.best_lengths(
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


def test_split_batches_gain_rows_that_are_no_sentence():
    batches = batches_of(
        small_corpora.random_lengths(83, longest=15, seed=6), source_tokens=80
    )
    for step in range(batches.batches_per_epoch):
        batch = batches.batch_at(step)
        split = parallel.split_rows(batch, num_microbatches=3)
        joined = jax.tree.map(parallel.join_rows, split)
        assert isinstance(split, types.Batch)
        assert pair_numbers(joined) == pair_numbers(batch)
        assert joined.source.shape[0] % (3 * jax.local_device_count()) == 0


@pytest.mark.parametrize("processes", [1, 2, 3])
def test_a_process_has_its_rows_alone(processes):
    batches = batches_of(small_corpora.random_lengths(83, longest=15, seed=2))
    small_corpora.assert_processes_have_the_whole(batches, processes)
