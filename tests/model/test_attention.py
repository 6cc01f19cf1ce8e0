"""Attention against equation 1 written in NumPy, and its laws."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests import reference, settings
from vaswani_jax.core import config
from vaswani_jax.model import attention

B, Q, K, H, D_K, D_V, D_MODEL = 2, 3, 5, 4, 7, 6, 8
NAMES = ("query", "key", "value", "output")


def small_model(**overrides: object) -> config.ModelConfig:
    sizes = {"num_heads": H, "d_k": D_K, "d_v": D_V, "d_model": D_MODEL}
    defaults = {f"model.{key}": size for key, size in sizes.items()}
    return settings.small_settings(**(defaults | overrides)).model


def normal(seed: int, *shape: int) -> jax.Array:
    values = np.random.default_rng(seed).standard_normal(shape)
    return jnp.asarray(values, jnp.float32)


def initial_kernels(model: config.ModelConfig) -> dict[str, np.ndarray]:
    def whole(module: attention.MultiHeadAttention, x: jax.Array) -> jax.Array:
        mask = jnp.ones((1, 1, 1, 1), bool)
        return module(x, module.keys_values(x), mask=mask, deterministic=True)

    x = jnp.ones((1, 1, model.d_model))
    module = attention.MultiHeadAttention(model)
    params = module.init(jax.random.key(0), x, method=whole)["params"]
    assert {name: set(leaves) for name, leaves in params.items()} == {
        name: {"kernel"} for name in NAMES
    }
    return {name: np.asarray(params[name]["kernel"]) for name in NAMES}


def test_attention_weights_follow_equation_1() -> None:
    query, key = normal(0, B, Q, H, D_K), normal(1, B, K, H, D_K)
    mask = np.random.default_rng(2).random((B, H, Q, K)) < 0.6
    mask[..., 0] = True
    weights = attention.attention_weights(query, key, jnp.asarray(mask))
    assert weights.shape == (B, H, Q, K)
    for b in range(B):
        for h in range(H):
            for q in range(Q):
                shown = np.flatnonzero(mask[b, h, q])
                scores = [
                    math.exp(float(query[b, q, h] @ key[b, k, h]) / math.sqrt(D_K))
                    for k in shown
                ]
                expected = np.zeros(K)
                expected[shown] = np.array(scores) / sum(scores)
                found = weights[b, h, q]
                np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_attention_weights_ignore_masked_keys() -> None:
    query, key = normal(3, B, Q, H, D_K), normal(4, B, K, H, D_K)
    mask = jnp.asarray([[True, True, False, True, False], [False] + 4 * [True]])
    mask = mask[:, None, None, :]
    before = attention.attention_weights(query, key, mask)
    hidden = ~mask.reshape(B, K, 1, 1)
    changed = jnp.where(hidden, 100 * normal(5, B, K, H, D_K), key)
    after = attention.attention_weights(query, changed, mask)
    np.testing.assert_array_equal(after, before)
    assert (np.asarray(after)[~np.broadcast_to(mask, after.shape)] == 0).all()


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.bfloat16])
def test_a_query_that_may_look_at_nothing_gets_a_uniform_row(dtype: object) -> None:
    query = normal(6, B, Q, H, D_K).astype(dtype)
    key = 50 * normal(7, B, K, H, D_K).astype(dtype)
    nothing = jnp.zeros((B, 1, 1, K), bool)
    weights = attention.attention_weights(query, key, nothing)
    assert weights.dtype == jnp.float32
    np.testing.assert_allclose(weights, np.full((B, H, Q, K), 1 / K), rtol=1e-6)


def test_attention_weights_of_bfloat16_sum_to_1_as_closely_as_in_float32() -> None:
    query = normal(8, B, Q, H, D_K).astype(jnp.bfloat16)
    key = normal(9, B, K, H, D_K).astype(jnp.bfloat16)
    weights = attention.attention_weights(query, key, jnp.ones((1, 1, 1, K), bool))
    assert weights.dtype == jnp.float32
    np.testing.assert_allclose(weights.sum(axis=-1), 1, rtol=1e-6)


def test_attention_is_equation_1_on_each_head_then_one_projection() -> None:
    model = small_model()
    shapes = {name: kernel.shape for name, kernel in initial_kernels(model).items()}
    params = {
        name: {"kernel": normal(10 + i, *shapes[name])} for i, name in enumerate(NAMES)
    }
    x, memory = normal(15, B, Q, D_MODEL), normal(16, B, K, D_MODEL)
    mask = np.tril(np.ones((Q, K), bool), k=1)
    module = attention.MultiHeadAttention(model).bind({"params": params})
    keys_values = module.keys_values(memory)
    assert keys_values.key.shape == (B, K, H, D_K)
    assert keys_values.value.shape == (B, K, H, D_V)
    found = module(
        x, keys_values, mask=jnp.asarray(mask)[None, None], deterministic=True
    )
    for b in range(B):
        expected = reference.multi_head_attention(
            reference.to_float64(params), np.float64(x[b]), np.float64(memory[b]), mask
        )
        np.testing.assert_allclose(found[b], expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("init_scale", [1.0, 0.25])
def test_projections_start_uniform_over_all_heads(init_scale: float) -> None:
    sizes = {"d_model": 48, "num_heads": 6, "d_k": 10, "d_v": 14}
    model = small_model(
        **{f"model.{key}": size for key, size in sizes.items()},
        **{"model.init_scale": init_scale},
    )
    kernels = initial_kernels(model)
    shapes = {name: kernel.shape for name, kernel in kernels.items()}
    keys, values = (48, 6, 10), (48, 6, 14)
    expected = {"query": keys, "key": keys, "value": values, "output": (6, 14, 48)}
    assert shapes == expected
    for name, fan in (("query", 60), ("key", 60), ("value", 84), ("output", 84)):
        bound = math.sqrt(init_scale * 6 / (48 + fan))  # Glorot's, for 1
        kernel = kernels[name]
        assert 0.99 * bound < np.abs(kernel).max() <= bound
        # The standard deviation of a uniform distribution, within 5 of its errors.
        error = 5 / math.sqrt(kernel.size)
        assert abs(kernel.std() / (bound / math.sqrt(3)) - 1) < error
        assert abs(kernel.mean()) < error * bound


def watched_weights(**rates: float) -> tuple[np.ndarray, np.ndarray]:
    """Attention whose output is its weights, with and without dropout."""
    keys = 64
    sizes = {"num_heads": 1, "d_k": D_K, "d_v": keys, "d_model": keys}
    model = small_model(
        **{f"model.{key}": size for key, size in sizes.items()}, **rates
    )
    eye = jnp.eye(keys)
    keys_values = attention.KeysValues(
        key=normal(17, 1, keys, 1, D_K), value=eye[None, :, None, :]
    )
    kernels = {"query": 0.2 * normal(18, keys, 1, D_K), "output": eye[None]}
    params = {name: {"kernel": kernel} for name, kernel in kernels.items()}

    def run(*, deterministic: bool) -> np.ndarray:
        return np.asarray(
            attention.MultiHeadAttention(model).apply(
                {"params": params},
                normal(19, 1, Q, keys),
                keys_values,
                mask=jnp.ones((1, 1, 1, keys), bool),
                deterministic=deterministic,
                rngs={"dropout": jax.random.key(20)},
            )
        )

    return run(deterministic=True), run(deterministic=False)


def test_attention_weights_get_no_dropout_from_the_paper_s_rate() -> None:
    plain, noisy = watched_weights(**{"model.dropout_rate": 0.5})
    np.testing.assert_array_equal(noisy, plain)


def test_attention_dropout_drops_weights_after_the_softmax() -> None:
    plain, noisy = watched_weights(**{"model.attention_dropout_rate": 0.25})
    np.testing.assert_allclose(plain.sum(axis=-1), 1, rtol=1e-5)
    kept = noisy != 0
    assert 0.6 < kept.mean() < 0.9
    np.testing.assert_allclose(noisy[kept], plain[kept] / 0.75, rtol=1e-5)
