"""When a search ends, and what it returns then."""

import itertools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.inference import prefixes
from vaswani_jax.core import types
from vaswani_jax.inference import beam_search


@pytest.mark.parametrize("alpha", prefixes.ALPHAS)
def test_unfinished_hypotheses_are_returned_whole(alpha: float) -> None:
    B = 12
    logits = prefixes.random_logits(7, B=B, end_bonus=-np.inf)
    max_lengths = np.arange(B) % prefixes.LONGEST + 1
    found = prefixes.search(logits, max_lengths, W=prefixes.WIDE, alpha=alpha)
    tables = prefixes.log_probabilities(logits)
    expected = []
    for b in range(B):
        length = int(max_lengths[b])
        outputs = itertools.product(prefixes.WORDS, repeat=length)
        total, tokens = max(
            (prefixes.log_probability(tables[b], y), y) for y in outputs
        )
        expected.append((total / prefixes.penalty(length, alpha), tokens))
    prefixes.assert_finds(found, expected)


def test_the_search_stops_once_nothing_can_overtake() -> None:
    """The end mark has the probability 0.99 from position 0 in one sentence, 2 in the
    other: after three of six positions both are settled."""
    visited: list[int] = []

    def step(tokens: Any, state: Any, position: Any) -> tuple[Any, Any]:
        jax.debug.callback(lambda position: visited.append(int(position)), position)
        ends = jnp.where(position >= jnp.array([0, 2]), 0.99, 0.01)[:, None, None]
        rest = jnp.broadcast_to((1 - ends) / (prefixes.V - 1), (2, 3, prefixes.V))
        return jnp.log(rest.at[..., types.EOS_ID].set(ends[..., 0])), state

    options = beam_search.SearchOptions(
        beam_size=3, alpha=0.6, buffer_lengths=(2, 6), max_length=6
    )
    stepper = beam_search.Stepper(step, lambda state, origin: state)
    found = beam_search.beam_search(stepper, (), jnp.array([6, 6]), options)
    jax.effects_barrier()
    assert sorted(visited) == [0, 1, 2]
    assert found.tokens[0, 0].tolist() == [types.EOS_ID, 0, 0, 0, 0, 0]


@pytest.mark.parametrize("W", [1, 3])
def test_a_sentence_does_not_depend_on_its_neighbours(W: int) -> None:
    B, alpha = 12, 0.6
    logits = prefixes.random_logits(8, B=B)
    # Some end at once, others never.
    logits[::3, :, types.EOS_ID] += 5
    logits[1::3, :, types.EOS_ID] = -np.inf
    max_lengths = np.array(3 * [4, 2, 3, 1])
    together = prefixes.search(logits, max_lengths, W=W, alpha=alpha)
    for b in range(B):
        alone = prefixes.search(
            logits[b : b + 1], max_lengths[b : b + 1], W=W, alpha=alpha
        )
        np.testing.assert_array_equal(alone.tokens[0], together.tokens[b])
        np.testing.assert_allclose(alone.scores[0], together.scores[b], rtol=1e-6)


def test_each_output_is_at_most_as_long_as_its_sentence_allows() -> None:
    max_lengths = np.array([0, 1, 2, 3, 4, 0, 4, 1])
    logits = prefixes.random_logits(9, B=8, end_bonus=-3.0)
    found = prefixes.search(logits, max_lengths, W=2, alpha=0.6)
    lengths = (np.asarray(found.tokens) != types.PAD_ID).sum(axis=-1)
    assert (lengths <= max_lengths[:, None]).all()
    assert (lengths[:, 0] == 0).tolist() == (max_lengths == 0).tolist()
    none = prefixes.search(logits, np.zeros(8, np.int32), W=2, alpha=0.6)
    assert not none.tokens.any()
