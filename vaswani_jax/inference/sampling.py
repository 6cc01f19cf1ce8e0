"""Outputs drawn from the model's distribution, in place of section 6.1's search."""

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from vaswani_jax.core import types
from vaswani_jax.inference import beam_search


class _Draws(NamedTuple):
    """The loop's variables."""

    position: Int[Array, ""]
    tokens: Int[Array, "B W T"]
    log_probs: Float[Array, "B W"]
    ended: Bool[Array, "B W"]
    state: Any


def sample(
    step: beam_search.Step,
    state: Any,
    max_lengths: Int[Array, "B"],
    keys: Any,
    *,
    num_samples: int,
    temperature: float,
    top_k: int,
    top_p: float,
    alpha: float,
    buffer_lengths: Sequence[int],
    resize: beam_search.Resize = lambda state, length: state,
    constraint: beam_search.Constraint | None = None,
    min_length: int = 1,
    penalty_form: str = "paper",
) -> types.Hypotheses:
    """W independent outputs of each sentence, in the order in which they were drawn.

    Scores are log P(Y|X) / lp(Y) of the model itself, as those of `beam_search`,
    whatever it was drawn from.

    Args:
        step: Logits of what follows each output.
        state: The step's own, before the first position.
        max_lengths: Most tokens of each sentence's outputs, the end mark counted.
        keys: A random key for each sentence, `[B]`: what it draws depends on no other.
        num_samples: W.
        temperature: Logits are divided by it; 1 is the model's own distribution.
        top_k: Only so many likeliest tokens are drawn from; 0 for all.
        top_p: Only the likeliest tokens that together have this probability are; 1
            for all.
        alpha: Exponent of the length penalty of the scores.
        buffer_lengths: Ascending, the last at least the largest of `max_lengths`.
            Positions up to each are drawn with a state for so many.
        resize: As for `beam_search`.
        constraint: As for `beam_search`.
        min_length: As for `beam_search`.
        penalty_form: As for `beam_search`.
    """
    B, T = max_lengths.shape[0], buffer_lengths[-1]

    def body(draws: _Draws) -> _Draws:
        position = draws.position
        previous = jnp.take(draws.tokens, jnp.maximum(position - 1, 0), axis=2)
        newest = jnp.where(position == 0, types.BOS_ID, previous)
        logits, state = step(newest, draws.state, position)
        own = jax.nn.log_softmax(logits)
        token = jnp.arange(logits.shape[-1])
        never = (token == types.PAD_ID) | (token == types.BOS_ID)
        early = (token == types.EOS_ID) & (position + 1 < min_length)
        allowed = jnp.where(never | early, -jnp.inf, logits)
        if constraint is not None:
            allowed = allowed + constraint(draws.tokens, jnp.arange(B), position)
        at = jax.vmap(jax.random.fold_in, in_axes=(0, None))(keys, position)
        points = jax.vmap(lambda key: jax.random.uniform(key, (num_samples,)))(at)
        drawn = draw(allowed, points, temperature=temperature, top_k=top_k, top_p=top_p)
        gained = jnp.take_along_axis(own, drawn[:, :, None], axis=2)[:, :, 0]
        over = draws.ended | (position >= max_lengths)[:, None]
        chosen = jnp.where(over, types.PAD_ID, drawn)
        here = jnp.arange(T) == position
        return _Draws(
            position=position + 1,
            tokens=jnp.where(here, chosen[:, :, None], draws.tokens),
            log_probs=draws.log_probs + jnp.where(over, 0.0, gained),
            ended=over | (chosen == types.EOS_ID),
            state=state,
        )

    draws = _Draws(
        position=jnp.zeros((), jnp.int32),
        tokens=jnp.full((B, num_samples, T), types.PAD_ID, jnp.int32),
        log_probs=jnp.zeros((B, num_samples)),
        ended=jnp.broadcast_to((max_lengths <= 0)[:, None], (B, num_samples)),
        state=state,
    )

    def goes_on(length: int, draws: _Draws) -> Array:
        return ~jnp.all(draws.ended) & (draws.position < length)

    for index, length in enumerate(buffer_lengths):
        if index:
            draws = draws._replace(state=resize(draws.state, length))
        draws = jax.lax.while_loop(functools.partial(goes_on, length), body, draws)
    lengths = jnp.sum(draws.tokens != types.PAD_ID, axis=2)
    penalty = beam_search.length_penalty(lengths, alpha, form=penalty_form)
    return types.Hypotheses(tokens=draws.tokens, scores=draws.log_probs / penalty)


def draw(
    logits: Float[Array, "B W V"],
    points: Float[Array, "B W"],
    *,
    temperature: float,
    top_k: int,
    top_p: float,
) -> Int[Array, "B W"]:
    """The tokens at points of [0, 1) on a line that the allowed tokens share.

    Each has its probability, renormalised, as its length; the likeliest come first.
    """
    order = jnp.argsort(-logits, axis=-1)
    ranked = jnp.take_along_axis(logits, order, axis=-1)
    ranked = (ranked - ranked[:, :, :1]) / temperature
    probabilities = jax.nn.softmax(ranked, axis=-1)
    before = jnp.cumsum(probabilities, axis=-1) - probabilities
    # The likeliest always stays: nothing is before it.
    kept = before < top_p
    if top_k:
        kept = kept & (jnp.arange(logits.shape[-1]) < top_k)
    cumulative = jnp.cumsum(jnp.where(kept, probabilities, 0.0), axis=-1)
    goal = points[:, :, None] * cumulative[:, :, -1:]
    place = jnp.sum((cumulative <= goal) & kept, axis=-1)
    # Rounding may reach past the last that is kept.
    place = jnp.minimum(place, jnp.sum(kept, axis=-1) - 1)
    return jnp.take_along_axis(order, place[:, :, None], axis=-1)[:, :, 0].astype(
        jnp.int32
    )
