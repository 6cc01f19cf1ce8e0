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


class Search(NamedTuple):
    """The loop's variables; live hypotheses have no end mark, finished ones have.

    `row` says which sentence of the batch each is.
    """

    position: Int[Array, ""]
    row: Int[Array, "B"]
    live_tokens: Int[Array, "B W T"]
    live_log_probs: Float[Array, "B W"]
    finished_tokens: Int[Array, "B W T"]
    finished_scores: Float[Array, "B W"]
    done: Bool[Array, "B"]
    state: Any


def start(max_lengths: Int[Array, "B"], state: Any, *, W: int, T: int) -> Search:
    """One live hypothesis a sentence, empty; the other beams are impossible."""
    B = max_lengths.shape[0]
    return Search(
        position=jnp.zeros((), jnp.int32),
        row=jnp.arange(B),
        live_tokens=jnp.full((B, W, T), types.PAD_ID, jnp.int32),
        live_log_probs=jnp.tile(jnp.where(jnp.arange(W) == 0, 0.0, -jnp.inf), (B, 1)),
        finished_tokens=jnp.full((B, W, T), types.PAD_ID, jnp.int32),
        finished_scores=jnp.full((B, W), -jnp.inf),
        done=max_lengths <= 0,
        state=state,
    )


def freeze(search: Search, advanced: Search) -> Search:
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


def some_of(search: Search, rows: Int[Array, "N"]) -> Search:
    """Some of the sentences."""
    chosen: Search = jax.tree.map(
        lambda leaf: leaf[rows], search._replace(position=search.row)
    )
    return chosen._replace(position=search.position)


def put_back(search: Search, rows: Int[Array, "N"], some: Search) -> Search:
    """What was found for some of the sentences, among all; their states are over."""

    def put(all_: Array, own: Array) -> Array:
        return all_.at[rows].set(own)

    return search._replace(
        live_tokens=put(search.live_tokens, some.live_tokens),
        live_log_probs=put(search.live_log_probs, some.live_log_probs),
        finished_tokens=put(search.finished_tokens, some.finished_tokens),
        finished_scores=put(search.finished_scores, some.finished_scores),
        done=search.done.at[rows].set(True),
    )


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

    def is_done(search: Search) -> Array:
        most = max_lengths[search.row]
        longest_penalty = length_penalty(most, alpha, form=penalty_form)
        reachable = search.live_log_probs[:, 0] / longest_penalty
        settled = search.finished_scores[:, num_hypotheses - 1] >= reachable
        return settled | (search.position >= most)

    def body(search: Search) -> Search:
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
        advanced = freeze(search, advanced)
        return advanced._replace(done=search.done | is_done(advanced))

    def run(search: Search, *, length: int, few: int) -> Search:
        """Until a position, or until no more than so few sentences are left."""

        def goes_on(search: Search) -> Array:
            return (jnp.sum(~search.done) > few) & (search.position < length)

        return jax.lax.while_loop(goes_on, body, search)

    def finish_some(search: Search) -> Search:
        rows = jnp.argsort(search.done, stable=True)[: max(1, few)]
        some = some_of(search, rows)
        some = some._replace(state=resize(some.state, longest))
        return put_back(search, rows, run(some, length=longest, few=0))

    search = start(max_lengths, state, W=W, T=T)
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
    search: Search,
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
    candidates = likeliest(logits, offset, count=2 * W)
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
    extended: _Extensions, search: Search, penalty: Array, *, W: int
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
