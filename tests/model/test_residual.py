"""The connection around a sub-layer, and where its dropout lies."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests import reference, settings
from vaswani_jax.core import config, parallel
from vaswani_jax.model import residual

B, T, D_MODEL = 2, 5, 6


def small_model(position: str, rate: float) -> config.ModelConfig:
    overrides = {
        "model.d_model": D_MODEL,
        "model.layer_norm_position": position,
        "model.dropout_rate": rate,
    }
    return settings.small_settings(**overrides).model


def normal(seed: int, *shape: int) -> jax.Array:
    values = np.random.default_rng(seed).standard_normal(shape)
    return jnp.asarray(values, jnp.float32)


NORM = {
    "scale": np.linspace(0.5, 1.5, D_MODEL, dtype=np.float32),
    "bias": np.linspace(2.0, -1.0, D_MODEL, dtype=np.float32),
}


def sublayer(x: jax.Array) -> jax.Array:
    return jnp.flip(x, axis=-1) ** 2 + 1


def run(position: str, rate: float, x: jax.Array, *, deterministic: bool) -> jax.Array:
    return residual.Residual(small_model(position, rate)).apply(
        {"params": {"norm": NORM}},
        x,
        sublayer,
        deterministic=deterministic,
        rngs={"dropout": jax.random.key(2)},
    )


@pytest.mark.parametrize("position", ["post", "pre"])
def test_residual_without_dropout_is_the_formula(position: str) -> None:
    x = normal(3, B, T, D_MODEL)
    output = run(position, 0.4, x, deterministic=True)
    expected = reference.residual(
        {"norm": reference.to_float64(NORM)},
        np.float64(x),
        lambda x: x[..., ::-1] ** 2 + 1,
        model=small_model(position, 0.4),
    )
    np.testing.assert_allclose(output, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("position", ["post", "pre"])
def test_dropout_acts_on_the_sublayer_s_output_before_it_is_added(
    position: str,
) -> None:
    rate = 0.4
    x = normal(4, B, T, D_MODEL)
    output = np.asarray(run(position, rate, x, deterministic=False))
    norm = reference.to_float64(NORM)
    drawn = []
    for b, t in np.ndindex(B, T):
        at = np.float64(x[b, t])
        inner = (
            reference.layer_norm(norm, at, epsilon=1e-6) if position == "pre" else at
        )
        contribution = (inner[::-1] ** 2 + 1) / (1 - rate)
        matches = []
        for mask in itertools.product([0, 1], repeat=D_MODEL):
            expected = at + np.array(mask) * contribution
            if position == "post":
                expected = reference.layer_norm(norm, expected, epsilon=1e-6)
            if np.allclose(output[b, t], expected, rtol=1e-4, atol=1e-4):
                matches.append(mask)
        assert len(matches) == 1
        drawn += matches
    assert len(set(drawn)) > B * T // 2


def test_layer_norm_starts_at_gain_1_and_bias_0_in_float32() -> None:
    for dtype in ("float32", "bfloat16"):
        overrides = {"model.dtype": dtype, "model.d_model": D_MODEL}
        module = residual.layer_norm(settings.small_settings(**overrides).model)
        params = module.init(jax.random.key(5), normal(6, D_MODEL))["params"]
        np.testing.assert_array_equal(params["scale"], np.ones(D_MODEL))
        np.testing.assert_array_equal(params["bias"], np.zeros(D_MODEL))
        assert params["scale"].dtype == params["bias"].dtype == jnp.float32


@pytest.mark.parametrize("platform", ["cpu", "gpu", "tpu"])
def test_layer_norm_of_a_large_common_offset_keeps_its_precision(platform: str) -> None:
    """The mean of squares minus the square of the mean would lose all digits."""
    x = jnp.arange(6.0) + 10_000
    with parallel.targeting(platform):
        module = residual.layer_norm(small_model("post", 0.0))
    normalized = module.apply(
        {"params": {"scale": jnp.ones(6), "bias": jnp.zeros(6)}}, x
    )
    expected = (np.arange(6) - 2.5) / np.sqrt(35 / 12)
    np.testing.assert_allclose(normalized, expected, rtol=1e-3)


def test_one_pass_in_bfloat16_errs_by_no_more_than_its_rounding() -> None:
    """Of values whose mean is thirty times their standard deviation."""
    rows, width, rounding = 40, 512, 2.0**-8
    model = settings.small_settings(
        **{"model.d_model": width, "model.dtype": "bfloat16"}
    ).model
    params = {
        "scale": np.linspace(0.5, 1.5, width, dtype=np.float32),
        "bias": np.linspace(2.0, -1.0, width, dtype=np.float32),
    }
    x = (30 + normal(7, rows, width)).astype(jnp.bfloat16)
    cotangent = normal(8, rows, width).astype(jnp.bfloat16)

    def run_for(platform: str) -> tuple[np.ndarray, np.ndarray]:
        with parallel.targeting(platform):
            norm = residual.layer_norm(model)
        output, derivative = jax.vjp(lambda x: norm.apply({"params": params}, x), x)
        return np.float64(output), np.float64(derivative(cotangent)[0])

    output, gradient = run_for("tpu")
    of_cpu, gradient_of_cpu = run_for("cpu")
    assert not np.array_equal(output, of_cpu)
    expected = reference.layer_norm(
        reference.to_float64(params), np.float64(x), epsilon=model.layer_norm_epsilon
    )
    np.testing.assert_allclose(output, expected, rtol=rounding, atol=1e-4)
    np.testing.assert_allclose(output, of_cpu, rtol=2 * rounding, atol=1e-4)

    # The gradient reaches x directly, and by way of mean and variance: two numbers in
    # bfloat16, and their sum.
    deviation = np.float64(x) - np.float64(x).mean(-1, keepdims=True)
    inverse = 1 / np.sqrt((deviation**2).mean(-1, keepdims=True) + 1e-6)
    normalized, direct = deviation * inverse, np.float64(cotangent) * params["scale"]
    indirect = direct.mean(-1, keepdims=True)
    indirect = indirect + normalized * (direct * normalized).mean(-1, keepdims=True)
    direct, indirect = inverse * direct, inverse * indirect
    sizes = np.abs(direct) + np.abs(indirect) + np.abs(direct - indirect)
    assert np.all(np.abs(gradient - (direct - indirect)) <= rounding * sizes + 1e-4)
    difference = np.abs(gradient - gradient_of_cpu)
    assert np.all(difference <= 2 * rounding * sizes + 1e-4)
