"""Verdicts that need no training, against the printed figures and arithmetic."""

import dataclasses

import pytest

from tests.paper.layer_costs import costs_of
from tests.paper.workdirs import ROWS
from vaswani_jax.model import positional_encoding
from vaswani_jax.paper import computed_claims, presets


@pytest.fixture(scope="module")
def systems():
    return presets.systems()


def judge(systems, costs=None):
    claims = computed_claims.judge(systems, ROWS, costs or costs_of())
    return {claim.id: claim for claim in claims}


def test_the_figures_are_those_of_the_paper(systems):
    judged = judge(systems)
    # Six layers of 512: 63.0 million with 37,000 subwords, not the printed 65.
    assert judged["parameters"].figures["base"] == pytest.approx(63.05, abs=0.01)
    assert judged["parameters"].verdict == "does not hold"
    assert judged["hours"].figures["base"] == pytest.approx(100_000 * 0.4 / 3600)
    assert judged["hours"].figures["big"] == pytest.approx(300_000 * 1.0 / 3600)
    assert judged["training-cost"].figures["base"] == 12 * 3600 * 8 * 9.5e12
    big = 3.5 * 24 * 3600 * 8 * 9.5e12
    assert judged["training-cost"].figures["big"] == big
    # MoE: 1.2e20 operations on En-Fr.
    assert judged["quarter-of-the-cost"].figures["share"] == pytest.approx(2.3 / 12)
    assert judged["scaling"].figures["variance"] == pytest.approx(512, rel=0.05)
    assert judged["wavelengths"].figures["last"] == pytest.approx(
        10_000 ** (510 / 512), rel=1e-4
    )
    others = [claim for id, claim in judged.items() if id != "parameters"]
    assert {claim.verdict for claim in others} == {"holds"}


def test_table_1_is_judged_by_its_counts_and_times(systems):
    slow = costs_of(recurrence=0.5, steps={"Self-Attention": [1, 2]})
    judged = judge(systems, slow)
    assert judged["sequential-operations"].verdict == "does not hold"
    assert judged["faster-than-recurrence"].verdict == "does not hold"
    long = dataclasses.replace(slow, d=4)
    assert judge(systems, long)["faster-than-recurrence"].verdict == "not run"


def test_other_positions_would_not_hold(systems, monkeypatch):
    """The claims on sinusoids are judged by what the module computes."""
    sinusoids = positional_encoding.sinusoids
    monkeypatch.setattr(
        positional_encoding,
        "sinusoids",
        lambda positions, *, d_model: sinusoids(positions, d_model=d_model) ** 2,
    )
    judged = judge(systems)
    assert judged["offsets"].verdict == "does not hold"
    assert judged["wavelengths"].verdict == "does not hold"
