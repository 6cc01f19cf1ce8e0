"""Section 3.4: one table for source, target and the pre-softmax transformation.

If each side has a vocabulary of its own, the source has a table of its own, too, and
the target's serves the pre-softmax transformation.
"""

import math
from typing import Any

import flax.linen as nn
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from vaswani_jax.core import parallel
from vaswani_jax.model import parameters, products

# The collection of what is made of parameters once, for many products.
PRODUCTS = "products"
# Columns of a tile of an accelerator's memory.
LANES = 128


class Embedding(parameters.Reader, nn.Module):
    """The table [V, d_model], N(0, 1/d_model) at first, so that lookups have unit
    variance after their multiplication by sqrt(d_model)."""

    vocab_size: int
    d_model: int
    dtype: jnp.dtype
    logits_bias: bool

    def setup(self) -> None:
        init = nn.initializers.normal(self.d_model**-0.5)
        shape = (self.vocab_size, self.d_model)
        self.embedding = self.param("embedding", init, shape)
        if self.logits_bias:
            zeros = nn.initializers.zeros_init()
            self.bias = self.param("bias", zeros, (self.vocab_size,))

    def __call__(self, tokens: Int[Array, "*axes"]) -> Float[Array, "*axes d_model"]:
        """Return the tokens' rows of the table times sqrt(d_model), in float32."""
        return jnp.take(self.embedding, tokens, axis=0) * math.sqrt(self.d_model)

    def logits(self, x: Float[Array, "*axes d_model"]) -> Float[Array, "*axes V"]:
        """Return the products of x with every row of the table, in float32.

        `logits_bias` adds a bias for each row; the paper has none. With the variables
        of `table_for_products` there are logits of -inf after those of the vocabulary.
        """
        # As one matrix of rows: with more axes XLA for CPUs copies the derivative of
        # the logits, as large as they are, before it multiplies it with x.
        rows = x.reshape(-1, self.d_model).astype(self.dtype)
        is_decoding = self.has_variable(PRODUCTS, "embedding")
        if is_decoding:
            table: Any = self.get_variable(PRODUCTS, "embedding")
        else:
            table = self.embedding.astype(self.dtype)
        V = table.shape[0]
        # In a TPU's memory, each block of tokens begins with the first row: a search
        # then takes the blocks of a row without a copy of all logits.
        in_blocks = parallel.on_tpu() and is_decoding
        if in_blocks:
            blocks = table.reshape(-1, LANES, self.d_model)
            all_rows = jnp.broadcast_to(rows, (blocks.shape[0], *rows.shape))
            logits = products.einsum("nrm,nsm->nrs", all_rows, blocks)
        else:
            logits = products.einsum("rm,vm->rv", rows, table)

        def of_tokens(vector: Any) -> Array:
            return vector.reshape(-1, 1, LANES) if in_blocks else vector

        if self.vocab_size < V:
            # Of NumPy: a constant, not computed at each position.
            is_token = of_tokens(jnp.asarray(np.arange(V) < self.vocab_size))
            logits = jnp.where(is_token, logits, -jnp.inf)
        if self.logits_bias:
            logits += of_tokens(jnp.pad(self.bias, (0, V - self.vocab_size)))
        if in_blocks:
            logits = jnp.swapaxes(logits, 0, 1)
        return logits.reshape(*x.shape[:-1], V)


def table_for_products(
    embedding: Float[Array | np.ndarray, "V d_model"], *, dtype: Any, multiple: int
) -> Float[Array, "rows d_model"]:
    """Return the table as `logits` multiplies with it, for the collection `PRODUCTS`.

    Made once, it spares the conversion at each position of a search.

    Args:
        embedding: The parameter.
        dtype: The type of the products.
        multiple: What the number of rows becomes a multiple of, by rows of zeros.
    """
    missing = -embedding.shape[0] % multiple
    return jnp.pad(jnp.asarray(embedding, dtype), ((0, missing), (0, 0)))
