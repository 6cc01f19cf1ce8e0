"""Add the encoder's state of the next word to the decoder's input (Ma et al., 2017).

Deviation: not in the paper. The symbols written so far determine which word is
next, so that no head has to find it (Ma et al., 2017, "Deterministic Attention for
Sequence-to-Sequence Constituent Parsing"). The decoder gets the mean of the encoder's
states of that word's subwords, through a matrix, added to its input; after the last
word, that of the end mark. Memory attention stays as it is.
"""

import flax.linen as nn
import flax.struct
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from vaswani_jax.core import config, types
from vaswani_jax.model import initializers, parameters, products


class WordStates(flax.struct.PyTreeNode):
    """The memory, and which word each of its positions belongs to.

    `numbers` counts from 0; the end mark is a word by itself, padding is -1.
    """

    memory: Float[Array, "B S d_model"]
    numbers: Int[Array, "B S"]


class NextWord(nn.Module):
    """From how many words are written to the state of the one that follows."""

    model: config.ModelConfig
    trees: types.TreeIds

    def setup(self) -> None:
        model = self.model
        self.projection = parameters.Dense(
            model.d_model,
            use_bias=False,
            dtype=jnp.dtype(model.dtype),
            kernel_init=initializers.kernel(1.0),
            dot_general=products.dot_general_2d,
        )

    def states(
        self, source: Int[Array, "B S"], memory: Float[Array, "B S d_model"]
    ) -> WordStates:
        """Return the memory with the number of each position's word."""
        bits = np.unpackbits(np.frombuffer(self.trees.word_starts, np.uint8))
        starts = jnp.take(jnp.asarray(bits, jnp.int32), source)
        starts = jnp.where(source == types.EOS_ID, 1, starts)
        numbers = jnp.cumsum(starts, axis=1) - 1
        return WordStates(memory, jnp.where(source == types.PAD_ID, -1, numbers))

    def is_word(self, tokens: Int[Array, "*axes"]) -> Int[Array, "*axes"]:
        """Return 1 for each symbol that stands for a word, else 0."""
        return (tokens >= self.trees.first_word).astype(jnp.int32)

    def __call__(
        self, words: WordStates, written: Int[Array, "B T"]
    ) -> Float[Array, "B T d_model"]:
        """Return what the decoder's input gets, given the number of words written."""
        is_next = words.numbers[:, None, :] == written[:, :, None]
        weights = is_next / jnp.maximum(jnp.sum(is_next, axis=2, keepdims=True), 1)
        dtype = words.memory.dtype
        states = products.einsum("bts,bsd->btd", weights.astype(dtype), words.memory)
        return self.projection(states.astype(dtype))
