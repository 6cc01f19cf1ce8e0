"""A small model in its variants, and what it is given."""

import functools
from typing import Any

import jax
import jax.numpy as jnp

from tests import settings
from vaswani_jax.core import config, types
from vaswani_jax.model import transformer

B, S, T, V = 3, 7, 5, 11
VARIANTS = [
    {"model.layer_norm_position": norm, "model.positional_encoding": positions}
    for norm in ("post", "pre")
    for positions in ("sinusoidal", "learned")
]
PRE_LEARNED = VARIANTS[3]
# What the models of others have and the paper has not.
OTHER_VARIANT = {
    "model.activation": "swish",
    "model.attention_bias": True,
    "model.logits_bias": True,
    "model.layer_norm_epsilon": 0.1,
}
# What the paper has not, and trees alone can have.
DETERMINISTIC = {
    "model.deterministic_attention": True,
    **settings.TREEBANK,
}


def small_model(**overrides: Any) -> config.ModelConfig:
    return settings.small_settings(**{"model.num_layers": 2, **overrides}).model


def random_batch(seed: int, *, rows: int = B) -> types.Batch:
    return settings.random_batch(
        rows=rows, source_length=S, target_length=T, vocab_size=V, seed=seed
    )


@functools.lru_cache
def compiled(model: config.ModelConfig, vocab_size: types.VocabSize = V) -> Any:
    def run(params: Any, source: Any, target_in: Any) -> jax.Array:
        return transformer.Transformer(model, vocab_size).apply(
            {"params": params}, source, target_in, deterministic=True
        )

    return jax.jit(run)


def initial_params(model: config.ModelConfig, *, vocab_size: types.VocabSize) -> Any:
    tokens = jnp.ones((1, 2), jnp.int32)
    network = transformer.Transformer(model, vocab_size)
    return network.init(jax.random.key(0), tokens, tokens, deterministic=True)["params"]
