"""Section 6.1: beam search with a length penalty, over a step function.

It knows no model: a step maps the newest token of every hypothesis and the caller's
state to logits and the next state.
"""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from vaswani_jax.core import compilation, types
from vaswani_jax.inference import extensions
from vaswani_jax.inference.banks import RequiredPhrases

State = Any
LogitBias = Callable[
    [Int[Array, "B W T"], Int[Array, "B"], Int[Array, ""]], Float[Array, "#B #W V"]
]
# A few sentences that need more room than most are finished in parts of the batch.
PARTS = 4


@dataclasses.dataclass(frozen=True)
class Stepper:
    """A model as the search knows it: functions of a state that is the model's own.

    The first axis of each array of a state is that of the sentences.

    Attributes:
        step: From the newest token of each hypothesis, the state and the position to
            the logits of what follows, and the next state.
        reorder: Permutes a state's hypotheses; `[B, W]` says where each comes from.
        resize: Makes room in a state for more positions.
    """

    step: Callable[
        [Int[Array, "B W"], State, Int[Array, ""]], tuple[Float[Array, "B W V"], State]
    ]
    reorder: Callable[[State, Int[Array, "B W"]], State]
    resize: Callable[[State, int], State] = lambda state, length: state


@dataclasses.dataclass(frozen=True, kw_only=True)
class SearchOptions:
    """Options of a search, or of sampling, whatever the model and the sentences.

    Attributes:
        beam_size: W, the hypotheses of a sentence that are extended together.
        n_best: How many of the W must be settled before a sentence stops; the best is
            the same for any.
        alpha: Exponent of the length penalty; 0 for none.
        penalty_form: Of `length_penalty`.
        min_length: Fewest tokens of an output, the end mark counted.
        buffer_lengths: Ascending. Positions up to each are searched with a state that
            has room for that many. Sentences that are not done by the last of them, or
            are among the last few, are finished together with room for `max_length`.
        max_length: Most tokens of any output, the end mark counted.
    """

    beam_size: int
    n_best: int = 1
    alpha: float
    penalty_form: str = "paper"
    min_length: int = 1
    buffer_lengths: tuple[int, ...]
    max_length: int


def length_penalty(
    length: Array | float, alpha: Array | float, *, form: str = "paper"
) -> Array:
    """Return lp(Y) = ((5 + |Y|) / 6)^alpha of Wu et al. (2016).

    |Y| counts the end mark. With the form "power" it is |Y|^alpha, as in other
    toolkits.

    >>> float(length_penalty(1.0, 0.6)), float(length_penalty(4.0, 0.5, form="power"))
    (1.0, 2.0)
    """
    num_tokens = jnp.asarray(length, jnp.float32)
    base = (5.0 + num_tokens) / 6.0 if form == "paper" else jnp.maximum(num_tokens, 1.0)
    return jnp.power(base, alpha)


def beam_search(
    stepper: Stepper,
    state: State,
    *,
    max_lengths: Int[Array, "B"],
    options: SearchOptions,
    logit_bias: LogitBias | None = None,
    phrases: RequiredPhrases | None = None,
    alpha: Float[Array, "B"] | None = None,
    n_best: Int[Array, "B"] | None = None,
) -> types.Hypotheses:
    """Return the hypotheses of the highest log P(Y|X) / lp(Y) that a beam of W finds.

    Each position keeps the W best extensions of the live hypotheses. An extension that
    ends with the end mark is finished, and the next best one takes its place among the
    live. A sentence stops when no live hypothesis can overtake its best finished ones:
    log-probabilities only fall, so log P / lp(longest) bounds what a live hypothesis
    can reach. It also stops at its longest allowed length; if nothing has finished by
    then, the live hypotheses are returned as they are.

    Args:
        stepper: The model. Padding and the begin mark never follow a hypothesis,
            though they have their probabilities.
        state: The stepper's, before the first position, with room for
            `buffer_lengths[0]`.
        max_lengths: Most tokens of each sentence's output, the end mark counted; 0
            gives an empty output.
        options: How to search.
        logit_bias: 0 or -inf for each token that may follow, from the hypotheses'
            tokens, their sentences and the position. It forbids tokens without
            changing the probabilities of others.
        phrases: Those that each output must have; None if none must.
        alpha: The exponent of each sentence; None takes that of the options.
        n_best: The number, from 1 to W, for each sentence; None takes the options'.
    """
    W, T, B = options.beam_size, options.max_length, max_lengths.shape[0]
    last_length = options.buffer_lengths[-1]
    stragglers = B // PARTS if last_length < T else 0

    def body(search: Search) -> Search:
        next_search, _ = advance(
            search,
            stepper,
            max_lengths=max_lengths,
            options=options,
            logit_bias=logit_bias,
        )
        return next_search

    def run(search: Search, *, length: int, stragglers: int) -> Search:
        """Search up to a position, or until only so many sentences are left."""

        def goes_on(search: Search) -> Array:
            is_busy = jnp.sum(~search.is_done) > stragglers
            return is_busy & (search.position < length)

        return jax.lax.while_loop(goes_on, body, search)

    def finish_stragglers(search: Search) -> Search:
        rows = jnp.argsort(search.is_done, stable=True)[: max(1, stragglers)]
        part = _take_rows(search, rows)
        part = part._replace(state=stepper.resize(part.state, T))
        return _put_rows(search, run(part, length=T, stragglers=0), rows=rows)

    search = start(max_lengths, state, W=W, T=T)
    search = search._replace(alpha=alpha, n_best=n_best)
    if phrases is not None:
        counts = phrases.no_counts(W)
        search = search._replace(phrases=phrases, phrase_counts=counts)
    for index, length in enumerate(options.buffer_lengths):
        if index:
            search = search._replace(state=stepper.resize(search.state, length))
        search = run(search, length=length, stragglers=stragglers)
    if last_length < T:
        search = jax.lax.while_loop(
            lambda search: ~jnp.all(search.is_done), finish_stragglers, search
        )
    return to_hypotheses(search, max_lengths=max_lengths, options=options)


class Search(NamedTuple):
    """The loop's variables; live hypotheses have no end mark, finished ones have.

    `row` says which sentence of the batch each is. `alpha` and `n_best` are None where
    all sentences have those of the options. `phrases` is None where none has phrases;
    `phrase_counts` says how often each live hypothesis has each.
    """

    position: Int[Array, ""]
    row: Int[Array, "B"]
    live_tokens: Int[Array, "B W T"]
    live_log_probs: Float[Array, "B W"]
    finished_tokens: Int[Array, "B W T"]
    finished_scores: Float[Array, "B W"]
    is_done: Bool[Array, "B"]
    state: State
    alpha: Float[Array, "B"] | None = None
    n_best: Int[Array, "B"] | None = None
    phrases: RequiredPhrases | None = None
    phrase_counts: Int[Array, "B W C"] | None = None

    def hypotheses(self) -> dict[str, Array | None]:
        """Return the fields that have a value for each hypothesis."""
        names = ("live_tokens", "live_log_probs", "finished_tokens", "finished_scores")
        return {name: getattr(self, name) for name in (*names, "phrase_counts")}

    def penalty(self, length: Array, *, options: "SearchOptions") -> Array:
        """Return lp for the length of each sentence, or for one length of all."""
        alpha = options.alpha if self.alpha is None else self.alpha
        return length_penalty(length, alpha, form=options.penalty_form)

    def settled_scores(self, *, options: "SearchOptions") -> Float[Array, "B"]:
        """Return the score of the last finished hypothesis that is wanted."""
        if self.n_best is None:
            return self.finished_scores[:, options.n_best - 1]
        index = self.n_best[:, None] - 1
        return jnp.take_along_axis(self.finished_scores, index, axis=1)[:, 0]


def start(max_lengths: Int[Array, "B"], state: State, *, W: int, T: int) -> Search:
    """Return one live hypothesis a sentence, empty; the other beams are impossible."""
    B = max_lengths.shape[0]
    return Search(
        position=jnp.zeros((), jnp.int32),
        row=jnp.arange(B),
        live_tokens=jnp.full((B, W, T), types.PAD_ID, jnp.int32),
        live_log_probs=jnp.tile(jnp.where(jnp.arange(W) == 0, 0.0, -jnp.inf), (B, 1)),
        finished_tokens=jnp.full((B, W, T), types.PAD_ID, jnp.int32),
        finished_scores=jnp.full((B, W), -jnp.inf),
        is_done=max_lengths <= 0,
        state=state,
    )


class Choice(NamedTuple):
    """The 2W best extensions at a position, best first, and which of them stay.

    The values of a sentence that is already done mean nothing.

    Attributes:
        token: The token that each appends.
        origin: The live hypothesis that it extends.
        log_probs: Of the extended hypothesis; -inf for none.
        live: Which of the extensions are the live hypotheses of the next position.
        finished: Where the finished hypotheses come from: below W the place of one that
            had finished before, W + n the n-th extension.
    """

    token: Int[Array, "B 2W"]
    origin: Int[Array, "B 2W"]
    log_probs: Float[Array, "B 2W"]
    live: Int[Array, "B W"]
    finished: Int[Array, "B W"]


def advance(
    search: Search,
    stepper: Stepper,
    *,
    max_lengths: Int[Array, "all"],
    options: SearchOptions,
    logit_bias: LogitBias | None,
) -> tuple[Search, Choice]:
    """Extend every live hypothesis by one token.

    `max_lengths` has all sentences of the batch, the search perhaps some of them.
    """
    position = search.position
    previous = jax.lax.dynamic_index_in_dim(
        search.live_tokens, jnp.maximum(position - 1, 0), axis=2, keepdims=False
    )
    newest = jnp.where(position == 0, types.BOS_ID, previous)
    logits, state = stepper.step(newest, search.state, position)
    allowed = logit_bias and logit_bias(search.live_tokens, search.row, position)
    next_search, choice = _choose(
        search._replace(state=None), logits, allowed, max_lengths, options=options
    )
    origin = jnp.take_along_axis(choice.origin, choice.live, axis=1)
    return next_search._replace(state=stepper.reorder(state, origin)), choice


@functools.partial(compilation.traced_once, static=["options"])
def _choose(
    search: Search,
    logits: Float[Array, "B W V"],
    allowed: Float[Array, "#B #W V"] | None,
    max_lengths: Int[Array, "all"],
    *,
    options: SearchOptions,
) -> tuple[Search, Choice]:
    """Return the search after a position, without its state, and the choice made.

    Traced once for all lengths of the state's buffers.
    """
    extensions = _extend(search, logits, allowed=allowed, options=options)
    penalty = search.penalty(search.position + 1, options=options)
    if penalty.ndim:  # Each sentence has its own.
        penalty = penalty[:, None]
    finished = _finish(search, extensions, penalty=penalty)
    ends = extensions.ends
    if search.phrases is not None:  # The first W of their order stay.
        ends |= jnp.cumsum(~ends, axis=1) > options.beam_size
    live_log_probs, indices = jax.lax.top_k(
        jnp.where(ends, -jnp.inf, extensions.log_probs), options.beam_size
    )
    next_search = search._replace(
        position=search.position + 1,
        live_tokens=_take_tokens(extensions.tokens, indices),
        live_log_probs=live_log_probs,
        finished_tokens=finished.tokens,
        finished_scores=finished.scores,
    )
    if extensions.phrase_counts is not None:
        counts = jnp.take_along_axis(
            extensions.phrase_counts, indices[:, :, None], axis=1
        )
        next_search = next_search._replace(phrase_counts=counts)
    next_search = _freeze(search, next_search)
    is_done = search.is_done | _is_done(
        next_search, max_lengths=max_lengths, options=options
    )
    choice = Choice(
        token=extensions.token,
        origin=extensions.origin,
        log_probs=extensions.log_probs,
        live=indices,
        finished=finished.indices,
    )
    return next_search._replace(is_done=is_done), choice


def _is_done(
    search: Search, *, max_lengths: Int[Array, "all"], options: SearchOptions
) -> Bool[Array, "B"]:
    """Return True for the sentences that no further position can improve."""
    longest = max_lengths[search.row]
    reachable = reachable_scores(search, longest, options=options)
    scores = search.settled_scores(options=options)
    settled = scores >= reachable
    return settled | (search.position >= longest)


def reachable_scores(
    search: Search, longest: Int[Array, "B"], *, options: SearchOptions
) -> Float[Array, "B"]:
    """Return a bound of the scores that the live hypotheses can reach.

    Args:
        search: Where the search is.
        longest: Most tokens of each sentence's output, the end mark counted.
        options: Of the search.
    """
    longest_penalty = search.penalty(longest, options=options)
    return search.live_log_probs[:, 0] / longest_penalty


def _freeze(search: Search, advanced: Search) -> Search:
    """Return `advanced`, but each sentence that was done as it was in `search`."""

    def keep(old: Array, new: Array) -> Array:
        is_done = search.is_done.reshape((-1,) + (1,) * (new.ndim - 1))
        return jnp.where(is_done, old, new)

    frozen = jax.tree.map(keep, search.hypotheses(), advanced.hypotheses())
    return advanced._replace(**frozen)


def _take_rows(search: Search, rows: Int[Array, "N"]) -> Search:
    """Return the search of some of the sentences."""
    part: Search = jax.tree.map(
        lambda leaf: leaf[rows], search._replace(position=search.row)
    )
    return part._replace(position=search.position)


def _put_rows(search: Search, part: Search, *, rows: Int[Array, "N"]) -> Search:
    """Return the search with the hypotheses of some sentences, which are done."""

    def put(all_rows: Array, some_rows: Array) -> Array:
        return all_rows.at[rows].set(some_rows)

    joined = jax.tree.map(put, search.hypotheses(), part.hypotheses())
    return search._replace(**joined, is_done=search.is_done.at[rows].set(True))


class _Extensions(NamedTuple):
    """The 2W best one-token extensions of a sentence's live hypotheses."""

    tokens: Int[Array, "B 2W T"]
    log_probs: Float[Array, "B 2W"]
    origin: Int[Array, "B 2W"]
    token: Int[Array, "B 2W"]
    ends: Bool[Array, "B 2W"]
    phrase_counts: Int[Array, "B 2W C"] | None = None


def _extend(
    search: Search,
    logits: Float[Array, "B W V"],
    *,
    allowed: Float[Array, "#B #W V"] | None,
    options: SearchOptions,
) -> _Extensions:
    """Return the 2W best extensions: at most W end, one for each live hypothesis."""
    largest, total = extensions.largest_and_total(logits)
    # What a logit needs to become the log-probability of the whole hypothesis.
    offset = search.live_log_probs[:, :, None] - (largest + jnp.log(total))
    limits = extensions.Limits(search.position, options.min_length)
    count = 2 * options.beam_size
    counts = None
    if search.phrases is not None:
        assert search.phrase_counts is not None
        progress = search.phrases.progress(search.live_tokens, search.phrase_counts)
        best, counts = search.phrases.best_extensions(
            logits,
            offset,
            allowed=allowed,
            progress=progress,
            count=count,
            limits=limits,
        )
    else:
        if allowed is not None:
            logits = logits + allowed
        best = extensions.best_extensions(logits, offset, count=count, limits=limits)
    log_probs, origin, token = best
    tokens = _take_tokens(search.live_tokens, origin)
    is_current = jnp.arange(tokens.shape[2]) == search.position
    tokens = jnp.where(is_current, token[:, :, None], tokens)
    ends = token == types.EOS_ID
    return _Extensions(tokens, log_probs, origin, token, ends, counts)


class _Finished(NamedTuple):
    """The W best finished hypotheses; `indices` are those of `Choice.finished`."""

    tokens: Int[Array, "B W T"]
    scores: Float[Array, "B W"]
    indices: Int[Array, "B W"]


def _finish(search: Search, extensions: _Extensions, *, penalty: Array) -> _Finished:
    """Return the W best finished hypotheses, with those among the W best extensions."""
    W = search.finished_scores.shape[1]
    ended = extensions.ends & (jnp.arange(2 * W) < W)
    scores = jnp.where(ended, extensions.log_probs / penalty, -jnp.inf)
    all_scores = jnp.concatenate([search.finished_scores, scores], axis=1)
    all_tokens = jnp.concatenate([search.finished_tokens, extensions.tokens], axis=1)
    best, indices = jax.lax.top_k(all_scores, W)
    return _Finished(_take_tokens(all_tokens, indices), best, indices)


def _take_tokens(tokens: Int[Array, "B N T"], indices: Int[Array, "B M"]) -> Array:
    return jnp.take_along_axis(tokens, indices[:, :, None], axis=1)


def to_hypotheses(
    search: Search, *, max_lengths: Int[Array, "B"], options: SearchOptions
) -> types.Hypotheses:
    """Return the finished hypotheses, or the live ones of a sentence without any."""
    longest_penalty = search.penalty(max_lengths, options=options)[:, None]
    live = search.live_tokens, search.live_log_probs
    if search.phrases is not None:
        assert search.phrase_counts is not None
        live = search.phrases.prefer_complete(*live, search.phrase_counts)
    live_tokens, live_log_probs = live
    any_finished = search.finished_scores[:, :1] > -jnp.inf
    return types.Hypotheses(
        tokens=jnp.where(any_finished[:, :, None], search.finished_tokens, live_tokens),
        scores=jnp.where(
            any_finished, search.finished_scores, live_log_probs / longest_penalty
        ),
    )
