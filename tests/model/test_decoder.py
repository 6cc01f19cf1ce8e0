"""The decoder's two attentions: what each may look at."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests import settings
from vaswani_jax.core import parallel
from vaswani_jax.model import decoder

B, S, T, W = 2, 7, 5, 3
MODEL = settings.small_settings(**{"model.num_layers": 2}).model


PARAMS = {
    "params": settings.random_params(MODEL, vocab_size=11, seed=2)["decoder"],
}


def normal(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


X, MEMORY = normal(0, B, T, MODEL.d_model), normal(1, B, S, MODEL.d_model)
CAUSAL = np.tri(T, dtype=bool)[None, None]
MEMORY_MASK = np.array([7 * [True], 4 * [True] + 3 * [False]])[:, None, None, :]


@jax.jit
def run(x: jax.Array, memory: jax.Array) -> jax.Array:
    masks = jnp.asarray(CAUSAL), jnp.asarray(MEMORY_MASK)
    return decoder.Decoder(MODEL).apply(
        PARAMS, x, memory, masks=masks, deterministic=True
    )


def test_decoder_looks_at_shown_memory_and_at_no_other() -> None:
    output = np.asarray(run(X, MEMORY))
    for position in range(S):
        changed = MEMORY.copy()
        changed[:, position] += 1
        changed_output = np.asarray(run(X, changed))
        assert (changed_output[0] != output[0]).any(axis=-1).all()
        shown = bool(MEMORY_MASK[1, 0, 0, position])
        assert (changed_output[1] != output[1]).any() == shown


def test_each_position_reaches_itself_and_later_ones_alone() -> None:
    output = np.asarray(run(X, MEMORY))
    for position in range(T):
        changed = X.copy()
        changed[:, position] *= -1.5
        changed_output = np.asarray(run(changed, MEMORY))
        np.testing.assert_array_equal(
            changed_output[:, :position], output[:, :position]
        )
        assert (changed_output[:, position:] != output[:, position:]).any(axis=-1).all()


@pytest.mark.parametrize("platform", ["cpu", "gpu", "tpu"])
def test_steps_of_the_stack_equal_its_full_pass_for_each_beam(platform: str) -> None:
    stack = decoder.Decoder(MODEL)
    inputs = normal(3, B, W, T, MODEL.d_model)
    step = jax.jit(functools.partial(stack.apply, PARAMS, method="decode_step"))
    outputs = []
    with parallel.targeting(platform):
        cache = stack.apply(
            PARAMS,
            jnp.asarray(MEMORY),
            jnp.asarray(MEMORY_MASK),
            beam_size=W,
            max_length=T - 1,
            method="start_cache",
        )
        cache = cache.replace(beams=cache.beams.resize(T))
        for position in range(T):
            output, cache = step(
                inputs[:, :, position], cache, position=jnp.int32(position)
            )
            outputs.append(output)
    for beam in range(W):
        expected = run(inputs[:, beam], MEMORY)
        beam_outputs = jnp.stack([output[:, beam] for output in outputs], axis=1)
        np.testing.assert_allclose(beam_outputs, expected, rtol=1e-4, atol=1e-5)
