"""The shared table: lookups, logits and its start."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from vaswani_jax.model import embeddings

B, T, V, D_MODEL = 2, 3, 11, 6


def bound(dtype: object) -> tuple[embeddings.Embedding, np.ndarray]:
    table = np.random.default_rng(0).standard_normal((V, D_MODEL)).astype(np.float32)
    module = embeddings.Embedding(V, D_MODEL, jnp.dtype(dtype), logits_bias=False)
    return module.bind({"params": {"embedding": jnp.asarray(table)}}), table


def test_lookups_are_rows_times_the_root_of_d_model() -> None:
    module, table = bound(jnp.float32)
    tokens = np.array([[4, 0, 10], [4, 7, 1]])
    vectors = module(jnp.asarray(tokens))
    assert vectors.shape == (B, T, D_MODEL)
    for b in range(B):
        for t in range(T):
            expected = table[tokens[b, t]].astype(float) * math.sqrt(6)
            np.testing.assert_allclose(vectors[b, t], expected, rtol=1e-6)


def test_logits_are_products_with_the_same_table_unscaled_and_without_bias() -> None:
    module, table = bound(jnp.float32)
    x = np.random.default_rng(1).standard_normal((B, T, D_MODEL)).astype(np.float32)
    expected = np.float64(x) @ np.float64(table).T
    logits = module.logits(jnp.asarray(x))
    np.testing.assert_allclose(logits, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.bfloat16])
def test_lookups_and_logits_are_float32(dtype: object) -> None:
    module, _ = bound(dtype)
    assert module(jnp.zeros((B, T), jnp.int32)).dtype == jnp.float32
    assert module.logits(jnp.ones((B, T, D_MODEL), dtype)).dtype == jnp.float32


def test_the_table_starts_so_that_lookups_have_unit_variance() -> None:
    module = embeddings.Embedding(500, 64, jnp.dtype(jnp.float32), logits_bias=False)
    params = module.init(jax.random.key(0), jnp.zeros((1,), jnp.int32))["params"]
    assert set(params) == {"embedding"}
    table = params["embedding"]
    assert table.shape == (500, 64)
    assert table.dtype == jnp.float32
    assert abs(float(table.std()) * 8 - 1) < 5 / math.sqrt(2 * table.size)
    assert abs(float(table.mean())) * 8 < 5 / math.sqrt(table.size)
    # Normal, not uniform or truncated: 4.55 % lie beyond two standard deviations.
    beyond = float((jnp.abs(table) * 8 > 2).mean())
    assert abs(beyond - 0.0455) < 5 * math.sqrt(0.0455 / table.size)
