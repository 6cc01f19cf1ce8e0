"""The whole model: its formulas, its masks, decoding step by step."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests import reference, settings
from tests.model import small
from vaswani_jax.core import types
from vaswani_jax.model import transformer


@pytest.mark.parametrize("variant", [*small.VARIANTS, small.OTHERS])
def test_logits_equal_the_formulas(variant: dict[str, Any]) -> None:
    model = small.small_model(**variant)
    params = settings.random_params(model, vocab_size=small.V, seed=0)
    batch = small.random_batch(1)
    logits = small.compiled(model)(params, batch.source, batch.target_in)
    assert logits.shape == (small.B, small.T, small.V)
    for row in range(small.B):
        source, target_in = (side[row][side[row] != 0] for side in batch[:2])
        expected = reference.logits(
            reference.to_float64(params), source, target_in, model=model
        )
        found = logits[row, : len(target_in)]
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=2e-5)


@pytest.mark.parametrize("variant", [small.VARIANTS[0], small.PRE_LEARNED])
def test_logits_do_not_depend_on_later_targets(variant: dict[str, str]) -> None:
    model = small.small_model(**variant)
    params = settings.random_params(model, vocab_size=small.V, seed=2)
    batch = small.random_batch(3)
    before = np.asarray(small.compiled(model)(params, batch.source, batch.target_in))
    for position in range(1, small.T):
        changed = batch.target_in.copy()
        changed[:, position:] = 3 + (changed[:, position:] + 1) % (small.V - 3)
        after = np.asarray(small.compiled(model)(params, batch.source, changed))
        np.testing.assert_array_equal(after[:, :position], before[:, :position])
        assert (after[:, position] != before[:, position]).all()


def test_logits_do_not_depend_on_padding_columns() -> None:
    model = small.small_model()
    params = settings.random_params(model, vocab_size=small.V, seed=4)
    batch = small.random_batch(5)
    before = small.compiled(model)(params, batch.source, batch.target_in)
    wider = (
        np.pad(batch.source, [(0, 0), (0, 6)]),
        np.pad(batch.target_in, [(0, 0), (0, 4)]),
    )
    after = small.compiled(model)(params, *wider)
    real = batch.target_in != types.PAD_ID
    np.testing.assert_allclose(
        after[:, : small.T][real], before[real], rtol=1e-5, atol=1e-5
    )


def test_logits_do_not_depend_on_other_rows() -> None:
    model = small.small_model()
    params = settings.random_params(model, vocab_size=small.V, seed=6)
    batch = small.random_batch(7)
    together = small.compiled(model)(params, batch.source, batch.target_in)
    changed = small.random_batch(8)
    for row in range(small.B):
        source, target_in = changed.source.copy(), changed.target_in.copy()
        source[row], target_in[row] = batch.source[row], batch.target_in[row]
        beside_others = small.compiled(model)(params, source, target_in)
        np.testing.assert_array_equal(beside_others[row], together[row])


def test_what_the_padding_embedding_holds_reaches_no_other_logit() -> None:
    model = small.small_model()
    params = settings.random_params(model, vocab_size=small.V, seed=9)
    batch = small.random_batch(10)
    before = np.asarray(small.compiled(model)(params, batch.source, batch.target_in))
    params["embedding"]["embedding"][types.PAD_ID] += 3
    after = np.asarray(small.compiled(model)(params, batch.source, batch.target_in))
    real = batch.target_in != types.PAD_ID
    others = np.arange(small.V) != types.PAD_ID
    np.testing.assert_array_equal(after[real][:, others], before[real][:, others])
    assert (~real).any()
    assert (after[~real][:, others] != before[~real][:, others]).all()


def test_a_row_of_padding_gives_finite_logits() -> None:
    model = small.small_model()
    params = settings.random_params(model, vocab_size=small.V, seed=11)
    nothing = (
        np.zeros((small.B, small.S), np.int32),
        np.zeros((small.B, small.T), np.int32),
    )
    assert np.isfinite(small.compiled(model)(params, *nothing)).all()


@pytest.mark.parametrize(
    "variant", [small.VARIANTS[0], small.PRE_LEARNED, small.OTHERS]
)
def test_decoding_step_by_step_equals_the_full_pass(variant: dict[str, str]) -> None:
    W, room = 4, (2, 6)
    model = small.small_model(**variant)
    params = settings.random_params(model, vocab_size=small.V, seed=12)
    network = transformer.Transformer(model, small.V)
    source = jnp.asarray(small.random_batch(13).source)
    generator = np.random.default_rng(14)
    cache = network.apply(
        {"params": params},
        source,
        beam_size=W,
        max_length=room[0],
        method="start_cache",
    )
    step = jax.jit(functools.partial(network.apply, method="decode_step"))
    # The cache is at last longer than what is written: the rest must not be seen.
    prefixes = np.zeros((small.B, W, 0), np.int32)
    for position in range(small.T):
        tokens = generator.integers(3, small.V, (small.B, W, 1), np.int32)
        prefixes = np.concatenate([prefixes, tokens], axis=2)
        logits, cache = step(
            {"params": params}, tokens[..., 0], cache, position=jnp.int32(position)
        )
        padded = np.zeros((small.B * W, small.T), np.int32)
        padded[:, : position + 1] = prefixes.reshape(small.B * W, -1)
        full = small.compiled(model)(params, np.repeat(source, W, axis=0), padded)
        expected = np.asarray(full)[:, position].reshape(small.B, W, small.V)
        np.testing.assert_allclose(logits, expected, rtol=1e-4, atol=1e-5)
        # As a search would: some beams go on twice, others not at all.
        origin = generator.integers(0, W, (small.B, W))
        prefixes = np.take_along_axis(prefixes, origin[..., None], axis=1)
        cache = cache.replace(beams=cache.beams.reorder(jnp.asarray(origin)))
        if position + 1 == room[0]:
            cache = cache.replace(beams=cache.beams.resize(room[1]))


def test_the_cache_holds_the_memory_once_for_all_beams() -> None:
    W, longest = 4, 9
    model = small.small_model()
    params = settings.random_params(model, vocab_size=small.V, seed=15)
    cache = transformer.Transformer(model, small.V).apply(
        {"params": params},
        jnp.asarray(small.random_batch(16).source),
        beam_size=W,
        max_length=longest,
        method="start_cache",
    )
    H, D_K, D_V = model.num_heads, model.d_k, model.d_v
    layers = cache.beams.layers
    assert len(cache.memory) == len(layers) == model.num_layers
    for own, memory in zip(layers, cache.memory, strict=True):
        assert memory.key.shape == (small.B, H, D_K, small.S)
        assert memory.value.shape == (small.B, H, small.S, D_V)
        assert own.key.shape == (small.B, H, D_K, longest * W)
        assert own.value.shape == (small.B, H, longest * W, D_V)


def test_bfloat16_keeps_parameters_and_logits_in_float32() -> None:
    exact, coarse = (
        small.small_model(),
        small.small_model(**{"model.dtype": "bfloat16"}),
    )
    for leaf in jax.tree.leaves(small.initial_params(coarse, vocab_size=small.V)):
        assert leaf.dtype == jnp.float32
    params = settings.random_params(exact, vocab_size=small.V, seed=17)
    batch = small.random_batch(18)
    expected = small.compiled(exact)(params, batch.source, batch.target_in)
    found = small.compiled(coarse)(params, batch.source, batch.target_in)
    assert found.dtype == jnp.float32
    # bfloat16 has 8 bits: different from float32, and not very.
    real = batch.target_in != types.PAD_ID
    error = np.abs(found - expected)[real].max() / np.abs(expected)[real].max()
    assert 2**-12 < error < 2**-4
    memory = transformer.Transformer(coarse, small.V).apply(
        {"params": params},
        jnp.asarray(batch.source),
        deterministic=True,
        method="encode",
    )
    assert memory.dtype == jnp.bfloat16


def test_bfloat16_decodes_step_by_step_with_a_bfloat16_cache() -> None:
    model = small.small_model(**{"model.dtype": "bfloat16"})
    params = {"params": settings.random_params(model, vocab_size=small.V, seed=19)}
    network = transformer.Transformer(model, small.V)
    batch = jax.tree.map(jnp.asarray, small.random_batch(20))
    cache = network.apply(
        params, batch.source, beam_size=1, max_length=small.T, method="start_cache"
    )
    step = jax.jit(functools.partial(network.apply, method="decode_step"))
    full = small.compiled(model)(params["params"], batch.source, batch.target_in)
    for position in range(small.T):
        tokens = batch.target_in[:, position : position + 1]
        logits, cache = step(params, tokens, cache, position=jnp.int32(position))
        assert logits.dtype == jnp.float32
        # Row 0 has no padding, whose masks the step does not know.
        expected = full[0, position]
        scale = np.abs(expected).max()
        np.testing.assert_allclose(logits[0, 0], expected, atol=2**-4 * scale)
    for leaf in jax.tree.leaves(cache.beams.layers):
        assert leaf.dtype == jnp.bfloat16
