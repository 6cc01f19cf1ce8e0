"""Section 6.1: the likeliest extensions of a beam, found in blocks of the vocabulary.

A search over W beams and V tokens looks for a few of W * V extensions. The maxima of
blocks say which blocks hold them.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from vaswani_jax.core import parallel, types

# Sizes of the blocks whose maxima are compared first; the first size that divides the
# vocabulary spares a copy of the logits.
BLOCK_SIZES = (128, 125, *range(192, 63, -1))


class LikelyExtensions(NamedTuple):
    """Extensions that include the likeliest ones; an index is beam * V + token."""

    log_probs: Float[Array, "B N"]
    indices: Int[Array, "B N"]


class Limits(NamedTuple):
    """Limits of an output's length.

    Attributes:
        position: How many tokens the hypotheses have.
        min_length: Fewest tokens of an output, the end mark counted.
    """

    position: Int[Array, ""]
    min_length: int


class Extensions(NamedTuple):
    """Hypotheses with one token more.

    Attributes:
        log_probs: Of the extended hypothesis; -inf if it is impossible.
        origin: The hypothesis that is extended.
        token: The token that it gets.
    """

    log_probs: Float[Array, "B N"]
    origin: Int[Array, "B N"]
    token: Int[Array, "B N"]


def best_extensions(
    logits: Float[Array, "B W V"],
    offset: Float[Array, "B W 1"],
    *,
    count: int,
    limits: Limits,
) -> Extensions:
    """Return the `count` likeliest extensions, the best first.

    Args:
        logits: Of each token after each hypothesis. Padding and the begin mark never
            follow, though they have their probabilities.
        offset: Added to a logit, it gives the log-probability of the hypothesis.
        count: How many.
        limits: Of the length.
    """
    V = logits.shape[2]
    top = likely_extensions(logits, offset, count=count)
    origin, token = top.indices // V, top.indices % V
    is_mark = (token == types.PAD_ID) | (token == types.BOS_ID)
    is_early_end = (token == types.EOS_ID) & (limits.position + 1 < limits.min_length)
    log_probs = jnp.where(is_mark | is_early_end, -jnp.inf, top.log_probs)
    best, indices = jax.lax.top_k(log_probs, count)
    origin, token = (
        jnp.take_along_axis(array, indices, axis=1).astype(jnp.int32)
        for array in (origin, token)
    )
    return Extensions(best, origin, token)


def likely_extensions(
    logits: Float[Array, "B W V"], offset: Float[Array, "B W 1"], *, count: int
) -> LikelyExtensions:
    """Return a few extensions that contain the `count` likeliest of all allowed ones.

    A top-k in two stages over beams times vocabulary: the vocabulary is cut into
    blocks, and those with the largest maxima hold the likeliest extensions. `count`
    blocks suffice if every token is allowed. Each beam needs one more, as the marks
    that may be forbidden are all in its first block.

    Args:
        logits: Of each token after each hypothesis.
        offset: Added to a logit, it gives the log-probability of the hypothesis.
        count: How many extensions are looked for.
    """
    B, W, V = logits.shape
    blocks = _blocks(logits)
    num_blocks, size = blocks.shape[2:]
    maxima = (_block_maxima(logits) + offset).reshape(B, W * num_blocks)
    _, best_blocks = jax.lax.top_k(maxima, min(count + W, W * num_blocks))
    # In the order of beams and tokens, so that the first of equal ones comes first.
    best_blocks = jnp.sort(best_blocks, axis=-1)
    inside = _take_blocks(blocks, best_blocks)
    beam, block = best_blocks // num_blocks, best_blocks % num_blocks
    inside = inside + jnp.take_along_axis(offset[:, :, 0], beam, axis=1)[:, :, None]
    token = block[:, :, None] * size + jnp.arange(size)
    # Tokens past the vocabulary's end are impossible, but need a valid index.
    indices = beam[:, :, None] * V + jnp.minimum(token, V - 1)
    return LikelyExtensions(inside.reshape(B, -1), indices.reshape(B, -1))


def largest_and_total(
    logits: Float[Array, "B W V"],
) -> tuple[Float[Array, "B W 1"], Float[Array, "B W 1"]]:
    """Return the largest logit, and the sum of the exponentials relative to it."""
    if not parallel.on_tpu():
        maxima = logits
        if parallel.on_gpu():
            # Needed anyway; without the barrier XLA reads all logits once more.
            maxima = jax.lax.optimization_barrier(_block_maxima(logits))
        largest = jnp.max(maxima, axis=-1, keepdims=True)
        return largest, jnp.sum(jnp.exp(logits - largest), axis=-1, keepdims=True)
    B, W, _ = logits.shape
    blocks = _blocks_first(_blocks(logits))
    largest = jnp.max(blocks, axis=(0, 2), keepdims=True)
    total = jnp.sum(jnp.exp(blocks - largest), axis=(0, 2))
    return largest.reshape(B, W, 1), total.reshape(B, W, 1)


def _block_maxima(logits: Float[Array, "B W V"]) -> Float[Array, "B W N"]:
    """Return the maximum of each of the vocabulary's blocks."""
    blocks = _blocks(logits)
    if not parallel.on_tpu():
        return jnp.max(blocks, axis=-1)
    B, W, N, _ = blocks.shape
    return jnp.max(_blocks_first(blocks), axis=-1).T.reshape(B, W, N)


def _take_blocks(
    blocks: Float[Array, "B W N size"], indices: Int[Array, "B M"]
) -> Float[Array, "B M size"]:
    """Return some blocks of each sentence; an index is beam * N + block."""
    B, W, N, size = blocks.shape
    if not parallel.on_tpu():
        by_sentence = blocks.reshape(B, W * N, size)
        return jnp.take_along_axis(by_sentence, indices[:, :, None], axis=1)
    row = jnp.arange(B)[:, None] * W + indices // N
    rows = _blocks_first(blocks).reshape(-1, size)
    return rows[indices % N * (B * W) + row]


def _blocks_first(blocks: Float[Array, "B W N size"]) -> Float[Array, "N B*W size"]:
    """Return the blocks in the order in which they lie in a TPU's memory.

    See `Embedding.logits`.
    """
    B, W, N, size = blocks.shape
    return jnp.swapaxes(blocks.reshape(B * W, N, size), 0, 1)


def _blocks(logits: Float[Array, "B W V"]) -> Float[Array, "B W N size"]:
    """Cut the vocabulary into blocks; the last one is padded with -inf."""
    B, W, V = logits.shape
    size = next((size for size in BLOCK_SIZES if V % size == 0), BLOCK_SIZES[0])
    if missing := -V % size:
        widths = [(0, 0), (0, 0), (0, missing)]
        logits = jnp.pad(logits, widths, constant_values=-jnp.inf)
    return logits.reshape(B, W, (V + missing) // size, size)
