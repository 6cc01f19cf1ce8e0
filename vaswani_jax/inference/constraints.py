"""Section 6.1's search, held to what a user asks: prefixes, no repetition.

A constraint is 0 where a token may follow a hypothesis and -inf where not. It takes
part in what is chosen, not in the probabilities, which stay the model's own.
"""

from collections.abc import Sequence

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from vaswani_jax.core import config, types
from vaswani_jax.data import vocabulary
from vaswani_jax.inference import beam_search


def of(
    search: config.SearchConfig, prefix: Int[Array, "B P"], *, vocab_size: int
) -> beam_search.Constraint | None:
    """What the settings and each sentence's prefix forbid; None if it is nothing."""
    num_forced = prefix.shape[1]
    if not (num_forced or search.no_repeat_ngram):
        return None

    def constraint(
        tokens: Int[Array, "B W T"], rows: Int[Array, "B"], position: Int[Array, ""]
    ) -> Float[Array, "#B #W V"]:
        token = jnp.arange(vocab_size)
        forbidden = jnp.zeros((1, 1, vocab_size), bool)
        if search.no_repeat_ngram:
            repeated = repeats(
                tokens, position, n=search.no_repeat_ngram, vocab_size=vocab_size
            )
            # An end is no repetition, and something must be left to choose.
            forbidden = repeated & (token != types.EOS_ID)
        if num_forced:
            place = jnp.minimum(position, num_forced - 1)
            forced = jnp.take(prefix, place, axis=1)[rows, None, None]
            inside = (position < num_forced) & (forced != types.PAD_ID)
            forbidden = jnp.where(inside, token != forced, forbidden)
        return jnp.where(forbidden, -jnp.inf, 0.0)

    return constraint


def forced(
    prefixes: Sequence[str],
    *,
    subwords: vocabulary.Vocabulary,
    search: config.SearchConfig,
    first_line: int,
) -> list[list[int]]:
    """The ids of what the translation of each line begins with.

    Raises:
        ValueError: A line, counted from `first_line`, has more than
            `max_source_tokens`.
    """
    found = subwords.encode(prefixes, target=True)
    for number, ids in enumerate(found, start=first_line):
        if len(ids) > search.max_source_tokens:
            raise ValueError(
                f"--prefix, line {number}: {len(ids):,} tokens are more than "
                f"config.search.max_source_tokens={search.max_source_tokens}"
            )
    return found


def repeats(
    tokens: Int[Array, "B W T"], position: Int[Array, ""], *, n: int, vocab_size: int
) -> Array:
    """Which tokens at a position would end n tokens that a hypothesis has already.

    Returns:
        Booleans `[B, W, V]`.
    """
    B, W, T = tokens.shape
    starts = jnp.arange(T)
    same = jnp.broadcast_to(starts + n - 1 < position, (B, W, T))
    for offset in range(n - 1):
        place = jnp.maximum(position - (n - 1) + offset, 0)
        newest = jnp.take(tokens, place, axis=2)[:, :, None]
        same = same & (jnp.roll(tokens, -offset, axis=2) == newest)
    last = jnp.roll(tokens, -(n - 1), axis=2)
    b, w, _ = jnp.ogrid[:B, :W, :T]
    found = jnp.zeros((B, W, vocab_size), bool)
    return found.at[b, w, last].max(same)
