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
from vaswani_jax.data import batching, bucket_lengths


def batches_of(lengths, **overrides):
    options = {
        "source_tokens": 64,
        "target_tokens": 64,
        "num_buckets": 3,
        "bucket_lengths": "shared",
        "max_length": 16,
        "seed": 1,
        "shuffle": True,
    }
    return batching.BucketedBatches(
        small_corpora.token_pairs_of(lengths), **(options | overrides)
    )


def pair_numbers(batch):
    """Return the pairs of a batch, read from its target."""
    real = batch.target_out[batch.target_out[:, 0] != types.PAD_ID, 0]
    return ((real - 4) // 100).tolist()


@functools.cache
def first_asked(step, bucket_lengths):
    """The batch of batches made for this step alone, as when a run resumes there."""
    return batches_of(
        small_corpora.random_lengths(83, longest=15, seed=2),
        bucket_lengths=bucket_lengths,
    ).batch_at(step)


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
        "bucket_lengths": draw(strategies.sampled_from(["shared", "separate"])),
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
    if options["bucket_lengths"] == "shared":
        assert all(len(set(sides)) == 1 for sides in shapes)


@hypothesis.given(plans())
def test_rows_divide_evenly_over_eight_devices_where_the_budget_allows(plan):
    lengths, options = plan
    for batch in small_corpora.epoch(batches_of(lengths, **options), 0):
        rows, source_length = batch.source.shape
        most = min(
            options["source_tokens"] // source_length,
            options["target_tokens"] // batch.target_out.shape[1],
        )
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


@hypothesis.given(
    strategies.lists(strategies.integers(0, 60), min_size=1, max_size=20),
    strategies.sampled_from(["shared", "separate"]),
)
def test_a_batch_is_the_same_whatever_was_asked_before(steps, bucket_lengths):
    batches = batches_of(
        small_corpora.random_lengths(83, longest=15, seed=2),
        bucket_lengths=bucket_lengths,
    )
    for step in steps:
        for side, expected in zip(
            batches.batch_at(step), first_asked(step, bucket_lengths), strict=True
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


@pytest.mark.parametrize("bucket_lengths", ["shared", "separate"])
def test_unshuffled_epochs_are_equal_and_keep_the_order_of_the_text(bucket_lengths):
    lengths = small_corpora.random_lengths(83, longest=15, seed=5)
    batches = batches_of(lengths, shuffle=False, bucket_lengths=bucket_lengths)
    first, second = (
        [pair_numbers(batch) for batch in small_corpora.epoch(batches, number)]
        for number in (0, 1)
    )
    assert first == second
    by_bucket = collections.defaultdict(list)
    for pair in itertools.chain(*first):
        by_bucket[first_that_holds(lengths[pair], batches.buckets)].append(pair)
    assert len(by_bucket) > 1
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


def first_that_holds(pair, buckets):
    """The first bucket with room for both sides and their end marks."""
    source, target = pair
    return next(
        bucket
        for bucket in buckets
        if bucket.source_length > source and bucket.target_length > target
    )


@hypothesis.given(plans(), strategies.integers(0, 2))
def test_a_batch_has_the_next_pairs_of_its_bucket_in_the_order_of_the_epoch(
    plan, number
):
    """The rule that a run's digits rest on, written a second time."""
    lengths, options = plan
    batches = batches_of(lengths, **options)
    order = np.arange(len(lengths), dtype=np.int32)
    if options["shuffle"]:
        np.random.default_rng([options["seed"], number]).shuffle(order)
    expected, waiting = [], []
    for bucket in batches.buckets:
        waiting += [
            pair
            for pair in order.tolist()
            if first_that_holds(lengths[pair], batches.buckets) == bucket
        ]
        while len(waiting) >= bucket.rows:
            expected.append((bucket, waiting[: bucket.rows]))
            del waiting[: bucket.rows]
    if waiting:
        expected.append((batches.buckets[-1], waiting))
    batch_order = np.arange(len(expected), dtype=np.int32)
    if options["shuffle"]:
        np.random.default_rng([options["seed"], number, 1]).shuffle(batch_order)
    for batch, index in zip(
        small_corpora.epoch(batches, number), batch_order, strict=True
    ):
        bucket, pairs = expected[index]
        assert batch.source.shape == (bucket.rows, bucket.source_length)
        assert batch.target_out.shape == (bucket.rows, bucket.target_length)
        assert pair_numbers(batch) == pairs


@hypothesis.given(plans())
def test_shared_lengths_are_the_best_of_the_longer_sides(plan):
    lengths, options = plan
    batches = batches_of(lengths, **options | {"bucket_lengths": "shared"})
    ends = bucket_lengths.best_lengths(
        np.bincount([max(pair) + 1 for pair in lengths]),
        num_buckets=options["num_buckets"],
        max_length=options["max_length"],
    )
    assert [
        (bucket.source_length, bucket.target_length) for bucket in batches.buckets
    ] == [(end, end) for end in ends]


def padded_tokens_of_pairs(pairs, shapes):
    """Positions if every pair takes the first shape that holds both its sides."""
    return sum(
        next(s + t for s, t in shapes if s >= source and t >= target)
        for source, target in pairs
    )


def separate_lengths(pairs, **options):
    """The lengths of the buckets for pairs of so many tokens, end marks included."""
    batches = batches_of(
        [(source - 1, target - 1) for source, target in pairs],
        bucket_lengths="separate",
        **options,
    )
    return [(bucket.source_length, bucket.target_length) for bucket in batches.buckets]


def nested_lengths(candidates, *, count):
    """All lists of so many pairs of lengths, each at least those before."""
    return [
        shapes
        for shapes in itertools.combinations(candidates, count)
        if all(a[0] <= b[0] and a[1] <= b[1] for a, b in itertools.pairwise(shapes))
    ]


@hypothesis.given(
    strategies.lists(
        strategies.tuples(strategies.integers(2, 15), strategies.integers(2, 12)),
        min_size=1,
        max_size=25,
    ),
    strategies.integers(1, 3),
    strategies.integers(0, 6),
)
def test_no_other_lengths_of_both_sides_need_fewer_padded_tokens(
    pairs, num_buckets, room
):
    longest = [max(lengths) for lengths in zip(*pairs, strict=True)]
    max_length = max(longest) + room
    shapes = separate_lengths(pairs, num_buckets=num_buckets, max_length=max_length)
    ends = [
        [min(end, max_length) for end in range(4, length + 4, 4)] for length in longest
    ]
    candidates = list(itertools.product(*ends))
    assert set(shapes) <= set(candidates)
    assert len(shapes) <= num_buckets
    assert [tuple(shapes)] == nested_lengths(shapes, count=len(shapes))
    fewest = min(
        padded_tokens_of_pairs(pairs, [*others, candidates[-1]])
        for count in range(num_buckets)
        for others in nested_lengths(candidates[:-1], count=count)
    )
    assert padded_tokens_of_pairs(pairs, shapes) == fewest


@hypothesis.given(plans())
def test_separate_lengths_pad_no_pair_set_more_than_shared_ones(plan):
    lengths, options = plan
    pairs = [(source + 1, target + 1) for source, target in lengths]
    positions = {}
    for kind in ("shared", "separate"):
        buckets = batches_of(lengths, **options | {"bucket_lengths": kind}).buckets
        shapes = [(bucket.source_length, bucket.target_length) for bucket in buckets]
        positions[kind] = padded_tokens_of_pairs(pairs, shapes)
    assert positions["separate"] <= positions["shared"]


def test_separate_lengths_pad_less_where_one_side_is_twice_as_long():
    generator = np.random.default_rng(7)
    source = generator.integers(1, 30, 3000)
    target = 2 * source + generator.integers(0, 4, 3000)
    lengths = list(zip(source.tolist(), target.tolist(), strict=True))
    shared, separate = (
        batches_of(
            lengths,
            source_tokens=512,
            target_tokens=512,
            num_buckets=6,
            max_length=80,
            bucket_lengths=kind,
        ).padding_share
        for kind in ("shared", "separate")
    )
    assert shared > 0.34
    assert separate < 0.2


def test_long_sentences_have_coarse_lengths():
    budgets = {"source_tokens": 1000, "target_tokens": 1000}
    pairs = [(999, 10), (300, 3), (30, 515)]
    shapes = separate_lengths(pairs, num_buckets=2, max_length=999, **budgets)
    assert shapes == [(300, 520), (999, 520)]


@pytest.mark.parametrize("bucket_lengths", ["shared", "separate"])
def test_split_batches_gain_rows_that_are_no_sentence(bucket_lengths):
    batches = batches_of(
        small_corpora.random_lengths(83, longest=15, seed=6),
        source_tokens=80,
        bucket_lengths=bucket_lengths,
    )
    for step in range(batches.batches_per_epoch):
        batch = batches.batch_at(step)
        split = parallel.split_rows(batch, num_microbatches=3)
        joined = jax.tree.map(parallel.join_rows, split)
        assert isinstance(split, types.Batch)
        assert pair_numbers(joined) == pair_numbers(batch)
        assert joined.source.shape[0] % (3 * jax.local_device_count()) == 0


def test_buckets_name_two_lengths_where_the_sides_differ():
    square, oblong = batching.Bucket(64, 32, 32), batching.Bucket(64, 24, 40)
    assert (str(square), str(oblong)) == ("64x32", "64x24x40")
    assert batching.shape_notation([square, square]) == "rows x tokens"
    assert "rows x source x target tokens" in batching.shape_notation([square, oblong])
    assert square.describe_tokens() == "32 tokens"
    assert oblong.describe_tokens() == "24 source and 40 target tokens"


@pytest.mark.parametrize("processes", [1, 2, 3])
@pytest.mark.parametrize("bucket_lengths", ["shared", "separate"])
def test_a_process_has_its_rows_alone(processes, bucket_lengths):
    batches = batches_of(
        small_corpora.random_lengths(83, longest=15, seed=2),
        bucket_lengths=bucket_lengths,
    )
    small_corpora.assert_processes_have_the_whole(batches, processes)
