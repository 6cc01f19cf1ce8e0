"""Table 1: the formulas against paths and operations that are counted."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests import settings
from vaswani_jax.analysis import layers

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
        sees = distance <= window
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
    shorter = {SELF: 0, RECURRENT: depth - 2, CONVOLUTIONAL: depth - 1}
    assert not reach(kind, n=n, kernel=3, window=9, depth=shorter.get(kind, depth - 2))


def counted(name, n):
    run = layers.layer(name, model=MODEL, kernel=3, window=8)
    cost = run.lower(jnp.zeros((1, n, D))).compile().cost_analysis()
    return cost["flops"]


@pytest.mark.parametrize(
    "kind", [SELF, CONVOLUTIONAL, RESTRICTED], ids=lambda k: k.name
)
def test_operations_grow_with_the_length_as_the_formula_says(kind):
    """Projections, linear in n, are taken away by a second difference or divided."""
    n = 64
    one, two, four = (counted(kind.name, n * times) for times in (1, 2, 4))
    formula = [kind.operations(n=n * times, d=D, k=3, r=8) for times in (1, 2, 4)]
    if kind is SELF:
        curved = (four - 2 * two) / (two - 2 * one)
        expected = (formula[2] - 2 * formula[1]) / (formula[1] - 2 * formula[0])
    else:
        curved, expected = two / one, formula[1] / formula[0]
    assert curved == pytest.approx(expected, rel=0.1)


def test_recurrence_has_as_many_steps_as_positions():
    run = layers.layer("Recurrent", model=MODEL, kernel=3, window=8)
    changed = jax.jit(jax.jacobian(lambda x: run(x)[0, -1].sum()))
    x = jax.random.normal(jax.random.key(0), (1, 6, D))
    assert (np.abs(changed(x))[0].sum(axis=1) > 0).all()  # the last sees the first
    assert [RECURRENT.sequential_operations(n=n) for n in (1, 7)] == [1, 7]
    assert SELF.sequential_operations(n=7) == 1


def test_restricted_attention_stays_in_its_window():
    run = layers.layer(RESTRICTED.name, model=MODEL, kernel=3, window=4)
    x = jax.random.normal(jax.random.key(0), (1, 12, D))
    before, after = run(x), run(x.at[0, 0].add(1.0))
    changed = np.abs(after - before)[0].max(axis=1) > 0
    np.testing.assert_array_equal(changed, np.arange(12) < 4)


def test_the_crossing_is_where_the_curves_cross():
    lengths = [32, 64, 128]
    assert layers.crossing(lengths, [1.0, 2.0, 3.0], [9.0, 9.0, 9.0]) is None
    found = layers.crossing(lengths, [1.0, 2.0, 4.0], [1.5, 1.5, 1.5])
    assert found == pytest.approx(48)
