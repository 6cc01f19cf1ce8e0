"""Section 3.2.3: who may look at what. True means "may look"."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int

from vaswani_jax.core import types


def padding_mask(tokens: Int[Array, "B K"]) -> Bool[Array, "B 1 1 K"]:
    """Return True where a key is not padding."""
    return (tokens != types.PAD_ID)[:, None, None, :]


def segment_mask(
    queries: Int[Array | np.ndarray, "B Q"], keys: Int[Array | np.ndarray, "B K"]
) -> Bool[Array, "B 1 Q K"]:
    """Return True where a query and a key belong to the same pair of a packed row.

    >>> segment_mask(jnp.array([[1, 2, 0]]), jnp.array([[1, 0]]))[0, 0].tolist()
    [[True, False], [False, False], [False, False]]
    """
    queries, keys = jnp.asarray(queries), jnp.asarray(keys)
    is_same_pair = queries[:, :, None] == keys[:, None, :]
    return (is_same_pair & (keys != 0)[:, None, :])[:, None]


def causal_mask(length: int) -> Bool[Array, "1 1 T T"]:
    """Return True where a key lies at or before its query (auto-regressive).

    >>> causal_mask(3)[0, 0].astype(int).tolist()
    [[1, 0, 0], [1, 1, 0], [1, 1, 1]]
    """
    return jnp.tril(jnp.ones((1, 1, length, length), dtype=bool))
