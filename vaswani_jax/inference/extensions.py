"""Section 6.1: the likeliest of all one-token extensions, of W times V.

Sorting them all would take as long as the model.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

# Sizes of what is compared first when the best of many logits are wanted; the first
# that divides their number spares a copy.
BLOCKS = (128, 125, *range(192, 63, -1))


class Candidates(NamedTuple):
    """Extensions among which are the likeliest; a place is beam * V + token."""

    log_probs: Float[Array, "B N"]
    places: Int[Array, "B N"]


def likeliest(
    logits: Float[Array, "B W V"], offset: Float[Array, "B W 1"], *, count: int
) -> Candidates:
    """Few of all extensions: the `count` likeliest that may be chosen are among them.

    The vocabulary is cut into blocks. Those blocks of all beams whose own likeliest are
    the likeliest hold what is looked for: as many as are wanted, and one more for each
    beam, as the marks that may be forbidden all lie in its first block.
    """
    B, W, V = logits.shape
    size = next((size for size in BLOCKS if V % size == 0), BLOCKS[0])
    if missing := -V % size:
        widths = [(0, 0), (0, 0), (0, missing)]
        logits = jnp.pad(logits, widths, constant_values=-jnp.inf)
    num_blocks = (V + missing) // size
    blocks = logits.reshape(B, W, num_blocks, size)
    log_probs = (jnp.max(blocks, axis=-1) + offset).reshape(B, W * num_blocks)
    kept = min(count + W, W * num_blocks)
    _, chosen = jax.lax.top_k(log_probs, kept)
    # In the order of beams and tokens, so that of equal ones the first is first.
    chosen = jnp.sort(chosen, axis=-1)
    inside = jnp.take_along_axis(
        blocks.reshape(B, W * num_blocks, size), chosen[:, :, None], axis=1
    )
    beam, block = chosen // num_blocks, chosen % num_blocks
    inside = inside + jnp.take_along_axis(offset[:, :, 0], beam, axis=1)[:, :, None]
    token = block[:, :, None] * size + jnp.arange(size)
    # Past the vocabulary's end nothing is likely, but it must have a place.
    places = beam[:, :, None] * V + jnp.minimum(token, V - 1)
    return Candidates(inside.reshape(B, -1), places.reshape(B, -1))
