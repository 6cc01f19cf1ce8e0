"""The feed-forward network against equation 2."""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests import settings
from vaswani_jax.model import feed_forward

B, T, D_MODEL, D_FF = 2, 3, 6, 9


def normal(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def network(d_model: int, d_ff: int, **changes: float) -> feed_forward.FeedForward:
    sizes = {"model.d_model": d_model, "model.d_ff": d_ff}
    return feed_forward.FeedForward(settings.small_settings(**sizes, **changes).model)


def test_feed_forward_is_equation_2_at_every_position() -> None:
    W_1, b_1 = normal(0, D_MODEL, D_FF), normal(1, D_FF)
    W_2, b_2 = normal(2, D_FF, D_MODEL), normal(3, D_MODEL)
    params = {
        "inner": {"kernel": W_1, "bias": b_1},
        "outer": {"kernel": W_2, "bias": b_2},
    }
    module = network(D_MODEL, D_FF)
    x = normal(4, B, T, D_MODEL)
    output = module.apply({"params": params}, jnp.asarray(x), deterministic=True)
    for b in range(B):
        for t in range(T):
            hidden = [
                max(0.0, float(x[b, t] @ W_1[:, f] + b_1[f])) for f in range(D_FF)
            ]
            expected = np.array(hidden) @ W_2 + b_2
            np.testing.assert_allclose(output[b, t], expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("init_scale", [1.0, 0.25])
def test_kernels_start_uniform_and_biases_at_zero(init_scale: float) -> None:
    module = network(40, 70, **{"model.init_scale": init_scale})
    x = jnp.ones((1, 40))
    params = module.init(jax.random.key(0), x, deterministic=True)["params"]
    limit = math.sqrt(init_scale * 6 / 110)  # Glorot's, for 1
    for name, inputs, outputs in (("inner", 40, 70), ("outer", 70, 40)):
        kernel = np.asarray(params[name]["kernel"])
        assert kernel.shape == (inputs, outputs)
        assert 0.99 * limit < np.abs(kernel).max() <= limit
        error = 5 / math.sqrt(kernel.size)
        assert abs(kernel.std() / (limit / math.sqrt(3)) - 1) < error
        np.testing.assert_array_equal(params[name]["bias"], np.zeros(outputs))


def watched_hidden(rate: float, *, deterministic: bool) -> np.ndarray:
    """A network whose output is its inner activations."""
    eye = {"kernel": jnp.eye(64), "bias": jnp.zeros(64)}
    params: dict[str, Any] = {"inner": eye, "outer": eye}
    module = network(64, 64, **{"model.relu_dropout_rate": rate})
    hidden = module.apply(
        {"params": params},
        jnp.asarray(normal(5, B, T, 64)),
        deterministic=deterministic,
        rngs={"dropout": jax.random.key(6)},
    )
    return np.asarray(hidden)


def test_relu_dropout_drops_inner_activations_if_its_rate_is_set() -> None:
    hidden = np.maximum(0, normal(5, B, T, 64))
    np.testing.assert_array_equal(watched_hidden(0.0, deterministic=False), hidden)
    np.testing.assert_array_equal(watched_hidden(0.25, deterministic=True), hidden)
    noisy = watched_hidden(0.25, deterministic=False)
    is_kept = noisy != 0
    np.testing.assert_allclose(noisy[is_kept], hidden[is_kept] / 0.75, rtol=1e-6)
    assert 0.6 < is_kept[hidden > 0].mean() < 0.9
