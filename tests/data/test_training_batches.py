"""Batches of several corpora: exact shares, one order for all, no pair favoured."""

import collections
import itertools
import math

import hypothesis
import jax
import numpy as np
import pytest
from hypothesis import strategies as st

from tests import settings
from tests.data import small_corpora
from vaswani_jax.data import training_batches

NAMES = "abcde"


def data_of(num_corpora, **changes):
    weights = changes.pop("weights", None)
    corpora = [
        {"name": name, "source": name, "target": name}
        | ({"weight": weights[n]} if weights else {})
        for n, name in enumerate(NAMES[:num_corpora])
    ]
    values = {
        "data.source": "text",
        "data.text_directory": ".",
        "data.train_source": "train.en",
        "data.train_target": "train.de",
        "data.corpora": corpora,
        "data.max_length": 20,
        "data.source_tokens_per_batch": 100,
        "data.target_tokens_per_batch": 90,
        "data.num_buckets": 3,
        "data.packed_length": 30,
    } | {f"data.{key}": value for key, value in changes.items()}
    return settings.small_settings(**values).data


def batches_of(lengths, sizes, *, seed=1, **changes):
    return training_batches.make_training_batches(
        data_of(len(sizes), **changes),
        small_corpora.token_pairs_of(lengths),
        seed=seed,
        corpus_sizes=dict(zip(NAMES, sizes, strict=False)),
    )


def corpora_of(pairs, sizes):
    """The number of pairs of each corpus among these."""
    ends = list(itertools.accumulate(sizes))
    numbers = np.searchsorted(ends, pairs, side="right")
    return np.bincount(numbers, minlength=len(sizes)).tolist()


def epochs(batches, *, count, stage=0):
    """The pairs of each of the first epochs of a stage, batch by batch."""
    plan = batches.epoch_plans[stage]
    size = len(plan.slices)
    return [
        [
            batches.pairs_at(plan.first_batch + number * size + index).tolist()
            for index in range(size)
        ]
        for number in range(count)
    ]


def largest_remainder(total, weights):
    """The parts of a total, added one after the other to whoever lacks most."""
    shares = [total * weight / sum(weights) for weight in weights]
    parts = [math.floor(share) for share in shares]
    while sum(parts) < total:
        lacks = [share - part for share, part in zip(shares, parts, strict=True)]
        parts[lacks.index(max(lacks))] += 1
    return parts


@st.composite
def plans(draw):
    sizes = draw(st.lists(st.integers(1, 25), min_size=1, max_size=4))
    weights = draw(
        st.lists(st.sampled_from([1, 2, 3]), min_size=len(sizes), max_size=len(sizes))
    )
    length = st.integers(1, 19)
    lengths = draw(
        st.lists(st.tuples(length, length), min_size=sum(sizes), max_size=sum(sizes))
    )
    epoch_pairs = draw(st.integers(3 * len(sizes), 90))
    form = draw(
        st.sampled_from(
            [
                {"batching": "packed"},
                {"bucket_lengths": "shared"},
                {"bucket_lengths": "separate"},
            ]
        )
    )
    changes = {"weights": weights, "epoch_pairs": epoch_pairs, **form}
    return lengths, sizes, changes


@hypothesis.settings(max_examples=60)
@hypothesis.given(plans())
def test_every_epoch_has_the_exact_share_of_each_corpus(plan):
    lengths, sizes, changes = plan
    batches = batches_of(lengths, sizes, **changes)
    expected = largest_remainder(changes["epoch_pairs"], changes["weights"])
    seen = collections.Counter()
    for epoch in epochs(batches, count=3):
        assert all(epoch), "no batch is empty"
        pairs = list(itertools.chain.from_iterable(epoch))
        assert corpora_of(pairs, sizes) == expected
        seen.update(pairs)
        start = 0
        for size in sizes:
            frequencies = [seen[pair] for pair in range(start, start + size)]
            assert max(frequencies) - min(frequencies) <= 1
            start += size


@hypothesis.settings(max_examples=30)
@hypothesis.given(plans(), st.integers(0, 60))
def test_each_batch_has_the_whole_text_of_its_pairs_within_its_budget(plan, index):
    lengths, sizes, changes = plan
    batches = batches_of(lengths, sizes, **changes)
    batch, pairs = batches.batch_at(index), batches.pairs_at(index)
    assert batch.source.size <= 100 and batch.target_in.size <= 90
    for side, ids in enumerate((batch.source, batch.target_out)):
        tokens = collections.Counter(ids[ids > 3].tolist())
        expected = collections.Counter(
            token
            for pair in pairs
            for token in small_corpora.sentence(
                int(pair), length=lengths[pair][side], side=side
            )
        )
        assert tokens == expected


FORMS = [
    {"batching": "packed"},
    {"bucket_lengths": "shared"},
    {"bucket_lengths": "separate"},
]
STAGES = "5: a=1 b=1 c=1; 12: c=1; 40: a=9 c=1"
SIZES = [50, 13, 20]
LENGTHS = small_corpora.random_lengths(sum(SIZES), longest=20, seed=3)


@pytest.mark.parametrize("form", FORMS)
def test_a_batch_is_a_function_of_seed_and_index_alone(form):
    options = {"weights": [1, 5, 0], "stages": STAGES, **form}
    batches = batches_of(LENGTHS, SIZES, **options)
    for number in (61, 4, 5, 11, 12, 39, 40, 0, 200, 6):
        fresh = batches_of(LENGTHS, SIZES, **options)
        jax.tree.map(
            np.testing.assert_array_equal,
            batches.batch_at(number),
            fresh.batch_at(number),
        )
        np.testing.assert_array_equal(batches.pairs_at(number), fresh.pairs_at(number))
    other = batches_of(LENGTHS, SIZES, seed=2, **options)
    assert other.pairs_at(0).tolist() != batches.pairs_at(0).tolist()


@pytest.mark.parametrize("form", FORMS)
def test_an_empty_batch_needs_no_epoch(form):
    batches = batches_of(LENGTHS, SIZES, weights=[1, 5, 0], **form)
    [bucket, *_] = batches.buckets
    assert not any(leaf.any() for leaf in jax.tree.leaves(batches.empty(bucket)))


@pytest.mark.parametrize("form", FORMS)
def test_a_later_stage_changes_no_batch_before_it(form):
    options = {"weights": [1, 5, 1], **form}
    without, with_stage, other = (
        batches_of(LENGTHS, SIZES, **options, **stages)
        for stages in ({}, {"stages": "7: a=1"}, {"stages": "7: b=1"})
    )
    for index in range(7):
        batch = without.batch_at(index)
        for batches in (with_stage, other):
            jax.tree.map(np.testing.assert_array_equal, batches.batch_at(index), batch)
    assert corpora_of(with_stage.pairs_at(7), SIZES)[1:] == [0, 0]
    assert corpora_of(other.pairs_at(7), SIZES)[::2] == [0, 0]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("weights", [None, SIZES])
def test_a_later_stage_changes_no_batch_of_corpora_in_proportion_to_their_sizes(
    weights, form
):
    options = {"weights": weights, **form}
    without = batches_of(LENGTHS, SIZES, **options)
    index = 2 * without.batches_per_epoch + 1
    batches = batches_of(LENGTHS, SIZES, stages=f"{index}: b=1", **options)
    assert batches.tokens_per_epoch == without.tokens_per_epoch
    for number in range(index):
        np.testing.assert_array_equal(
            batches.pairs_at(number), without.pairs_at(number)
        )
        jax.tree.map(
            np.testing.assert_array_equal,
            batches.batch_at(number),
            without.batch_at(number),
        )
    # The stage has the pairs of its corpus alone, and begins with whole passes behind.
    epoch, next_epoch = epochs(batches, count=2, stage=1)
    for each in (epoch, next_epoch):
        assert sorted(itertools.chain(*each)) == list(range(50, 63))
    # An epoch before it is asked for again.
    np.testing.assert_array_equal(batches.pairs_at(0), without.pairs_at(0))


@pytest.mark.parametrize("form", FORMS)
def test_corpora_continue_after_a_stage_in_proportion_to_their_sizes(form):
    """Two epochs after the first stage's whole passes have each pair of b once."""
    sizes = [24, 14]
    batches = batches_of(LENGTHS[:38], sizes, stages="1: b=1", epoch_pairs=38, **form)
    assert [plan.first_batch for plan in batches.epoch_plans] == [0, 1]
    seen = collections.Counter(
        itertools.chain.from_iterable(
            itertools.chain.from_iterable(epochs(batches, count=7, stage=1))
        )
    )
    # 7 * 38 pairs are 19 passes of 14.
    assert seen == dict.fromkeys(range(24, 38), 19)


@pytest.mark.parametrize("form", FORMS)
def test_each_stage_has_its_own_shares_from_its_batch_on(form):
    batches = batches_of(LENGTHS, SIZES, weights=[1, 5, 0], stages=STAGES, **form)
    assert [plan.first_batch for plan in batches.epoch_plans] == [0, 5, 12, 40]
    [epoch] = epochs(batches, count=1, stage=3)
    pairs = list(itertools.chain.from_iterable(epoch))
    assert corpora_of(pairs, SIZES) == [63, 0, 7]
    for index in range(12, 40):
        assert corpora_of(batches.pairs_at(index), SIZES)[:2] == [0, 0]
    for index in range(5):
        assert corpora_of(batches.pairs_at(index), SIZES)[2] == 0


@pytest.mark.parametrize("form", FORMS)
def test_a_stage_goes_on_where_the_epoch_before_it_would_have_ended(form):
    """No pair of a corpus comes again before those that are in its turn."""
    options = {"weights": [1, 1, 1], "epoch_pairs": 30, **form}
    batches = batches_of(LENGTHS, SIZES, stages="1: a=1", **options)
    interrupted = batches_of(LENGTHS, SIZES, **options)
    [epoch] = epochs(interrupted, count=1)
    before = [pair for pair in itertools.chain.from_iterable(epoch) if pair < SIZES[0]]
    [epoch] = epochs(batches, count=1, stage=1)
    after = list(itertools.chain.from_iterable(epoch))
    assert len(before) == 10 and len(after) == 30 and max(after) < SIZES[0]
    assert not set(before) & set(after)


@pytest.mark.parametrize("form", FORMS)
def test_corpora_in_proportion_to_their_sizes_are_batched_as_one_text(form):
    joined = training_batches.make_training_batches(
        data_of(0, **form),
        small_corpora.token_pairs_of(LENGTHS),
        seed=1,
        corpus_sizes={},
    )
    for sizes, changes in (
        (SIZES, {}),
        ([len(LENGTHS)], {"weights": [7]}),
        (SIZES, {"weights": SIZES}),
    ):
        batches = batches_of(LENGTHS, sizes, **changes, **form)
        for index in (0, 3, 50):
            jax.tree.map(
                np.testing.assert_array_equal,
                batches.batch_at(index),
                joined.batch_at(index),
            )


@pytest.mark.parametrize("form", FORMS)
def test_over_many_epochs_each_pair_comes_as_often_as_its_corpus_weighs(form):
    weights = [3, 1, 4]
    batches = batches_of(
        LENGTHS, SIZES, weights=weights, epoch_pairs=64, seed=9, **form
    )
    seen = collections.Counter()
    for epoch in epochs(batches, count=150):
        seen.update(itertools.chain.from_iterable(epoch))
    start = 0
    for size, weight in zip(SIZES, weights, strict=True):
        expected = 150 * 64 * weight / 8 / size
        for pair in range(start, start + size):
            assert abs(seen[pair] - expected) <= 1
        start += size


@pytest.mark.parametrize("form", FORMS)
def test_a_batch_has_corpora_mixed(form):
    batches = batches_of(LENGTHS, SIZES, weights=[1, 1, 1], epoch_pairs=600, **form)
    [epoch] = epochs(batches, count=1)
    mixed = sum(
        len(set(np.searchsorted([50, 63], batch, side="right"))) > 1 for batch in epoch
    )
    assert mixed > len(epoch) / 2


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("processes", [2, 3])
def test_a_process_has_its_rows_alone(processes, form):
    batches = batches_of(LENGTHS, SIZES, weights=[1, 2, 3], stages="9: b=1", **form)
    small_corpora.assert_processes_have_the_whole(batches, processes)


@pytest.mark.parametrize("form", FORMS)
def test_the_tokens_of_an_epoch_are_those_of_its_mean(form):
    # In two epochs every pair of a corpus comes equally often: once, four times, twice.
    weights = [25, 26, 20]
    batches = batches_of(
        LENGTHS, SIZES, weights=weights, epoch_pairs=sum(weights), **form
    )
    tokens = np.zeros(2)
    for epoch in epochs(batches, count=2):
        for pair in itertools.chain.from_iterable(epoch):
            tokens += np.array(LENGTHS[pair]) + 1
    assert batches.tokens_per_epoch == pytest.approx(tuple(tokens / 2))
    real = positions = 0
    for index in range(2 * batches.batches_per_epoch):
        batch = batches.batch_at(index)
        real += (batch.source > 0).sum() + (batch.target_out > 0).sum()
        positions += batch.source.size + batch.target_out.size
    assert batches.padding_share == pytest.approx(1 - real / positions)


@pytest.mark.parametrize("form", FORMS)
def test_epochs_have_orders_of_their_own(form):
    """Each epoch has two passes of every corpus, so that the order alone differs."""
    batches = batches_of(
        LENGTHS, SIZES, weights=SIZES, epoch_pairs=2 * sum(SIZES), **form
    )
    orders = [[sorted(batch) for batch in epoch] for epoch in epochs(batches, count=3)]
    for first, second in itertools.combinations(orders, 2):
        assert sorted(itertools.chain(*first)) == sorted(itertools.chain(*second))
        same = sum(map(list.__eq__, first, second))
        assert same < len(first) / 2
        assert sorted(first) != sorted(second), "the same batches in another order"


def test_few_pairs_are_padded_to_a_longer_bucket_for_the_sake_of_equal_epochs():
    generator = np.random.default_rng(4)
    sizes = [3000, 200]
    lengths = [(int(n), int(n)) for n in generator.integers(1, 20, sum(sizes))]
    options = {"source_tokens_per_batch": 400, "target_tokens_per_batch": 400}
    mixed = batches_of(lengths, sizes, weights=[1, 1], **options)
    plain = batches_of(lengths, sizes, **options)
    assert mixed.batches_per_epoch <= 1.02 * plain.batches_per_epoch
    packed = {"batching": "packed", **options}
    mixed = batches_of(lengths, sizes, weights=[1, 1], **packed)
    plain = batches_of(lengths, sizes, **packed)
    assert mixed.batches_per_epoch <= 1.03 * plain.batches_per_epoch
