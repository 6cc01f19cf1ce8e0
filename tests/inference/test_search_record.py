"""Recorded searches, against the compiled search and tables of every prefix."""

import functools
import itertools
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.inference import prefixes
from tests.inference.test_beam_search import markov_logits
from vaswani_jax.core import types
from vaswani_jax.inference import beam_search, search_record
from vaswani_jax.inference.search_record import SearchRecord

END = types.EOS_ID


def records_of(
    logits: np.ndarray,
    max_lengths: Any,
    *,
    W: int,
    logit_bias: Any = None,
    **options: Any,
) -> list[SearchRecord]:
    max_lengths = jnp.asarray(max_lengths)
    search_options = prefixes.options(W=W, **options)
    T = search_options.max_length

    @jax.jit
    def advance(search: beam_search.Search) -> Any:
        return beam_search.advance(
            search,
            prefixes.STEPPER,
            max_lengths=max_lengths,
            options=search_options,
            logit_bias=logit_bias,
        )

    state = prefixes.STEPPER.resize(prefixes.initial_state(logits, W=W), T)
    search = beam_search.start(max_lengths, state, W=W, T=T)
    return search_record.follow(
        search, advance, max_lengths=max_lengths, options=search_options
    )


def never_twice(tokens: Any, rows: Any, position: Any) -> Any:
    """Forbid the word that was written last."""
    newest = jnp.take(tokens, jnp.maximum(position - 1, 0), axis=2)
    is_newest = jnp.arange(prefixes.V) == newest[:, :, None]
    repeats = is_newest & (position > 0) & (newest[:, :, None] != END)
    return jnp.where(repeats, -jnp.inf, 0.0)


@pytest.mark.parametrize(
    ("W", "options"),
    [
        (1, {"alpha": 0.0}),
        (4, {"alpha": 0.6, "n_best": 3}),
        (4, {"alpha": 1.0, "penalty_form": "power", "min_length": 3}),
        (3, {"alpha": 0.6, "logit_bias": never_twice, "n_best": 2}),
    ],
)
def test_a_record_finds_what_the_search_finds_and_says_how(
    W: int, options: dict[str, Any]
) -> None:
    B = 24
    logits = prefixes.random_logits(W, B=B)
    # Some never end: their longest length is reached.
    logits[::5, :, END] = -np.inf
    max_lengths = np.arange(B) % prefixes.LONGEST + 1
    records = records_of(logits, max_lengths, W=W, **options)
    logit_bias = options.pop("logit_bias", None)
    hypotheses = beam_search.beam_search(
        prefixes.STEPPER,
        prefixes.initial_state(logits, W=W),
        max_lengths=jnp.asarray(max_lengths),
        options=prefixes.options(W=W, **options),
        logit_bias=logit_bias,
    )
    tables = prefixes.log_probabilities(logits)
    penalty = functools.partial(
        beam_search.length_penalty,
        alpha=options["alpha"],
        form=options.get("penalty_form", "paper"),
    )
    for b, record in enumerate(records):
        is_found = np.asarray(hypotheses.scores[b]) > -np.inf
        outputs = np.asarray(hypotheses.tokens[b])[is_found].tolist()
        assert [prefixes.padded(each.ids) for each in record.hypotheses] == outputs
        np.testing.assert_allclose(
            [each.score for each in record.hypotheses],
            np.asarray(hypotheses.scores[b])[is_found],
            rtol=1e-5,
        )
        for hypothesis in record.hypotheses:
            assert walk(record, hypothesis.path) == hypothesis.ids
            total = prefixes.log_probability(tables[b], hypothesis.ids)
            np.testing.assert_allclose(hypothesis.log_prob, total, rtol=1e-5, atol=1e-6)
            length = len(hypothesis.ids)
            np.testing.assert_allclose(
                hypothesis.penalty, penalty(float(length)), rtol=1e-6
            )
            np.testing.assert_allclose(
                hypothesis.score, hypothesis.log_prob / hypothesis.penalty, rtol=1e-5
            )
        check_positions(record, penalty)
        check_end(record, num_settled=options.get("n_best", 1))


def walk(record: SearchRecord, path: tuple[int, ...]) -> tuple[int, ...]:
    """Return the tokens on a path, whose every step extends the one before it."""
    steps = [
        extensions[place]
        for extensions, place in zip(record.positions, path, strict=False)
    ]
    assert len(steps) == len(path)
    for step, following in itertools.pairwise(steps):
        assert step.live == following.parent
    return tuple(step.token for step in steps)


def check_positions(record: SearchRecord, penalty: Any) -> None:
    """Each position extends the live of the one before, and keeps the best."""
    W, num_live = record.options.beam_size, 1
    for position, extensions in enumerate(record.positions):
        assert 1 <= len(extensions) <= 2 * W
        totals = [each.log_prob for each in extensions]
        assert totals == sorted(totals, reverse=True)
        assert all(0 <= each.parent < num_live for each in extensions)
        for each in extensions:
            expected = each.log_prob / float(penalty(position + 1.0))
            assert math.isclose(each.score, expected, rel_tol=1e-5)
        open_ones = [each for each in extensions if each.token != END]
        places = [each.live for each in open_ones]
        assert places == [*range(W), *[None] * (2 * W)][: len(places)]
        num_live = min(W, len(open_ones))
        ended = [n for n, each in enumerate(extensions) if each.token == END]
        assert all(extensions[n].live is None for n in ended)
        # An end is kept only among the W best.
        kept = [n for n, each in enumerate(extensions) if each.is_kept]
        assert set(kept) <= set(ended) and max(kept, default=0) < W


def check_end(record: SearchRecord, *, num_settled: int) -> None:
    """The search stopped for the reason that it gives."""
    if not record.is_settled:
        assert len(record.positions) == record.longest
    else:
        assert record.hypotheses[num_settled - 1].score >= record.reachable
    open_ones = [e.log_prob for e in record.positions[-1] if e.live is not None]
    assert record.live_log_prob == max(open_ones, default=-np.inf)
    np.testing.assert_allclose(
        record.reachable, record.live_log_prob / record.longest_penalty, rtol=1e-6
    )


def test_the_record_of_a_chain_whose_best_path_is_known() -> None:
    [record] = records_of(markov_logits(), [prefixes.LONGEST], W=2, alpha=0.0, n_best=1)
    first, second = record.positions[:2]
    assert [(e.token, e.parent, e.live) for e in first] == [(3, 0, 0), (4, 0, 1)]
    # 0.4 * 0.9, 0.6 * 0.35 twice, 0.6 * 0.3; the last is not among the two best.
    assert [(e.token, e.parent, e.live, e.is_kept) for e in second] == [
        (END, 1, None, True),
        (3, 0, 0, False),
        (4, 0, 1, False),
        (END, 0, None, False),
    ]
    probabilities = [math.exp(e.log_prob) for e in second]
    np.testing.assert_allclose(probabilities, [0.36, 0.21, 0.21, 0.18], rtol=1e-5)
    # Nothing that lives has more than 0.21.
    assert record.is_settled and len(record.positions) == 2
    assert record.hypotheses[0].ids == (4, END)
    assert record.hypotheses[0].path == (1, 0)
    np.testing.assert_allclose(math.exp(record.reachable), 0.21, rtol=1e-5)


def test_a_sentence_without_room_has_no_positions() -> None:
    logits = prefixes.random_logits(1, B=2)
    none, some = records_of(logits, [0, 2], W=2, alpha=0.6)
    assert none.positions == none.hypotheses == ()
    assert some.positions and some.hypotheses
