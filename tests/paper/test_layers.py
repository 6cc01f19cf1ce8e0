"""Table 1: the formulas against paths and operations that are counted."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests import settings
from vaswani_jax.core import memory
from vaswani_jax.paper import layers, table1

SELF, RECURRENT, CONVOLUTIONAL, RESTRICTED = layers.TABLE1
D = 32
MODEL = settings.small_settings(
    **{"model.d_model": D, "model.num_heads": 2, "model.d_k": 16, "model.d_v": 16}
).model


def reach(kind, *, n, kernel, window, depth):
    """The furthest pair of positions that a stack of layers connects, by the graph."""
    position = np.arange(n)
    distance = abs(position[:, None] - position[None])
    if kind is SELF:
        sees = distance >= 0
    elif kind is RECURRENT:
        sees = distance <= 1
    elif kind is RESTRICTED:
        sees = distance <= window // 2
    connected = np.eye(n, dtype=bool)
    for number in range(depth):
        if kind is CONVOLUTIONAL:  # dilated
            step = kernel**number
            sees = (distance % step == 0) & (distance // step < kernel)
        connected = connected @ sees
    return bool(connected[0, n - 1])


@pytest.mark.parametrize("kind", layers.TABLE1, ids=lambda kind: kind.name)
@pytest.mark.parametrize("n", [9, 27, 81])
def test_a_path_of_the_stated_length_connects_the_ends(kind, n):
    depth = kind.path_length(n=n, k=3, r=9)
    assert reach(kind, n=n, kernel=3, window=9, depth=depth)
    # The formula of a recurrence is n, where the ends are n - 1 steps apart.
    shorter = depth - 2 if kind is RECURRENT else depth - 1
    assert not reach(kind, n=n, kernel=3, window=9, depth=shorter)


def counted(name, *, n, d, k=3, r=8):
    """XLA's count of a layer's operations."""
    model = settings.small_settings(
        **{
            "model.d_model": d,
            "model.num_heads": 2,
            "model.d_k": d // 2,
            "model.d_v": d // 2,
        }
    ).model
    run = layers.layer(name, model=model, kernel=k, window=r)
    return run.lower(jnp.zeros((1, n, d))).compile().cost_analysis()["flops"]


BASE = {"n": 64, "d": 32, "k": 3, "r": 8}


@pytest.mark.parametrize("changed", ["n", "d", "k"])
def test_a_convolution_costs_what_the_formula_says(changed):
    other = BASE | {changed: 2 * BASE[changed]}
    found = counted(CONVOLUTIONAL.name, **other) / counted(CONVOLUTIONAL.name, **BASE)
    formula = CONVOLUTIONAL.operations(**other) / CONVOLUTIONAL.operations(**BASE)
    # Its ends see fewer positions, in proportion to k / n.
    assert found == pytest.approx(formula, rel=0.05)


@pytest.mark.parametrize("changed", ["n", "d"])
def test_a_step_of_a_recurrence_costs_what_the_formula_says(changed):
    """XLA counts the body of a loop once: n steps of d^2."""

    def whole(n, d, **others):
        steps = layers.sequential_steps(
            layers.layer(
                RECURRENT.name,
                model=settings.small_settings(**{"model.d_model": d}).model,
                kernel=3,
                window=8,
            ),
            n=n,
            d_model=d,
        )
        one = counted(RECURRENT.name, n=n, d=2 * d) - counted(RECURRENT.name, n=n, d=d)
        return steps * one

    other = BASE | {changed: 2 * BASE[changed]}
    formula = RECURRENT.operations(**other) / RECURRENT.operations(**BASE)
    assert whole(**other) / whole(**BASE) == pytest.approx(formula, rel=0.1)


@pytest.mark.parametrize(
    ("kind", "changed"),
    [(SELF, "n"), (SELF, "d"), (RESTRICTED, "n"), (RESTRICTED, "d"), (RESTRICTED, "r")],
    ids=lambda value: getattr(value, "name", value),
)
def test_attention_costs_what_the_formula_says(kind, changed):
    """Without its projections, 4 n d^2 products, which table 1 leaves out."""

    def between(n, d, k, r):
        return counted(kind.name, n=n, d=d, r=r) - 2 * 4 * n * d * d

    # So wide that the softmax, which does not grow with d, is next to nothing.
    base = BASE | {"d": 256}
    other = base | {changed: 2 * base[changed]}
    formula = kind.operations(**other) / kind.operations(**base)
    assert between(**other) / between(**base) == pytest.approx(formula, rel=0.1)


@pytest.mark.parametrize("kind", layers.TABLE1, ids=lambda kind: kind.name)
@pytest.mark.parametrize("n", [5, 12])
def test_a_program_has_as_many_sequential_steps_as_the_formula(kind, n):
    run = layers.layer(kind.name, model=MODEL, kernel=3, window=8)
    found = layers.sequential_steps(run, n=n, d_model=D)
    assert found == kind.sequential_operations(n=n)


def test_loops_that_follow_one_another_are_all_counted():
    def twice(x):
        for _ in range(2):
            x, _ = jax.lax.scan(lambda carry, row: (carry + row, None), x[0], x)
            x = jnp.broadcast_to(x, (7, D))
        return x

    def both(x):
        return twice(jnp.tile(x[0], (7, 1)))

    assert layers.sequential_steps(both, n=1, d_model=D) == 14


def test_recurrence_carries_the_first_position_to_the_last():
    run = layers.layer(RECURRENT.name, model=MODEL, kernel=3, window=8)
    x = jax.random.normal(jax.random.key(0), (1, 6, D))
    assert np.abs(run(x) - run(x.at[0, 0].add(1.0)))[0, -1].max() > 0


@pytest.mark.parametrize("n", [11, 12, 3])
def test_restricted_attention_is_self_attention_under_a_band(n):
    whole = layers.layer(SELF.name, model=MODEL, kernel=3, window=4)
    run = layers.layer(RESTRICTED.name, model=MODEL, kernel=3, window=4)
    x = jax.random.normal(jax.random.key(0), (2, n, D))
    for place in range(n):
        band = slice(max(0, place - 2), place + 3)
        # Attention to the band alone, at this place's own position in it.
        expected = whole(x[:, band])[:, place - band.start]
        np.testing.assert_allclose(run(x)[:, place], expected, rtol=1e-4, atol=1e-5)


def test_no_more_sentences_are_timed_than_memory_holds(monkeypatch):
    run = layers.layer(SELF.name, model=MODEL, kernel=3, window=4)
    short, long = (layers.memory(run, n=n, d_model=D) for n in (64, 128))
    # At least the logits of all heads, and no ten times as much.
    logits = 4 * MODEL.num_heads * 128**2
    assert logits < long < 10 * logits and 2.5 < long / short < 4.1
    said = []
    for available, rows in ((2 * 3 * long, 3), (long // 2, 1), (2 * 8 * long, 8)):
        monkeypatch.setattr(memory, "available_bytes", lambda n=available: n)
        costs = table1.measure(
            [64, 128], model=MODEL, kernel=3, window=4, rows=8, say=said.append
        )
        assert costs.rows == rows
    told = [line for line in said if line.startswith("note: ")]
    assert [line.split(":")[1] for line in told] == [
        " 3 sentence(s) instead of 8",
        " 1 sentence(s) instead of 8",
    ]


def test_the_crossing_is_where_the_curves_cross():
    lengths = [32, 64, 128]
    assert layers.crossing(lengths, one=[1.0, 2.0, 3.0], other=[9.0] * 3) is None
    found = layers.crossing(lengths, one=[1.0, 2.0, 4.0], other=[1.5] * 3)
    assert found == pytest.approx(48)
