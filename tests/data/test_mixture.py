"""The shares of corpora in an epoch are exact, by weights, sizes or temperature."""

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.data import small_corpora, small_text
from vaswani_jax.data import mixture


def planned(sizes, *, weights=None, fields=(), **changes):
    """Plan a mixture of corpora a, b, ... with so many prepared pairs."""
    names = [chr(ord("a") + n) for n in range(len(sizes))]
    corpora = []
    for n, name in enumerate(names):
        corpora.append({"name": name, "source": f"{name}.en", "target": f"{name}.de"})
        if weights:
            corpora[-1]["weight"] = weights[n]
        corpora[-1] |= dict(fields).get(name, {})
    data = small_text.settings_of(
        ".", **{"data.corpora": corpora}, **{f"data.{k}": v for k, v in changes.items()}
    ).data
    return mixture.plan(data, dict(zip(names, sizes, strict=True)))


def pairs(*arguments, **options):
    return [quotas.pairs for quotas in planned(*arguments, **options).quotas]


def test_there_is_no_mixture_without_corpora():
    assert mixture.plan(small_text.settings_of(".").data, {}) is None


def test_corpora_without_weights_give_each_pair_once():
    plan = planned([30, 500, 7])
    assert plan.quotas[0].pairs == plan.sizes == (30, 500, 7)
    assert plan.is_plain
    assert plan.parts == [slice(0, 30), slice(30, 530), slice(530, 537)]
    assert planned([30]).is_plain and planned([30], weights=[9]).is_plain
    assert not planned([30, 500], weights=[1, 1]).is_plain
    assert not planned([30], epoch_pairs=31).is_plain


def test_weights_are_shares_of_the_pairs_of_an_epoch():
    assert pairs([100, 900], weights=[1, 4]) == [(200, 800)]
    # 0.1 is a tenth, not the nearest binary number.
    assert pairs([5, 5], weights=[0.1, 0.2], epoch_pairs=30) == [(10, 20)]
    assert pairs([5, 5, 5], weights=[1, 1, 1], epoch_pairs=10) == [(4, 3, 3)]


def test_a_temperature_lifts_small_corpora():
    # The square roots of 100 and 900 are as 1 to 3.
    assert pairs([100, 900], corpora_temperature=2.0) == [(250, 750)]
    [(small, large)] = pairs([100, 900], corpora_temperature=1e6)
    assert (small, large) == (500, 500)
    [(small, large)] = pairs([7, 5000], corpora_temperature=5.0, epoch_pairs=10**6)
    share = 7**0.2 / (7**0.2 + 5000**0.2)
    assert abs(small - share * 10**6) < 1 and small + large == 10**6


def test_copies_change_no_share():
    noisy = {"a": {"noise_typos": 0.1, "noise_copies": 3}}
    plan = planned([300, 100], fields=noisy)
    assert plan.copies == (3, 1)
    assert plan.quotas[0].pairs == (200, 200)


def test_stages_have_weights_of_their_own():
    plan = planned([100, 900], weights=[1, 4], stages="50: a=1; 70: a=1 b=9")
    assert [quotas.first_batch for quotas in plan.quotas] == [0, 50, 70]
    # Only what a stage draws from counts in its epoch.
    assert [quotas.pairs for quotas in plan.quotas] == [
        (200, 800),
        (100, 0),
        (100, 900),
    ]
    assert pairs([100, 900], stages="0: b=1") == [(0, 900)]


def test_a_corpus_that_would_never_be_drawn_is_refused():
    with pytest.raises(ValueError) as caught:
        planned([5, 995], weights=[1, 9999])
    text = "corpus 'a' gets none of the 1,000 pairs of an epoch from batch 0 on: raise"
    assert str(caught.value).startswith(text)
    assert planned([5, 995], weights=[0, 1]).quotas[0].pairs == (0, 995)


def test_the_smallest_temperature_gives_all_to_the_largest_corpus():
    """The sizes to the power of 100 are too far apart for a pair of the smaller."""
    with pytest.raises(ValueError, match="corpus 'a' gets none of the 1,000,000,007"):
        planned([7, 10**9], corpora_temperature=0.01)
    assert pairs([10**9, 10**9], corpora_temperature=0.01) == [(10**9, 10**9)]


@given(
    st.integers(1, 10**9),
    st.lists(st.fractions(0, 10**6), min_size=1, max_size=9).filter(any),
)
def test_parts_differ_from_their_shares_by_less_than_one(total, weights):
    parts = mixture.divide_proportionally(total, weights)
    assert sum(parts) == total
    for part, weight in zip(parts, weights, strict=True):
        share = total * Fraction(weight) / sum(weights)
        assert math.floor(share) <= part <= math.ceil(share)


def test_the_table_has_what_each_corpus_gives_to_an_epoch():
    """Corpus a has 3 pairs of 2 and 4 tokens with end marks, b 2 pairs of 6 and 3."""
    pairs = small_corpora.token_pairs_of([(1, 3)] * 3 + [(5, 2)] * 2)
    plan = planned([3, 2], weights=[1, 3], epoch_pairs=1000, stages="7: a=1", fields={})
    epochs = mixture.epoch_shares(plan, pairs, num_batches=[70, 1234])
    assert "\n".join(epoch.format() for epoch in epochs).splitlines() == [
        "an epoch from batch 0 on: 1,000 pairs in 70 batches",
        "corpus  pairs  share  passes  source tokens  target tokens",
        "a         250  25.0%    83.3            500          1,000",
        "b         750  75.0%     375          4,500          2,250",
        "an epoch from batch 7 on: 1,000 pairs in 1,234 batches",
        "corpus  pairs   share  passes  source tokens  target tokens",
        "a       1,000  100.0%     333          2,000          4,000",
        "b           0    0.0%       0              0              0",
    ]


def test_passes_are_over_the_text_whatever_its_copies():
    pairs = small_corpora.token_pairs_of([(1, 1)] * 6)
    noisy = {"a": {"noise_typos": 0.1, "noise_copies": 3}}
    plan = planned([6], fields=noisy)
    [epoch] = mixture.epoch_shares(plan, pairs, num_batches=[1])
    [share] = epoch.corpora
    assert (share.pairs, share.share, share.passes) == (6, 1.0, 3.0)
