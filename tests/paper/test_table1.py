"""Table 1's formulas against paths and operations that are counted."""

import logging

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests import settings
from vaswani_jax.core import memory
from vaswani_jax.paper import table1

SELF, RECURRENT, CONVOLUTIONAL, RESTRICTED = table1.LAYER_TYPES
D = 32
MODEL = settings.small_settings(
    **{"model.d_model": D, "model.num_heads": 2, "model.d_k": 16, "model.d_v": 16}
).model


def reach(kind, *, n, kernel, window, depth):
    """Return whether a stack of layers connects the first and the last position."""
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


@pytest.mark.parametrize("kind", table1.LAYER_TYPES, ids=lambda kind: kind.name)
@pytest.mark.parametrize("n", [9, 27, 81])
def test_a_path_of_the_stated_length_connects_the_ends(kind, n):
    depth = kind.path_length(n=n, k=3, r=9)
    assert reach(kind, n=n, kernel=3, window=9, depth=depth)
    # The formula of a recurrence is n, where the ends are n - 1 steps apart.
    shorter = depth - 2 if kind is RECURRENT else depth - 1
    assert not reach(kind, n=n, kernel=3, window=9, depth=shorter)


def counted(name, *, n, d, k=3, r=8):
    """Return XLA's count of a layer's operations."""
    model = settings.small_settings(
        **{
            "model.d_model": d,
            "model.num_heads": 2,
            "model.d_k": d // 2,
            "model.d_v": d // 2,
        }
    ).model
    run = table1.make_layer(name, model=model, kernel=k, window=r)
    return run.lower(jnp.zeros((1, n, d))).compile().cost_analysis()["flops"]


BASE = {"n": 64, "d": 32, "k": 3, "r": 8}


@pytest.mark.parametrize("changed", ["n", "d", "k"])
def test_a_convolution_costs_what_the_formula_says(changed):
    doubled = BASE | {changed: 2 * BASE[changed]}
    ratio = counted(CONVOLUTIONAL.name, **doubled) / counted(CONVOLUTIONAL.name, **BASE)
    formula = CONVOLUTIONAL.operations(**doubled) / CONVOLUTIONAL.operations(**BASE)
    # Its ends see fewer positions, in proportion to k / n.
    assert ratio == pytest.approx(formula, rel=0.05)


@pytest.mark.parametrize("changed", ["n", "d"])
def test_a_step_of_a_recurrence_costs_what_the_formula_says(changed):
    """XLA counts the body of a loop once: n steps of d^2."""

    def total(n, d, k, r):
        steps = table1.sequential_steps(
            table1.make_layer(
                RECURRENT.name,
                model=settings.small_settings(**{"model.d_model": d}).model,
                kernel=3,
                window=8,
            ),
            n=n,
            d_model=d,
        )
        step = counted(RECURRENT.name, n=n, d=2 * d) - counted(RECURRENT.name, n=n, d=d)
        return steps * step

    doubled = BASE | {changed: 2 * BASE[changed]}
    formula = RECURRENT.operations(**doubled) / RECURRENT.operations(**BASE)
    assert total(**doubled) / total(**BASE) == pytest.approx(formula, rel=0.1)


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
    doubled = base | {changed: 2 * base[changed]}
    formula = kind.operations(**doubled) / kind.operations(**base)
    assert between(**doubled) / between(**base) == pytest.approx(formula, rel=0.1)


@pytest.mark.parametrize("kind", table1.LAYER_TYPES, ids=lambda kind: kind.name)
@pytest.mark.parametrize("n", [5, 12])
def test_a_program_has_as_many_sequential_steps_as_the_formula(kind, n):
    run = table1.make_layer(kind.name, model=MODEL, kernel=3, window=8)
    steps = table1.sequential_steps(run, n=n, d_model=D)
    assert steps == kind.sequential_operations(n=n)


def test_loops_that_follow_one_another_are_all_counted():
    def twice(x):
        for _ in range(2):
            x, _ = jax.lax.scan(lambda carry, row: (carry + row, None), x[0], x)
            x = jnp.broadcast_to(x, (7, D))
        return x

    def both(x):
        return twice(jnp.tile(x[0], (7, 1)))

    assert table1.sequential_steps(both, n=1, d_model=D) == 14


def test_recurrence_carries_the_first_position_to_the_last():
    run = table1.make_layer(RECURRENT.name, model=MODEL, kernel=3, window=8)
    x = jax.random.normal(jax.random.key(0), (1, 6, D))
    assert np.abs(run(x) - run(x.at[0, 0].add(1.0)))[0, -1].max() > 0


@pytest.mark.parametrize("n", [11, 12, 3])
def test_restricted_attention_is_self_attention_under_a_band(n):
    unrestricted = table1.make_layer(SELF.name, model=MODEL, kernel=3, window=4)
    run = table1.make_layer(RESTRICTED.name, model=MODEL, kernel=3, window=4)
    x = jax.random.normal(jax.random.key(0), (2, n, D))
    for position in range(n):
        band = slice(max(0, position - 2), position + 3)
        # Self-attention within the band, at this position of it.
        expected = unrestricted(x[:, band])[:, position - band.start]
        np.testing.assert_allclose(run(x)[:, position], expected, rtol=1e-4, atol=1e-5)


def test_no_more_sentences_are_timed_than_memory_holds(monkeypatch, caplog):
    run = table1.make_layer(SELF.name, model=MODEL, kernel=3, window=4)
    short, long = (table1.sentence_bytes(run, n=n, d_model=D) for n in (64, 128))
    # At least the logits of all heads, and no ten times as much.
    logits = 4 * MODEL.num_heads * 128**2
    assert logits < long < 10 * logits and 2.5 < long / short < 4.1
    caplog.set_level(logging.INFO, logger="vaswani_jax.paper")
    for available, rows in ((2 * 3 * long, 3), (long // 2, 1), (2 * 8 * long, 8)):
        monkeypatch.setattr(memory, "available_bytes", lambda n=available: n)
        costs = table1.measure([64, 128], model=MODEL, kernel=3, window=4, rows=8)
        assert costs.rows == rows
    notes = [line for line in caplog.messages if line.startswith("note: ")]
    assert [line.split(":")[1] for line in notes] == [
        " 3 sentences instead of 8",
        " 1 sentence instead of 8",
    ]


@pytest.mark.parametrize(
    ("attention", "recurrence", "expected"),
    [
        ([1.0, 2.0, 3.0], [9.0, 9.0, 9.0], None),
        ([9.0, 9.0, 9.0], [1.0, 2.0, 3.0], None),
        ([1.0, 4.0, 16.0], [2.0, 4.0, 8.0], 64),
        # By logarithms: ln(4 / 3) of ln 2 beyond 32.
        ([3.0, 6.0, 12.0], [4.0, 4.0, 4.0], 32 * 4 / 3),
        # The last of several crossings, here the middle of 128 and 256.
        ([1.0, 4.0, 1.0, 4.0], [2.0, 2.0, 2.0, 2.0], 128 * 2**0.5),
        ([1.0, 4.0, 4.0, 1.0], [2.0, 2.0, 2.0, 2.0], None),
        ([4.0, 1.0, 4.0], [2.0, 2.0, 2.0], 64 * 2**0.5),
        ([1.0, 2.0, 4.0], [2.0, 2.0, 2.0], 64),
        # Equal at the first length.
        ([2.0, 4.0, 8.0], [2.0, 2.0, 2.0], 32),
        ([2.0, 2.0, 8.0], [2.0, 2.0, 2.0], 32),
        ([2.0, 1.0, 1.0], [2.0, 2.0, 2.0], None),
    ],
)
def test_the_crossing_is_where_the_curves_cross(attention, recurrence, expected):
    curves = {SELF.name: attention, RECURRENT.name: recurrence}
    lengths = (32, 64, 128, 256)[: len(attention)]
    costs = table1.Costs(lengths, D, 3, 8, 1, curves, {}, curves)
    assert costs.crossing(curves) == (expected and pytest.approx(expected))
