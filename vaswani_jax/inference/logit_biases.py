"""What is added to logits so that outputs begin with a prefix or repeat nothing.

A logit bias is 0 where a token may follow a hypothesis and -inf where not. It takes
part in what is chosen, not in the probabilities, which stay the model's own.
"""

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from vaswani_jax.core import config, types
from vaswani_jax.inference import beam_search


def make_logit_bias(
    search: config.SearchConfig, prefix: Int[Array, "B P"], *, vocab_size: int
) -> beam_search.LogitBias:
    """Return what the settings and each sentence's prefix forbid."""
    prefix_length = prefix.shape[1]

    def logit_bias(
        tokens: Int[Array, "B W T"], rows: Int[Array, "B"], position: Int[Array, ""]
    ) -> Float[Array, "#B #W V"]:
        token = jnp.arange(vocab_size)
        is_forbidden = jnp.zeros((1, 1, vocab_size), bool)
        if search.no_repeat_ngram:
            repeats = repeated_ngrams(
                tokens, position, n=search.no_repeat_ngram, vocab_size=vocab_size
            )
            # An end is no repetition, and something must be left to choose.
            is_forbidden = repeats & (token != types.EOS_ID)
        if prefix_length:
            index = jnp.minimum(position, prefix_length - 1)
            forced = jnp.take(prefix, index, axis=1)[rows, None, None]
            in_prefix = (position < prefix_length) & (forced != types.PAD_ID)
            is_forbidden = jnp.where(in_prefix, token != forced, is_forbidden)
        return jnp.where(is_forbidden, -jnp.inf, 0.0)

    return logit_bias


def join(
    first: beam_search.LogitBias | None, second: beam_search.LogitBias
) -> beam_search.LogitBias:
    """Return the bias that allows what both allow; None allows everything."""
    if first is None:
        return second
    return lambda *hypotheses: first(*hypotheses) + second(*hypotheses)


def repeated_ngrams(
    tokens: Int[Array, "B W T"], position: Int[Array, ""], *, n: int, vocab_size: int
) -> Bool[Array, "B W {vocab_size}"]:
    """Return the tokens at a position that end n tokens a hypothesis already has."""
    B, W, T = tokens.shape
    starts = jnp.arange(T)
    is_same = jnp.broadcast_to(starts + n - 1 < position, (B, W, T))
    for offset in range(n - 1):
        index = jnp.maximum(position - (n - 1) + offset, 0)
        newest = jnp.take(tokens, index, axis=2)[:, :, None]
        is_same = is_same & (jnp.roll(tokens, -offset, axis=2) == newest)
    last = jnp.roll(tokens, -(n - 1), axis=2)
    b, w, _ = jnp.ogrid[:B, :W, :T]
    repeats = jnp.zeros((B, W, vocab_size), bool)
    return repeats.at[b, w, last].max(is_same)
