"""Draws against NumPy's, and against the probabilities they should have."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from vaswani_jax.core import types
from vaswani_jax.inference import beam_search, sampling

V = 12


def renormalised(probabilities: np.ndarray, top_k: int, top_p: float) -> np.ndarray:
    """Return the distribution that is drawn from, by a loop over the likeliest."""
    left = np.zeros_like(probabilities)
    total = 0.0
    for rank, token in enumerate(np.argsort(-probabilities, kind="stable")):
        if total >= top_p or (top_k and rank >= top_k):
            break
        left[token] = probabilities[token]
        total += probabilities[token]
    return left / left.sum()


@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.0])
@pytest.mark.parametrize(("top_k", "top_p"), [(0, 1.0), (3, 1.0), (0, 0.7), (4, 0.5)])
def test_evenly_spread_points_draw_each_token_by_its_probability(
    temperature: float, top_k: int, top_p: float
) -> None:
    logits = np.random.default_rng(1).standard_normal(V).astype(np.float32) * 2
    logits[types.PAD_ID] = -np.inf
    points = (np.arange(10_000) + 0.5) / 10_000
    drawn = sampling.draw(
        jnp.broadcast_to(jnp.asarray(logits), (1, points.size, V)),
        jnp.asarray(points[None], jnp.float32),
        distribution=sampling.Distribution(
            temperature=temperature, top_k=top_k, top_p=top_p
        ),
    )
    weights = np.exp(np.float64(logits) / temperature)
    expected = renormalised(weights / weights.sum(), top_k, top_p)
    shares = np.bincount(np.asarray(drawn)[0], minlength=V) / points.size
    np.testing.assert_allclose(shares, expected, atol=3e-4)
    assert shares[types.PAD_ID] == 0


def test_a_point_next_to_one_draws_what_is_allowed() -> None:
    logits = jnp.log(jnp.array([[[0.0, 0.3, 0.3, 0.4]]]))
    almost = jnp.array([[np.nextafter(np.float32(1), np.float32(0))]])
    drawn = sampling.draw(logits, almost, distribution=sampling.Distribution(top_k=2))
    assert drawn.tolist() == [[1]]


def chain(
    tokens: jax.Array, state: None, position: jax.Array
) -> tuple[jax.Array, None]:
    """P(end) = 0.25, P(3) = 0.5, P(4) = 0.25 after anything."""
    logits = jnp.log(jnp.array([0.0, 0.0, 0.25, 0.5, 0.25]))
    return jnp.broadcast_to(logits, (*tokens.shape, 5)), state


def sample(numbers: list[int], *, W: int, max_length: int = 6) -> types.Hypotheses:
    keys = jax.vmap(jax.random.key)(jnp.asarray(numbers))
    return sampling.sample(
        beam_search.Stepper(chain, lambda state, origin: state),
        None,
        max_lengths=jnp.full(len(numbers), max_length),
        keys=keys,
        options=beam_search.SearchOptions(
            beam_size=W,
            alpha=0.6,
            buffer_lengths=(2, max_length),
            max_length=max_length,
        ),
        distribution=sampling.Distribution(),
    )


def test_lengths_and_words_have_the_chains_probabilities() -> None:
    hypotheses = sample([1, 2], W=4000)
    tokens = np.asarray(hypotheses.tokens).reshape(-1, 6)
    lengths = (tokens != types.PAD_ID).sum(axis=1)
    for length in range(1, 6):
        share = (lengths == length).mean()
        expected = 0.25 * 0.75 ** (length - 1)
        # Four standard deviations of 8000 draws.
        assert abs(share - expected) < 4 * np.sqrt(expected / 8000)
    words = tokens[tokens > types.EOS_ID]
    assert abs((words == 3).mean() - 2 / 3) < 0.02
    assert ((tokens == types.EOS_ID).sum(axis=1) == (lengths < 6)).sum() >= 0.7 * 8000
    # Positions draw independently: the second word does not follow the first.
    both = tokens[(tokens[:, :2] > types.EOS_ID).all(axis=1)]
    same = (both[:, 0] == both[:, 1]).mean()
    assert abs(same - (4 / 9 + 1 / 9)) < 0.03


def test_scores_are_the_chains_log_probabilities_over_the_penalty() -> None:
    hypotheses = sample([3], W=50)
    for tokens, score in zip(
        hypotheses.tokens[0].tolist(), hypotheses.scores[0], strict=True
    ):
        chances = {types.EOS_ID: 0.25, 3: 0.5, 4: 0.25, types.PAD_ID: 1.0}
        total = sum(np.log(chances[token]) for token in tokens)
        length = sum(token != types.PAD_ID for token in tokens)
        penalty = float(beam_search.length_penalty(float(length), 0.6))
        np.testing.assert_allclose(score, total / penalty, rtol=1e-5)


def test_a_number_draws_the_same_beside_any_other() -> None:
    together, alone = sample([5, 6, 7], W=8), sample([6], W=8)
    np.testing.assert_array_equal(together.tokens[1], alone.tokens[0])
    assert (together.tokens[0] != together.tokens[1]).any()
