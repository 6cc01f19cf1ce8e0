"""cuDNN's attention kernel, on a GPU: equation 1, and the gradients of XLA's."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests import settings
from vaswani_jax.core import parallel, types
from vaswani_jax.model import attention
from vaswani_jax.training import step

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


CASES = {
    "ragged": (ragged_batch(1), {}),
    "packed": (packed_batch(), {}),
    "rematerialised": (ragged_batch(3), {"model.rematerialize": True}),
}


def check_agreement(case: str, *, attention: str, dtypes: tuple[str, str]) -> None:
    """An update by `attention` is one by XLA's, as far as bfloat16 can tell."""
    batch, changes = CASES[case]
    found = []
    for implementation, dtype in zip(("xla", attention), dtypes, strict=True):
        choice = {"model.attention": implementation, "model.dtype": dtype}
        small = settings.small_settings(**SIZES, **changes, **choice)
        run = parallel.over_devices(
            step.train_step(small, vocab_size=V, num_microbatches=1), donate_state=False
        )
        state = parallel.replicate(step.create_state(small, vocab_size=V))
        found.append(run(state, parallel.split_rows(batch, num_microbatches=1)))
    (by_xla, metrics), (by_other, others) = found
    assert float(metrics.sums.tokens) == float(others.sums.tokens) > 0
    np.testing.assert_allclose(others.sums.loss, metrics.sums.loss, rtol=0.02)
    gradients = (jax.tree.leaves(state.opt_state[0].mu) for state in (by_xla, by_other))
    for one, other in zip(*gradients, strict=True):
        # The direction and the size agree; a NaN would not.
        one, other = np.ravel(one), np.ravel(other)
        assert np.linalg.norm(one) > 0
        assert np.linalg.norm(one - other) <= 0.1 * np.linalg.norm(one)


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
        found = np.arange(keys) < lengths[:, None, None]
    elif kind == "causal":
        found = np.tri(queries, keys, dtype=bool)[None]
    else:
        second = (np.arange(n) >= n // 2 for n in (queries, keys))
        found = np.equal.outer(*second)[None]
    return np.broadcast_to(found[:, None], (3, 1, queries, keys))


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
    for found, exact in zip((output, *derivative(wanted_by)), expected, strict=True):
        # Weights and results are rounded to 8 bits; their errors add like noise.
        bound = 2**-6 * np.abs(exact).max()
        np.testing.assert_allclose(np.asarray(found, np.float64), exact, atol=bound)


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
