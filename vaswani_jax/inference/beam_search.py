"""Section 6.1: beam search with a length penalty, over a step function.

It knows no model: a step maps the newest token of every hypothesis and the caller's
state to logits and the next state.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from vaswani_jax.core import types
from vaswani_jax.inference import extensions, search_state

State = Any
Step = Callable[
    [Int[Array, "B W"], State, Int[Array, ""]], tuple[Float[Array, "B W V"], State]
]
Reorder = Callable[[State, Int[Array, "B W"]], State]
Resize = Callable[[State, int], State]
Constraint = Callable[
    [Int[Array, "B W T"], Int[Array, "B"], Int[Array, ""]], Float[Array, "#B #W V"]
]
# Sentences that need more room than most are finished in parts of the batch.
PARTS = 4


def length_penalty(
    length: Array | float, alpha: float, *, form: str = "paper"
) -> Array:
    """lp(Y) = ((5 + |Y|) / 6)^alpha of Wu et al. (2016); |Y| counts the end mark.

    With the form "power" it is |Y|^alpha, as in other toolkits.

    >>> float(length_penalty(1.0, 0.6)), float(length_penalty(4.0, 0.5, form="power"))
    (1.0, 2.0)
    """
    counted = jnp.asarray(length, jnp.float32)
    base = (5.0 + counted) / 6.0 if form == "paper" else jnp.maximum(counted, 1.0)
    return jnp.power(base, alpha)


def beam_search(
    step: Step,
    state: State,
    reorder: Reorder,
    max_lengths: Int[Array, "B"],
    *,
    beam_size: int,
    alpha: float,
    buffer_lengths: Sequence[int],
    longest: int,
    resize: Resize = lambda state, length: state,
    constraint: Constraint | None = None,
    min_length: int = 1,
    num_hypotheses: int = 1,
    penalty_form: str = "paper",
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
        state: The step's own, before the first position, for `buffer_lengths[0]`; the
            first axis of each of its arrays is that of the sentences.
        reorder: Permutes the state's beams, `[B, W]` being where each comes from.
        max_lengths: Most tokens of each sentence's output, the end mark counted; 0
            gives an empty output.
        beam_size: W.
        alpha: Exponent of the length penalty; 0 for none.
        buffer_lengths: Ascending. Positions up to each are searched with a state for
            so many; a sentence that is not done by then, or is among the last few,
            goes on beside others of its kind with room for `longest`.
        longest: At least the largest of `max_lengths`.
        resize: Makes room in the state for more positions.
        constraint: 0 or -inf for what may follow the hypotheses, given their tokens,
            their sentences and the position: forbids without changing the others'
            probabilities.
        min_length: Fewest tokens of an output, the end mark counted.
        num_hypotheses: How many of the W must be settled before a sentence stops; the
            best is the same for any.
        penalty_form: Of `length_penalty`.
    """
    W, T, B = beam_size, longest, max_lengths.shape[0]
    few = B // PARTS if longest > buffer_lengths[-1] else 0

    def is_done(search: search_state.Search) -> Array:
        most = max_lengths[search.row]
        longest_penalty = length_penalty(most, alpha, form=penalty_form)
        reachable = search.live_log_probs[:, 0] / longest_penalty
        settled = search.finished_scores[:, num_hypotheses - 1] >= reachable
        return settled | (search.position >= most)

    def body(search: search_state.Search) -> search_state.Search:
        position = search.position
        previous = jax.lax.dynamic_index_in_dim(
            search.live_tokens, jnp.maximum(position - 1, 0), axis=2, keepdims=False
        )
        newest = jnp.where(position == 0, types.BOS_ID, previous)
        logits, state = step(newest, search.state, position)
        allowed = constraint and constraint(search.live_tokens, search.row, position)
        extended = _extend(logits, allowed, search, W=W, min_length=min_length)
        penalty = length_penalty(position + 1, alpha, form=penalty_form)
        finished_tokens, finished_scores = _finish(extended, search, penalty, W=W)
        live_log_probs, kept = jax.lax.top_k(
            jnp.where(extended.ends, -jnp.inf, extended.log_probs), W
        )
        origin = jnp.take_along_axis(extended.origin, kept, axis=1)
        advanced = search._replace(
            position=position + 1,
            live_tokens=_take(extended.tokens, kept),
            live_log_probs=live_log_probs,
            finished_tokens=finished_tokens,
            finished_scores=finished_scores,
            state=reorder(state, origin),
        )
        advanced = search_state.freeze(search, advanced)
        return advanced._replace(done=search.done | is_done(advanced))

    def run(
        search: search_state.Search, *, length: int, few: int
    ) -> search_state.Search:
        """Until a position, or until no more than so few sentences are left."""

        def goes_on(search: search_state.Search) -> Array:
            return (jnp.sum(~search.done) > few) & (search.position < length)

        return jax.lax.while_loop(goes_on, body, search)

    def finish_some(search: search_state.Search) -> search_state.Search:
        rows = jnp.argsort(search.done, stable=True)[: max(1, few)]
        some = search_state.some_of(search, rows)
        some = some._replace(state=resize(some.state, longest))
        return search_state.put_back(search, rows, run(some, length=longest, few=0))

    search = search_state.start(max_lengths, state, W=W, T=T)
    for index, length in enumerate(buffer_lengths):
        if index:
            search = search._replace(state=resize(search.state, length))
        search = run(search, length=length, few=few)
    if longest > buffer_lengths[-1]:
        search = jax.lax.while_loop(
            lambda search: ~jnp.all(search.done), finish_some, search
        )
    longest_penalty = length_penalty(max_lengths, alpha, form=penalty_form)[:, None]
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


class _Extensions(NamedTuple):
    """The 2W best one-token extensions of a sentence's live hypotheses."""

    tokens: Int[Array, "B 2W T"]
    log_probs: Float[Array, "B 2W"]
    origin: Int[Array, "B 2W"]
    ends: Bool[Array, "B 2W"]


def _extend(
    logits: Float[Array, "B W V"],
    allowed: Float[Array, "#B #W V"] | None,
    search: search_state.Search,
    *,
    W: int,
    min_length: int,
) -> _Extensions:
    """2W are enough: at most W of them end, one for each live hypothesis."""
    V = logits.shape[2]
    largest = jnp.max(logits, axis=-1, keepdims=True)
    total = jnp.sum(jnp.exp(logits - largest), axis=-1, keepdims=True)
    # What a logit needs to become the log-probability of the whole hypothesis.
    offset = search.live_log_probs[:, :, None] - (largest + jnp.log(total))
    if allowed is not None:
        logits = logits + allowed
    candidates = extensions.likeliest(logits, offset, count=2 * W)
    origin, token = candidates.places // V, candidates.places % V
    never = (token == types.PAD_ID) | (token == types.BOS_ID)
    early = (token == types.EOS_ID) & (search.position + 1 < min_length)
    log_probs = jnp.where(never | early, -jnp.inf, candidates.log_probs)
    best, chosen = jax.lax.top_k(log_probs, 2 * W)
    origin, token = (
        jnp.take_along_axis(each, chosen, axis=1).astype(jnp.int32)
        for each in (origin, token)
    )
    tokens = _take(search.live_tokens, origin)
    here = jnp.arange(tokens.shape[2]) == search.position
    tokens = jnp.where(here, token[:, :, None], tokens)
    return _Extensions(tokens, best, origin, token == types.EOS_ID)


def _finish(
    extended: _Extensions, search: search_state.Search, penalty: Array, *, W: int
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
