"""The encoder's stack against NumPy, and what its memory depends on."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests import reference, settings
from vaswani_jax.core import config
from vaswani_jax.model import encoder, transformer

B, S, V = 3, 7, 11
SOURCE = settings.random_batch(
    rows=B, source_length=S, target_length=2, vocab_size=V, seed=0
).source


def small_model(position: str) -> config.ModelConfig:
    overrides = {"model.num_layers": 2, "model.layer_norm_position": position}
    return settings.small_settings(**overrides).model


@functools.lru_cache
def compiled(model: config.ModelConfig) -> Any:
    def memory(params: Any, source: jax.Array) -> jax.Array:
        return transformer.Transformer(model, V).apply(
            {"params": params}, source, deterministic=True, method="encode"
        )

    return jax.jit(memory)


@pytest.mark.parametrize("position", ["post", "pre"])
def test_memory_equals_the_formulas(position: str) -> None:
    model = small_model(position)
    params = settings.random_params(model, vocab_size=V, seed=1)
    memory = compiled(model)(params, SOURCE)
    assert memory.shape == (B, S, model.d_model)
    for row in range(B):
        source = SOURCE[row][SOURCE[row] != 0]
        expected = reference.encode(reference.to_float64(params), source, model=model)
        np.testing.assert_allclose(
            memory[row, : len(source)], expected, rtol=1e-4, atol=1e-5
        )


def test_every_source_position_reaches_every_memory_position() -> None:
    model = small_model("post")
    params = settings.random_params(model, vocab_size=V, seed=2)
    memory = np.asarray(compiled(model)(params, SOURCE))
    for position in range(S):
        changed = SOURCE.copy()
        changed[0, position] = 3 if SOURCE[0, position] != 3 else 4
        changed_memory = np.asarray(compiled(model)(params, changed))
        assert (changed_memory[0] != memory[0]).any(axis=-1).all()
        np.testing.assert_array_equal(changed_memory[1:], memory[1:])


def test_a_stack_permutes_its_output_as_its_input_is_permuted() -> None:
    """Attention knows no order: it comes from the positional encoding alone."""
    model = small_model("post")
    stack = encoder.Encoder(model)
    generator = np.random.default_rng(3)
    x = jnp.asarray(generator.standard_normal((B, S, model.d_model)), jnp.float32)
    mask = jnp.ones((B, 1, 1, S), bool)
    model_params = settings.random_params(model, vocab_size=V, seed=4)
    params = {"params": model_params["encoder"]}
    order = generator.permutation(S)
    run = jax.jit(functools.partial(stack.apply, deterministic=True))
    straight = run(params, x, mask)
    permuted = run(params, x[:, order], mask)
    np.testing.assert_allclose(permuted, straight[:, order], rtol=1e-4, atol=1e-5)
