"""Attention and its kernel against equation 1 written in NumPy, and its laws."""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests import reference, settings
from vaswani_jax.core import config, parallel, types
from vaswani_jax.model import attention
from vaswani_jax.training import step

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
    def self_attend(module: attention.MultiHeadAttention, x: jax.Array) -> jax.Array:
        mask = jnp.ones((1, 1, 1, 1), bool)
        return module(x, module.keys_values(x), mask=mask, deterministic=True)

    x = jnp.ones((1, 1, model.d_model))
    module = attention.MultiHeadAttention(model)
    params = module.init(jax.random.key(0), x, method=self_attend)["params"]
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
                row = weights[b, h, q]
                np.testing.assert_allclose(row, expected, rtol=1e-5)


def test_attention_weights_ignore_masked_keys() -> None:
    query, key = normal(3, B, Q, H, D_K), normal(4, B, K, H, D_K)
    mask = jnp.asarray([[True, True, False, True, False], [False] + 4 * [True]])
    mask = mask[:, None, None, :]
    weights = attention.attention_weights(query, key, mask)
    hidden = ~mask.reshape(B, K, 1, 1)
    changed = jnp.where(hidden, 100 * normal(5, B, K, H, D_K), key)
    changed_weights = attention.attention_weights(query, changed, mask)
    np.testing.assert_array_equal(changed_weights, weights)
    assert (
        np.asarray(changed_weights)[~np.broadcast_to(mask, changed_weights.shape)] == 0
    ).all()


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
    output = module(
        x, keys_values, mask=jnp.asarray(mask)[None, None], deterministic=True
    )
    for b in range(B):
        expected = reference.multi_head_attention(
            reference.to_float64(params), np.float64(x[b]), np.float64(memory[b]), mask
        )
        np.testing.assert_allclose(output[b], expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_tpu_s_heads_and_their_gradients_are_those_of_the_weights(dtype: str) -> None:
    """Also of a query that may look at nothing."""
    model = small_model(**{"model.dtype": dtype})
    x, memory = normal(20, B, Q, D_MODEL), normal(21, B, K, D_MODEL)
    mask = np.random.default_rng(22).random((B, 1, Q, K)) < 0.5
    mask[0, 0, 1], mask[1, 0, 2] = True, False

    def attend(kernels: jax.Array, x: jax.Array, memory: jax.Array) -> jax.Array:
        params = {name: {"kernel": kernels[name]} for name in NAMES}

        def method(module: attention.MultiHeadAttention) -> jax.Array:
            keys_values = module.keys_values(memory)
            return module(x, keys_values, mask=jnp.asarray(mask), deterministic=False)

        module = attention.MultiHeadAttention(model)
        heads = module.apply({"params": params}, method=method)
        return jnp.sum(heads.astype(jnp.float32) * normal(23, B, Q, D_MODEL))

    def with_gradients() -> tuple[jax.Array, jax.Array]:
        function = jax.value_and_grad(attend, argnums=(0, 1, 2))
        return jax.jit(function)(initial_kernels(model), x, memory)

    expected = with_gradients()
    with parallel.targeting("tpu"):
        on_tpu = with_gradients()
    tolerance = 1e-5 if dtype == "float32" else 0.02
    for value, same in zip(*map(jax.tree.leaves, (on_tpu, expected)), strict=True):
        error = np.linalg.norm(value - same) / np.linalg.norm(same)
        assert error < tolerance


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
    is_kept = noisy != 0
    assert 0.6 < is_kept.mean() < 0.9
    np.testing.assert_allclose(noisy[is_kept], plain[is_kept] / 0.75, rtol=1e-5)


V = 50
SIZES = {
    "model.d_model": 64,
    "model.d_ff": 96,
    "model.num_heads": 2,
    "model.d_k": 32,
    "model.d_v": 32,
}


def ragged_batch(seed: int) -> types.Batch:
    """Sentences of all lengths, and at the end rows of padding alone."""
    batch = settings.random_batch(
        rows=6, source_length=24, target_length=32, vocab_size=V, seed=seed
    )
    return jax.tree.map(lambda leaf: np.pad(leaf, [(0, 2), (0, 0)]), batch)


def packed_batch() -> types.Batch:
    """Two sentences in each row, with padding after either."""
    parts = [ragged_batch(seed) for seed in (1, 2)]

    def joined(side: str) -> np.ndarray:
        return np.concatenate([getattr(part, side) for part in parts], axis=1)

    def segments(side: str) -> np.ndarray:
        tokens = [getattr(part, side) for part in parts]
        numbers = [(ids != 0) * number for number, ids in enumerate(tokens, start=1)]
        return np.concatenate(numbers, axis=1).astype(np.int32)

    sides = map(joined, ("source", "target_in", "target_out"))
    both = types.Segments(segments("source"), segments("target_in"))
    return types.Batch(*sides, both)


BATCHES = {"ragged": ragged_batch(1), "packed": packed_batch()}
# The batch of each case, and what the update that is compared with XLA's does with it.
CASES = {
    "ragged": ("ragged", False),
    "packed": ("packed", False),
    "rematerialised": ("ragged", True),
}


@functools.cache
def update(
    batch: str, *, attention: str, dtype: str, rematerialize: bool
) -> tuple[step.TrainState, step.StepMetrics]:
    small = settings.small_settings(
        **SIZES,
        **{
            "model.attention": attention,
            "model.dtype": dtype,
            "model.rematerialize": rematerialize,
        },
    )
    run = parallel.over_devices(
        step.train_step(small, vocab_size=V, num_microbatches=1), donate_state=False
    )
    state = parallel.replicate(step.create_state(small, vocab_size=V))
    return run(state, parallel.split_rows(BATCHES[batch], num_microbatches=1))


def check_agreement(case: str, *, attention: str, dtypes: tuple[str, str]) -> None:
    """An update by `attention` is one by XLA's, as far as bfloat16 can tell."""
    batch, rematerialize = CASES[case]
    by_xla, metrics = update(
        batch, attention="xla", dtype=dtypes[0], rematerialize=False
    )
    by_other, other_metrics = update(
        batch, attention=attention, dtype=dtypes[1], rematerialize=rematerialize
    )
    assert float(metrics.sums.tokens) == float(other_metrics.sums.tokens) > 0
    np.testing.assert_allclose(other_metrics.sums.loss, metrics.sums.loss, rtol=0.02)
    gradients = (jax.tree.leaves(state.opt_state[0].mu) for state in (by_xla, by_other))
    for gradient, other_gradient in zip(*gradients, strict=True):
        # The direction and the size agree; a NaN would not.
        gradient, other_gradient = np.ravel(gradient), np.ravel(other_gradient)
        assert np.linalg.norm(gradient) > 0
        assert np.linalg.norm(gradient - other_gradient) <= 0.1 * np.linalg.norm(
            gradient
        )


@pytest.mark.parametrize("case", CASES)
def test_bfloat16_gives_the_loss_and_the_gradients_of_float32(case):
    check_agreement(case, attention="xla", dtypes=("float32", "bfloat16"))


@pytest.mark.gpu
@pytest.mark.parametrize("case", CASES)
def test_cudnn_gives_the_loss_and_the_gradients_of_xla(case):
    check_agreement(case, attention="cudnn", dtypes=("bfloat16", "bfloat16"))


# Queries, keys and the width of a head: those of training, of base and big, and of the
# shortest bucket.
SHAPES = [(4, 4, 32), (12, 32, 64), (32, 32, 64), (256, 256, 64), (24, 36, 128)]
MASKS = ("ragged", "causal", "packed")


def masked(kind: str, queries: int, keys: int) -> np.ndarray:
    """[3, 1, queries, keys], true where a query may look at a key: always at one."""
    if kind == "ragged":
        lengths = np.array([keys, keys // 2 + 1, 1])
        mask = np.arange(keys) < lengths[:, None, None]
    elif kind == "causal":
        mask = np.tri(queries, keys, dtype=bool)[None]
    else:
        second = (np.arange(n) >= n // 2 for n in (queries, keys))
        mask = np.equal.outer(*second)[None]
    return np.broadcast_to(mask[:, None], (3, 1, queries, keys))


def check_equation_1(kind: str, queries: int, keys: int, width: int) -> None:
    """Output and gradients are those of the formula in float64, each number."""
    generator = np.random.default_rng(queries + width)
    q, k, v, wanted_by = (
        jnp.asarray(generator.normal(size=(3, n, 2, width)), jnp.bfloat16)
        for n in (queries, keys, keys, queries)
    )
    mask = masked(kind, queries, keys)

    def fused(q, k, v):
        keys_values = attention.KeysValues(key=k, value=v)
        return attention.fused_attention(q, keys_values, mask=jnp.asarray(mask))

    output, derivative = jax.vjp(fused, q, k, v)
    q64, k64, v64, g64 = (np.asarray(x, np.float64) for x in (q, k, v, wanted_by))
    scores = np.einsum("bqhd,bkhd->bhqk", q64, k64) / np.sqrt(width)
    weights = np.exp(np.where(mask, scores - scores.max(), -np.inf))
    weights /= weights.sum(axis=-1, keepdims=True)
    by_weight = np.einsum("bqhd,bkhd->bhqk", g64, v64)
    mean = (weights * by_weight).sum(axis=-1, keepdims=True)
    by_score = weights * (by_weight - mean) / np.sqrt(width)
    expected = (
        np.einsum("bhqk,bkhd->bqhd", weights, v64),
        np.einsum("bhqk,bkhd->bqhd", by_score, k64),
        np.einsum("bhqk,bqhd->bkhd", by_score, q64),
        np.einsum("bhqk,bqhd->bkhd", weights, g64),
    )
    for result, exact in zip((output, *derivative(wanted_by)), expected, strict=True):
        # Weights and results are rounded to 8 bits; their errors add like noise.
        bound = 2**-6 * np.abs(exact).max()
        np.testing.assert_allclose(np.asarray(result, np.float64), exact, atol=bound)


@pytest.mark.parametrize("kind", MASKS)
@pytest.mark.parametrize(("queries", "keys", "width"), SHAPES)
def test_xla_s_kernel_is_equation_1(kind, queries, keys, width, monkeypatch):
    """The measure by which cuDNN's is judged, where there is no GPU."""
    kernel = jax.nn.dot_product_attention

    def by_xla(*arguments, implementation, **options):
        return kernel(*arguments, implementation="xla", **options)

    monkeypatch.setattr(jax.nn, "dot_product_attention", by_xla)
    check_equation_1(kind, queries, keys, width)


@pytest.mark.gpu
@pytest.mark.parametrize("kind", MASKS)
@pytest.mark.parametrize(("queries", "keys", "width"), SHAPES)
def test_cudnn_s_kernel_is_equation_1(kind, queries, keys, width):
    check_equation_1(kind, queries, keys, width)
