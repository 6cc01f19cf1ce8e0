"""Section 6.1: beam search with a length penalty, over a step function.

It knows no model: a step maps the newest token of every hypothesis and the caller's
state to logits and the next state.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from vaswani_jax.core import types

State = Any
Step = Callable[
    [Int[Array, "B W"], State, Int[Array, ""]], tuple[Float[Array, "B W V"], State]
]
Reorder = Callable[[State, Int[Array, "B W"]], State]
Resize = Callable[[State, int], State]
Constraint = Callable[[Int[Array, "B W T"], Int[Array, ""]], Float[Array, "#B #W V"]]

# Sizes of what is compared first when the best of many logits are wanted; the first
# that divides their number spares a copy.
BLOCKS = (128, 125, *range(192, 63, -1))


class _Search(NamedTuple):
    """The loop's variables; live hypotheses have no end mark, finished ones have."""

    position: Int[Array, ""]
    live_tokens: Int[Array, "B W T"]
    live_log_probs: Float[Array, "B W"]
    finished_tokens: Int[Array, "B W T"]
    finished_scores: Float[Array, "B W"]
    done: Bool[Array, "B"]
    state: State


def length_penalty(length: Array | float, alpha: float) -> Array:
    """lp(Y) = ((5 + |Y|) / 6)^alpha of Wu et al. (2016); |Y| counts the end mark.

    >>> float(length_penalty(1.0, 0.6))
    1.0
    """
    return jnp.power((5.0 + jnp.asarray(length, jnp.float32)) / 6.0, alpha)


def beam_search(
    step: Step,
    state: State,
    reorder: Reorder,
    max_lengths: Int[Array, "B"],
    *,
    beam_size: int,
    alpha: float,
    buffer_lengths: Sequence[int],
    resize: Resize = lambda state, length: state,
    constraint: Constraint | None = None,
    min_length: int = 1,
    num_hypotheses: int = 1,
) -> types.Hypotheses:
    """The hypotheses of the highest log P(Y|X) / lp(Y) that a beam of W finds.

    At each position the W best extensions of the live hypotheses are kept; one that
    ends with the end mark becomes finished, and the next best extensions take its
    place among the live ones. A sentence stops when no live hypothesis can overtake
    its best finished ones: log-probabilities only fall, so log P / lp(longest) bounds
    what a live hypothesis can reach. It also stops at its longest allowed length; if
    nothing has finished by then, the live hypotheses are returned whole.

    Args:
        step: Logits of what follows each hypothesis. Padding and the begin mark never
            do, though they have their probabilities.
        state: The step's own, before the first position, for `buffer_lengths[0]`.
        reorder: Permutes the state's beams, `[B, W]` being where each comes from.
        max_lengths: Most tokens of each sentence's output, the end mark counted; 0
            gives an empty output.
        beam_size: W.
        alpha: Exponent of the length penalty; 0 for none.
        buffer_lengths: Ascending; the last is at least the largest of `max_lengths`.
            Positions up to each are searched with a state for so many.
        resize: Makes room in the state for a greater one of `buffer_lengths`.
        constraint: 0 or -inf for what may follow the hypotheses, given their tokens
            and the position: forbids without changing the others' probabilities.
        min_length: Fewest tokens of an output, the end mark counted.
        num_hypotheses: How many of the W must be settled before a sentence stops; the
            best is the same for any.
    """
    W, T = beam_size, buffer_lengths[-1]
    longest_penalty = length_penalty(max_lengths, alpha)[:, None]

    def is_done(search: _Search) -> Array:
        reachable = jnp.max(search.live_log_probs[:, :1] / longest_penalty, axis=1)
        settled = search.finished_scores[:, num_hypotheses - 1] >= reachable
        return settled | (search.position >= max_lengths)

    def body(search: _Search) -> _Search:
        position = search.position
        previous = jax.lax.dynamic_index_in_dim(
            search.live_tokens, jnp.maximum(position - 1, 0), axis=2, keepdims=False
        )
        newest = jnp.where(position == 0, types.BOS_ID, previous)
        logits, state = step(newest, search.state, position)
        allowed = constraint and constraint(search.live_tokens, position)
        extended = _extend(logits, allowed, search, W=W, min_length=min_length)
        penalty = length_penalty(position + 1, alpha)
        finished_tokens, finished_scores = _finish(extended, search, penalty, W=W)
        live_log_probs, kept = jax.lax.top_k(
            jnp.where(extended.ends, -jnp.inf, extended.log_probs), W
        )
        origin = jnp.take_along_axis(extended.origin, kept, axis=1)
        advanced = _Search(
            position=position + 1,
            live_tokens=_take(extended.tokens, kept),
            live_log_probs=live_log_probs,
            finished_tokens=finished_tokens,
            finished_scores=finished_scores,
            done=search.done,
            state=reorder(state, origin),
        )
        advanced = _freeze(search, advanced)
        return advanced._replace(done=search.done | is_done(advanced))

    search = _start(max_lengths, state, W=W, T=T)

    def goes_on(length: int, search: _Search) -> Array:
        return ~jnp.all(search.done) & (search.position < length)

    for index, length in enumerate(buffer_lengths):
        if index:
            search = search._replace(state=resize(search.state, length))
        search = jax.lax.while_loop(
            functools.partial(goes_on, length),
            body,
            search,
        )
    any_finished = search.finished_scores[:, :1] > -jnp.inf
    return types.Hypotheses(
        tokens=jnp.where(
            any_finished[:, :, None], search.finished_tokens, search.live_tokens
        ),
        scores=jnp.where(
            any_finished,
            search.finished_scores,
            search.live_log_probs / longest_penalty,
        ),
    )


def _start(max_lengths: Int[Array, "B"], state: State, *, W: int, T: int) -> _Search:
    """One live hypothesis a sentence, empty; the other beams are impossible."""
    B = max_lengths.shape[0]
    return _Search(
        position=jnp.zeros((), jnp.int32),
        live_tokens=jnp.full((B, W, T), types.PAD_ID, jnp.int32),
        live_log_probs=jnp.tile(jnp.where(jnp.arange(W) == 0, 0.0, -jnp.inf), (B, 1)),
        finished_tokens=jnp.full((B, W, T), types.PAD_ID, jnp.int32),
        finished_scores=jnp.full((B, W), -jnp.inf),
        done=max_lengths <= 0,
        state=state,
    )


def _freeze(search: _Search, advanced: _Search) -> _Search:
    """A sentence that is done stays as it is, whatever its neighbours still do."""

    def keep(old: Array, new: Array) -> Array:
        done = search.done.reshape((-1,) + (1,) * (new.ndim - 1))
        return jnp.where(done, old, new)

    return advanced._replace(
        live_tokens=keep(search.live_tokens, advanced.live_tokens),
        live_log_probs=keep(search.live_log_probs, advanced.live_log_probs),
        finished_tokens=keep(search.finished_tokens, advanced.finished_tokens),
        finished_scores=keep(search.finished_scores, advanced.finished_scores),
    )


class _Extensions(NamedTuple):
    """The 2W best one-token extensions of a sentence's live hypotheses."""

    tokens: Int[Array, "B 2W T"]
    log_probs: Float[Array, "B 2W"]
    origin: Int[Array, "B 2W"]
    ends: Bool[Array, "B 2W"]


def _extend(
    logits: Float[Array, "B W V"],
    allowed: Float[Array, "#B #W V"] | None,
    search: _Search,
    *,
    W: int,
    min_length: int,
) -> _Extensions:
    """2W are enough: at most W of them end, one for each live hypothesis."""
    B, _, V = logits.shape
    forbidden = (types.PAD_ID, types.BOS_ID, types.EOS_ID)
    # So many more, as some of the best may be forbidden.
    count = min(2 * W + len(forbidden), V)
    best = best_of(logits, count)
    largest = best.logits[:, :, :1]
    total = jnp.sum(jnp.exp(logits - largest), axis=-1, keepdims=True)
    normaliser = largest + jnp.log(total)
    if allowed is not None:
        best = best_of(logits + allowed, count)
    never = (best.tokens == types.PAD_ID) | (best.tokens == types.BOS_ID)
    early = (best.tokens == types.EOS_ID) & (search.position + 1 < min_length)
    gained = jnp.where(never | early, -jnp.inf, best.logits - normaliser)
    log_probs = search.live_log_probs[:, :, None] + gained
    best_log_probs, flat = jax.lax.top_k(log_probs.reshape(B, W * count), 2 * W)
    origin = flat // count
    token = jnp.take_along_axis(best.tokens.reshape(B, -1), flat, axis=1)
    tokens = _take(search.live_tokens, origin)
    here = jnp.arange(tokens.shape[2]) == search.position
    tokens = jnp.where(here, token[:, :, None].astype(jnp.int32), tokens)
    return _Extensions(tokens, best_log_probs, origin, token == types.EOS_ID)


class Best(NamedTuple):
    """The largest of many logits and their tokens, in descending order."""

    logits: Float[Array, "B W N"]
    tokens: Int[Array, "B W N"]


def best_of(logits: Float[Array, "B W V"], count: int) -> Best:
    """The `count` largest logits of each hypothesis.

    They lie in those blocks whose own largest are the largest, so that few of a large
    vocabulary are sorted.
    """
    B, W, V = logits.shape
    size = next((size for size in BLOCKS if V % size == 0), BLOCKS[0])
    num_blocks = -(-V // size)
    if num_blocks <= 4 * count:
        best, tokens = jax.lax.top_k(logits, count)
        return Best(best, tokens)
    if missing := num_blocks * size - V:
        widths = [(0, 0), (0, 0), (0, missing)]
        logits = jnp.pad(logits, widths, constant_values=-jnp.inf)
    blocks = logits.reshape(B * W, num_blocks, size)
    _, chosen = jax.lax.top_k(jnp.max(blocks, axis=-1), count)
    # In the order of the tokens, so that of equal logits the first is first.
    chosen = jnp.sort(chosen, axis=-1)
    inside = jnp.take_along_axis(blocks, chosen[:, :, None], axis=1)
    best, place = jax.lax.top_k(inside.reshape(B * W, count * size), count)
    tokens = jnp.take_along_axis(chosen, place // size, axis=1) * size + place % size
    return Best(best.reshape(B, W, count), tokens.reshape(B, W, count))


def _finish(
    extended: _Extensions, search: _Search, penalty: Array, *, W: int
) -> tuple[Array, Array]:
    """The W best finished hypotheses, with those among the W best extensions."""
    ended = extended.ends & (jnp.arange(2 * W) < W)
    scores = jnp.where(ended, extended.log_probs / penalty, -jnp.inf)
    all_scores = jnp.concatenate([search.finished_scores, scores], axis=1)
    all_tokens = jnp.concatenate([search.finished_tokens, extended.tokens], axis=1)
    best, kept = jax.lax.top_k(all_scores, W)
    return _take(all_tokens, kept), best


def _take(tokens: Int[Array, "B N T"], chosen: Int[Array, "B M"]) -> Array:
    return jnp.take_along_axis(tokens, chosen[:, :, None], axis=1)
