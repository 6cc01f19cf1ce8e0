"""The tokens that may follow a hypothesis, against loops over plain lists."""

import dataclasses

import jax.numpy as jnp
import numpy as np
import pytest

from tests import settings
from vaswani_jax.core import types
from vaswani_jax.inference import logit_biases

V, B, W, T = 7, 2, 3, 9
SEARCH = settings.small_settings().search
NO_PREFIX = jnp.zeros((B, 0), jnp.int32)


def random_tokens(seed: int) -> np.ndarray:
    """Few words, so that much repeats."""
    return np.random.default_rng(seed).integers(3, 5, (B, W, T)).astype(np.int32)


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_what_would_repeat_n_tokens_is_found(n: int) -> None:
    for position in range(T):
        tokens = random_tokens(10 * n + position)
        tokens[:, :, position:] = types.PAD_ID
        repeats = logit_biases.repeated_ngrams(
            jnp.asarray(tokens), jnp.int32(position), n=n, vocab_size=V
        )
        expected = np.zeros((B, W, V), bool)
        for b, w, token in np.ndindex(B, W, V):
            line = [*tokens[b, w, :position].tolist(), token]
            grams = [tuple(line[i : i + n]) for i in range(len(line) - n + 1)]
            expected[b, w, token] = bool(grams) and grams[-1] in grams[:-1]
        np.testing.assert_array_equal(repeats, expected)


def allowed(prefix: jnp.ndarray, position: int, **changes: int) -> np.ndarray:
    search = dataclasses.replace(SEARCH, **changes)
    logit_bias = logit_biases.make_logit_bias(search, prefix, vocab_size=V)
    tokens = jnp.asarray(random_tokens(1)).at[:, :, position:].set(types.PAD_ID)
    scores = np.asarray(logit_bias(tokens, jnp.arange(B), jnp.int32(position)))
    assert np.isin(scores, [0, -np.inf]).all()
    return np.broadcast_to(scores == 0, (B, W, V))


def test_each_sentence_begins_with_its_prefix_and_then_is_free() -> None:
    prefix = jnp.array([[5, 6, 3], [4, 0, 0]])
    for position, prefix_tokens in ((0, (5, 4)), (1, (6, None)), (2, (3, None))):
        may_follow = allowed(prefix, position, no_repeat_ngram=1)
        for b, token in enumerate(prefix_tokens):
            if token is not None:
                assert (may_follow[b] == (np.arange(V) == token)).all()
    assert allowed(prefix, 3).all()


def test_the_end_is_never_a_repetition() -> None:
    may_follow = allowed(NO_PREFIX, 8, no_repeat_ngram=1)
    assert may_follow[:, :, types.EOS_ID].all()
    assert not may_follow[:, :, 3:5].all()


def test_without_prefix_and_limit_every_token_may_follow() -> None:
    assert allowed(NO_PREFIX, 8).all()
