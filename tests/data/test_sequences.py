"""The endless sequence of a corpus: every unit once a pass, classes spread evenly."""

import collections
import itertools
from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from vaswani_jax.data import sequences

SIZES = st.lists(st.integers(0, 9), min_size=1, max_size=6).filter(any)


def brute_force(sizes):
    """The classes of a pass, unit by unit, sorted by their times."""
    times = [
        (Fraction(2 * unit + 1, 2 * size), number)
        for number, size in enumerate(sizes)
        for unit in range(size)
    ]
    return [number for _, number in sorted(times)]


@given(SIZES)
def test_classes_come_at_even_times(sizes):
    order = brute_force(sizes)
    for total in range(len(order) + 1):
        counts = collections.Counter(order[:total])
        expected = [counts[number] for number in range(len(sizes))]
        assert sequences.apportion(total, sizes) == expected


def sequence_of(sizes, pairs_per_unit, seed=5):
    """A sequence whose units are 0, 1, 2, ... class by class, and its units' sizes."""
    ends = list(itertools.accumulate(sizes))
    units = np.arange(ends[-1], dtype=np.int32)
    classes = np.split(units, ends[:-1])
    sequence = sequences.UnitSequence(
        classes, pairs_per_unit=pairs_per_unit, seed=[seed, 0]
    )
    return sequence, np.repeat(pairs_per_unit, sizes)


def drawn_pairs(sequence, pairs_of_unit, start, end):
    """Each pair that is drawn, as (unit, number in it), as often as it is drawn."""
    units, fragments = sequence.draw(start, end)
    pairs = [
        (unit, pair) for unit in units.tolist() for pair in range(pairs_of_unit[unit])
    ]
    for fragment in fragments:
        assert 0 <= fragment.start < fragment.end <= pairs_of_unit[fragment.unit]
        pairs += [(fragment.unit, n) for n in range(fragment.start, fragment.end)]
    return collections.Counter(pairs), len(units) + len(fragments)


@st.composite
def draws(draw):
    sizes = draw(SIZES)
    pairs_per_unit = draw(
        st.one_of(
            st.just([1] * len(sizes)),
            st.lists(st.integers(1, 7), min_size=len(sizes), max_size=len(sizes)),
        )
    )
    counts = draw(st.lists(st.integers(1, 120), min_size=1, max_size=12))
    return sizes, pairs_per_unit, counts


@given(draws())
def test_no_pair_is_drawn_more_than_once_oftener_than_another(plan):
    sizes, pairs_per_unit, counts = plan
    sequence, pairs_of_unit = sequence_of(sizes, pairs_per_unit)
    every_pair = [
        (unit, n) for unit, count in enumerate(pairs_of_unit) for n in range(count)
    ]
    seen = collections.Counter(dict.fromkeys(every_pair, 0))
    start = 0
    for count in counts:
        drawn, _ = drawn_pairs(sequence, pairs_of_unit, start, start + count)
        assert sum(drawn.values()) == count
        seen += drawn
        start += count
        frequencies = {seen[pair] for pair in every_pair}
        assert max(frequencies) - min(frequencies) <= 1
        assert set(seen) <= set(every_pair)


@given(draws(), st.integers(0, 200))
def test_what_a_part_has_does_not_depend_on_what_was_drawn_before(plan, start):
    sizes, pairs_per_unit, counts = plan
    used, pairs_of_unit = sequence_of(sizes, pairs_per_unit)
    for count in counts:
        used.draw(count, count + 40)
    fresh, _ = sequence_of(sizes, pairs_per_unit)
    end = start + counts[0]
    assert drawn_pairs(used, pairs_of_unit, start, end) == drawn_pairs(
        fresh, pairs_of_unit, start, end
    )


@given(draws(), st.integers(0, 300))
def test_the_bounds_hold_at_every_place(plan, start):
    sizes, pairs_per_unit, [count, *_] = plan
    sequence, pairs_of_unit = sequence_of(sizes, pairs_per_unit)
    _, num_units = drawn_pairs(sequence, pairs_of_unit, start, start + count)
    assert num_units <= sequence.most_units(count)
    if set(pairs_per_unit) == {1}:
        units, _ = sequence.draw(start, start + count)
        ends = list(itertools.accumulate(sizes))
        least = sequence.least_counts(count)
        for end, bound in zip(ends, least, strict=True):
            assert (units < end).sum() >= bound
            # The bound is worth something: it leaves a few units a class free.
            assert bound >= count * end / ends[-1] - len(sizes)
        assert least[-1] == count


def test_the_bound_of_rows_allows_for_classes_that_run_ahead():
    pairs_per_unit, sizes = [1, 7, 11, 15, 17, 18, 19], [4, 7, 1, 9, 4, 8, 8]
    sequence, pairs_of_unit = sequence_of(sizes, pairs_per_unit)
    _, num_units = drawn_pairs(sequence, pairs_of_unit, 14, 14 + 183)
    # More than the units that 183 pairs and those of two divided units have in mean.
    assert num_units == 16 > (183 + 2 * 18) * sum(sizes) / pairs_of_unit.sum()
    assert num_units <= sequence.most_units(183)


def test_passes_have_orders_of_their_own_that_the_seed_decides():
    def first_half(number, seed):
        sequence, _ = sequence_of([40], [1], seed=seed)
        return sequence.draw(40 * number, 40 * number + 20)[0].tolist()

    halves = [first_half(number, seed) for number in range(3) for seed in (5, 6)]
    assert len({tuple(half) for half in halves}) == 6
    assert first_half(1, 5) == first_half(1, 5)


def test_every_pair_is_as_likely_as_another_to_come_early():
    count = np.zeros(30)
    for seed in range(400):
        sequence, _ = sequence_of([20, 10], [1, 1], seed=seed)
        count[sequence.draw(0, 15)[0]] += 1
    # 200 each, with a standard deviation of 10.
    assert count.min() > 150 and count.max() < 250
