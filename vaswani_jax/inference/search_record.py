"""Record a beam search: what each position considers, and why the search stops.

The functions of `beam_search` run position by position, with room for the longest
output. The compiled search has room for less at first, so that scores may differ in
their last digits.
"""

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Array, Float, Int

from vaswani_jax.core import config, types
from vaswani_jax.inference import beam_search, generate, scoring


@dataclasses.dataclass(frozen=True)
class Extension:
    """A live hypothesis and one token more.

    Attributes:
        token: The id of the token.
        parent: The place of the live hypothesis at its position, from 0.
        log_prob: Of the whole, in nats.
        score: `log_prob` over the length penalty.
        live: The place among the live hypotheses of the next position; None if it is
            none of them.
        is_kept: Whether it ends and is one of the W best that have ended so far.
    """

    token: int
    parent: int
    log_prob: float
    score: float
    live: int | None
    is_kept: bool


@dataclasses.dataclass(frozen=True)
class RecordedHypothesis:
    """A hypothesis that the search returns.

    Attributes:
        ids: Its tokens, with the end mark if it ended.
        log_prob: log P(Y|X) in nats.
        penalty: The length penalty.
        score: `log_prob` over `penalty`.
        path: The place of its extension at each position.
    """

    ids: tuple[int, ...]
    log_prob: float
    penalty: float
    score: float
    path: tuple[int, ...]


@dataclasses.dataclass(frozen=True)
class SearchRecord:
    """The search of one sentence.

    Attributes:
        options: How it was searched.
        positions: The at most 2W best extensions of each position, best first.
        hypotheses: What the search returns, best first: the finished hypotheses, or the
            live ones if none has finished.
        longest: Most tokens of an output, the end mark counted.
        longest_penalty: The length penalty of that many.
        live_log_prob: log P in nats of the best hypothesis that is live at the end;
            -inf if none is.
        reachable: A bound of the score that a live hypothesis could still reach.
        is_settled: Whether the search stopped because of that bound. Otherwise it had
            reached the longest length.
    """

    options: beam_search.SearchOptions
    positions: tuple[tuple[Extension, ...], ...]
    hypotheses: tuple[RecordedHypothesis, ...]
    longest: int
    longest_penalty: float
    live_log_prob: float
    reachable: float
    is_settled: bool


def record_rows(
    settings: config.Config,
    models: Sequence[config.ModelConfig],
    *,
    params: Sequence[Any],
    rows: generate.Rows,
    vocab_size: types.VocabSize,
    n_best: int,
) -> list[SearchRecord]:
    """Return the record of each row's search by one model or several.

    Args:
        settings: How to search; sampling is no search.
        models: The architectures, in the order of their parameters.
        params: Those of each model.
        rows: The sentences. A row of padding has a record without positions.
        vocab_size: V.
        n_best: How many hypotheses must be settled before a sentence stops.
    """
    plan = generate.make_plan(
        settings, models, rows=rows, vocab_size=vocab_size, n_best=n_best
    )
    program = _program(settings, tuple(models), vocab_size=vocab_size, n_best=n_best)
    return follow(
        program.start(params, rows),
        functools.partial(program.advance, params, rows),
        max_lengths=plan.max_lengths,
        options=plan.options,
    )


class _Program(NamedTuple):
    """The search of rows by models, compiled once for all positions of a shape.

    Attributes:
        start: From parameters and rows to the search before the first position.
        advance: From parameters, rows and a search to the next, whose memory it reuses,
            and what it chose.
    """

    start: Callable[..., beam_search.Search]
    advance: Callable[..., tuple[beam_search.Search, beam_search.Choice]]


@functools.cache
def _program(
    settings: config.Config,
    models: tuple[config.ModelConfig, ...],
    *,
    vocab_size: types.VocabSize,
    n_best: int,
) -> _Program:
    task_of = functools.partial(
        generate.make_task, settings, models, vocab_size=vocab_size, n_best=n_best
    )

    def start(params: Any, rows: generate.Rows) -> beam_search.Search:
        task = task_of(params=params, rows=rows)
        T = task.options.max_length
        state = task.stepper.resize(task.caches, T)
        return beam_search.start(task.max_lengths, state, W=task.options.beam_size, T=T)

    def advance(params: Any, rows: generate.Rows, search: beam_search.Search) -> Any:
        task = task_of(params=params, rows=rows, caches=search.state)
        return beam_search.advance(
            search,
            task.stepper,
            max_lengths=task.max_lengths,
            options=task.options,
            logit_bias=task.logit_bias,
        )

    return _Program(jax.jit(start), jax.jit(advance, donate_argnums=2))


def follow(
    search: beam_search.Search,
    advance: Callable[..., tuple[beam_search.Search, beam_search.Choice]],
    *,
    max_lengths: Int[Array, "B"],
    options: beam_search.SearchOptions,
) -> list[SearchRecord]:
    """Search to the end and return the record of each sentence.

    Args:
        search: The search before the first position.
        advance: Goes on by a position, and returns what it chose, too.
        max_lengths: Most tokens of each output, the end mark counted.
        options: How to search.
    """
    penalty = functools.partial(
        scoring.length_penalty, alpha=options.alpha, form=options.penalty_form
    )
    is_done = np.asarray(search.is_done)
    positions: list[list[tuple[Extension, ...]]] = [[] for _ in is_done]
    while not is_done.all():
        search, choice = advance(search)
        choice = jax.device_get(choice)
        length_penalty = penalty(int(search.position))
        for row in np.flatnonzero(~is_done):
            row_choice = beam_search.Choice(*(leaf[row] for leaf in choice))
            positions[row].append(
                _extensions(row_choice, penalty=length_penalty, W=options.beam_size)
            )
        is_done = np.asarray(search.is_done)
    final = jax.device_get(
        beam_search.to_hypotheses(search, max_lengths=max_lengths, options=options)
    )
    reachable = np.asarray(
        beam_search.reachable_scores(search, max_lengths, options=options)
    )
    settled_scores = np.asarray(search.finished_scores)[:, options.n_best - 1]
    return [
        SearchRecord(
            options=options,
            positions=tuple(positions[row]),
            hypotheses=_hypotheses(
                final.tokens[row],
                final.scores[row],
                positions=positions[row],
                penalty=penalty,
            ),
            longest=int(max_lengths[row]),
            longest_penalty=penalty(int(max_lengths[row])),
            live_log_prob=float(search.live_log_probs[row, 0]),
            reachable=float(reachable[row]),
            is_settled=bool(settled_scores[row] >= reachable[row]),
        )
        for row in range(len(positions))
    ]


def _extensions(
    choice: beam_search.Choice, *, penalty: float, W: int
) -> tuple[Extension, ...]:
    """Return what a sentence has at a position, without impossible extensions."""
    live = {int(index): rank for rank, index in enumerate(choice.live)}
    kept_indices = {int(index) - W for index in choice.finished}
    extensions = []
    for index, log_prob in enumerate(choice.log_probs):
        if log_prob == -np.inf:
            break
        ends = choice.token[index] == types.EOS_ID
        extensions.append(
            Extension(
                token=int(choice.token[index]),
                parent=int(choice.origin[index]),
                log_prob=float(log_prob),
                score=float(log_prob) / penalty,
                live=None if ends else live.get(index),
                is_kept=bool(ends) and index < W and index in kept_indices,
            )
        )
    return tuple(extensions)


def _hypotheses(
    tokens: Int[np.ndarray, "W T"],
    scores: Float[np.ndarray, "W"],
    *,
    positions: Sequence[Sequence[Extension]],
    penalty: Callable[[int], float],
) -> tuple[RecordedHypothesis, ...]:
    """Return what a search found, each with its way through the positions."""
    paths = _paths(positions)
    hypotheses = []
    for row, score in zip(tokens, scores, strict=True):
        ids = tuple(int(token) for token in row if token != types.PAD_ID)
        # A slot without a hypothesis has the score -inf.
        if ids and score > -np.inf:
            path = paths[ids]
            log_prob = positions[len(path) - 1][path[-1]].log_prob
            hypotheses.append(
                RecordedHypothesis(
                    ids=ids,
                    log_prob=log_prob,
                    penalty=penalty(len(ids)),
                    score=float(score),
                    path=path,
                )
            )
    return tuple(hypotheses)


def _paths(
    positions: Sequence[Sequence[Extension]],
) -> dict[tuple[int, ...], tuple[int, ...]]:
    """Return the ids of each finished hypothesis, and of those live at the end."""
    paths = {}
    live: dict[int, tuple[tuple[int, ...], tuple[int, ...]]] = {0: ((), ())}
    for extensions in positions:
        next_live = {}
        for index, extension in enumerate(extensions):
            ids, path = live[extension.parent]
            ids, path = (*ids, extension.token), (*path, index)
            if extension.is_kept:
                paths[ids] = path
            if extension.live is not None:
                next_live[extension.live] = ids, path
        live = next_live
    return paths | dict(live.values())
