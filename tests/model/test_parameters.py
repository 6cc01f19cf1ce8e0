"""Parameters are read without their initialisers, and made as Flax makes them."""

import flax.errors
import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from vaswani_jax.model import parameters

B, M, H, K = 2, 3, 5, 4


def counted(calls: list[tuple[int, ...]]) -> jax.nn.initializers.Initializer:
    """Return an initialiser that notes the shapes that it is asked for."""

    def init(key, shape, dtype=jnp.float32, *_):
        calls.append(tuple(shape))
        return jax.random.normal(key, shape, dtype)

    return init


PAIRS = [
    (parameters.Dense, nn.Dense, {"features": K, "bias_init": nn.initializers.ones}),
    (parameters.DenseGeneral, nn.DenseGeneral, {"features": (H, K)}),
    (parameters.LayerNorm, nn.LayerNorm, {}),
]


@pytest.mark.parametrize(("layer", "original", "options"), PAIRS)
def test_parameters_are_those_of_flax(layer, original, options):
    x = jax.random.normal(jax.random.key(1), (B, M))
    variables = layer(**options).init(jax.random.key(0), x)
    expected = original(**options).init(jax.random.key(0), x)
    jax.tree.map(np.testing.assert_array_equal, variables, expected)
    np.testing.assert_array_equal(
        layer(**options).apply(variables, x), original(**options).apply(variables, x)
    )


def test_reading_a_parameter_leaves_its_initialiser_alone():
    calls: list[tuple[int, ...]] = []
    dense = parameters.Dense(K, kernel_init=counted(calls))
    variables = dense.init(jax.random.key(0), jnp.ones((B, M)))
    assert calls == [(M, K)]
    dense.apply(variables, jnp.ones((B, M)))
    assert calls == [(M, K)]


def test_a_parameter_of_another_shape_is_refused():
    dense = parameters.Dense(K)
    variables = dense.init(jax.random.key(0), jnp.ones((B, M)))
    with pytest.raises(flax.errors.ScopeParamShapeError, match="kernel"):
        dense.apply(variables, jnp.ones((B, M + 1)))


def test_a_missing_parameter_is_named():
    with pytest.raises(flax.errors.ScopeParamNotFoundError, match="kernel"):
        parameters.Dense(K).apply({"params": {"bias": jnp.ones(K)}}, jnp.ones((B, M)))
