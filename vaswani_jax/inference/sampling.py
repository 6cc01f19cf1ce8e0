"""Draw outputs from the model's distribution, in place of section 6.1's search."""

import dataclasses
import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from vaswani_jax.core import types
from vaswani_jax.inference import beam_search


@dataclasses.dataclass(frozen=True, kw_only=True)
class Distribution:
    """The distribution that is drawn from, by how it differs from the model's own.

    Attributes:
        temperature: Logits are divided by it; 1 leaves them as they are.
        top_k: Only this many likeliest tokens are drawn from; 0 for all.
        top_p: Only the likeliest tokens that together have this probability are drawn
            from; 1 for all.
    """

    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0


class _Draws(NamedTuple):
    """The loop's variables."""

    position: Int[Array, ""]
    tokens: Int[Array, "B W T"]
    log_probs: Float[Array, "B W"]
    has_ended: Bool[Array, "B W"]
    state: Any


def sample(
    stepper: beam_search.Stepper,
    state: Any,
    *,
    max_lengths: Int[Array, "B"],
    keys: Any,
    options: beam_search.SearchOptions,
    distribution: Distribution,
    logit_bias: beam_search.LogitBias | None = None,
) -> types.Hypotheses:
    """Return W independent outputs of each sentence, in the order of drawing.

    Scores are log P(Y|X) / lp(Y) of the model itself, as those of `beam_search`,
    whatever distribution is drawn from.

    Args:
        stepper: The model. It steps each output alone, as a beam of one: in a beam of W
            each of them would compute attention to the keys of all.
        state: The stepper's, of one hypothesis a sentence, before the first position.
        max_lengths: Most tokens of each sentence's outputs, the end mark counted.
        keys: A random key for each sentence, `[B]`: what it draws depends on no other.
        options: As for `beam_search`; W outputs of each sentence are drawn.
        distribution: What to draw from.
        logit_bias: As for `beam_search`.
    """
    B, W, T = max_lengths.shape[0], options.beam_size, options.max_length

    def body(draws: _Draws) -> _Draws:
        position = draws.position
        previous = jnp.take(draws.tokens, jnp.maximum(position - 1, 0), axis=2)
        newest = jnp.where(position == 0, types.BOS_ID, previous)
        newest = newest.reshape(B * W, 1)
        logits, state = stepper.step(newest, draws.state, position)
        logits = logits.reshape(B, W, -1)
        log_probs = jax.nn.log_softmax(logits)
        ids = jnp.arange(logits.shape[-1])
        never = (ids == types.PAD_ID) | (ids == types.BOS_ID)
        early = (ids == types.EOS_ID) & (position + 1 < options.min_length)
        allowed = jnp.where(never | early, -jnp.inf, logits)
        if logit_bias is not None:
            allowed = allowed + logit_bias(draws.tokens, jnp.arange(B), position)
        drawn = draw(allowed, _points(keys, position, W=W), distribution=distribution)
        gained = jnp.take_along_axis(log_probs, drawn[:, :, None], axis=2)[:, :, 0]
        has_ended = draws.has_ended | (position >= max_lengths)[:, None]
        token = jnp.where(has_ended, types.PAD_ID, drawn)
        is_current = jnp.arange(T) == position
        return _Draws(
            position=position + 1,
            tokens=jnp.where(is_current, token[:, :, None], draws.tokens),
            log_probs=draws.log_probs + jnp.where(has_ended, 0.0, gained),
            has_ended=has_ended | (token == types.EOS_ID),
            state=state,
        )

    draws = _Draws(
        position=jnp.zeros((), jnp.int32),
        tokens=jnp.full((B, W, T), types.PAD_ID, jnp.int32),
        log_probs=jnp.zeros((B, W)),
        has_ended=jnp.broadcast_to((max_lengths <= 0)[:, None], (B, W)),
        state=jax.tree.map(lambda leaf: jnp.repeat(leaf, W, axis=0), state),
    )

    def goes_on(length: int, draws: _Draws) -> Array:
        return ~jnp.all(draws.has_ended) & (draws.position < length)

    for index, length in enumerate(sorted({*options.buffer_lengths, T})):
        if index:
            draws = draws._replace(state=stepper.resize(draws.state, length))
        draws = jax.lax.while_loop(functools.partial(goes_on, length), body, draws)
    lengths = jnp.sum(draws.tokens != types.PAD_ID, axis=2)
    penalty = beam_search.length_penalty(
        lengths, options.alpha, form=options.penalty_form
    )
    return types.Hypotheses(tokens=draws.tokens, scores=draws.log_probs / penalty)


def _points(keys: Any, position: Int[Array, ""], *, W: int) -> Float[Array, "B W"]:
    """Return random points of [0, 1), the same for a key and a position."""
    folded = jax.vmap(jax.random.fold_in, in_axes=(0, None))(keys, position)
    return jax.vmap(lambda key: jax.random.uniform(key, (W,)))(folded)


def draw(
    logits: Float[Array, "B W V"],
    points: Float[Array, "B W"],
    *,
    distribution: Distribution,
) -> Int[Array, "B W"]:
    """Return the tokens at points of [0, 1): inverse-CDF sampling.

    Each allowed token covers its probability's share of the line, renormalised; the
    likeliest come first.
    """
    order = jnp.argsort(-logits, axis=-1)
    sorted_logits = jnp.take_along_axis(logits, order, axis=-1)
    sorted_logits = (sorted_logits - sorted_logits[:, :, :1]) / distribution.temperature
    probabilities = jax.nn.softmax(sorted_logits, axis=-1)
    likelier = jnp.cumsum(probabilities, axis=-1) - probabilities
    # The likeliest token always stays: no other is likelier.
    is_allowed = likelier < distribution.top_p
    if distribution.top_k:
        rank = jnp.arange(logits.shape[-1])
        is_allowed = is_allowed & (rank < distribution.top_k)
    cumulative = jnp.cumsum(jnp.where(is_allowed, probabilities, 0.0), axis=-1)
    goal = points[:, :, None] * cumulative[:, :, -1:]
    drawn_rank = jnp.sum((cumulative <= goal) & is_allowed, axis=-1)
    # Rounding may reach past the last that is allowed.
    drawn_rank = jnp.minimum(drawn_rank, jnp.sum(is_allowed, axis=-1) - 1)
    return jnp.take_along_axis(order, drawn_rank[:, :, None], axis=-1)[:, :, 0].astype(
        jnp.int32
    )
