"""A search over a table of logits of every prefix, and what it must find."""

import functools
import itertools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from vaswani_jax.core import types
from vaswani_jax.inference import beam_search

# Padding, begin, end, and the words 3, 4 and 5.
V, WORDS, LONGEST = 6, (3, 4, 5), 4
NUM_PREFIXES = sum(3**length for length in range(LONGEST))
# More than all extensions of all prefixes: nothing is ever dropped.
WIDE = NUM_PREFIXES * 2
ALPHAS = [0.0, 0.6, 1.0, 3.0]
Prefix = tuple[int, ...]


def extended(code: Any, token: Any) -> Any:
    """The number of a prefix with one more word; that of the empty prefix is 0."""
    return code * len(WORDS) + token - WORDS[0] + 1


def number(prefix: Prefix) -> int:
    return functools.reduce(extended, prefix, 0)


def random_logits(seed: int, *, B: int, end_bonus: float = 0.0) -> np.ndarray:
    """Logits [B, prefix, V] that allow the words and the end mark alone."""
    logits = 2 * np.random.default_rng(seed).standard_normal((B, NUM_PREFIXES, V))
    logits[..., types.EOS_ID] += end_bonus
    logits[..., [types.PAD_ID, types.BOS_ID]] = -np.inf
    return logits.astype(np.float32)


def step(tokens: Any, state: Any, position: Any) -> tuple[Any, Any]:
    """The state is the table of logits, and the number of each hypothesis."""
    logits, codes = state
    codes = jnp.where(position == 0, 0, extended(codes, tokens))
    # A hypothesis that has ended or never was has no prefix: any will do.
    codes = jnp.clip(codes, 0, NUM_PREFIXES - 1)
    next_logits = jnp.take_along_axis(logits, codes[..., None], axis=1)
    return next_logits, (logits, codes)


def reorder(state: Any, origin: Any) -> Any:
    logits, codes = state
    return logits, jnp.take_along_axis(codes, origin, axis=1)


STEPPER = beam_search.Stepper(step, reorder)


def initial_state(logits: Any, *, W: int) -> Any:
    return logits, jnp.zeros((logits.shape[0], W), jnp.int32)


def options(**changes: Any) -> beam_search.SearchOptions:
    # Most of a batch is finished in parts, as few sentences are done by then.
    defaults = {"buffer_lengths": (1, 2), "max_length": LONGEST}
    return beam_search.SearchOptions(
        beam_size=changes.pop("W"), **{**defaults, **changes}
    )


@functools.partial(jax.jit, static_argnames=("W", "n_best"))
def search(
    logits: jax.Array,
    max_lengths: jax.Array,
    *,
    W: int,
    alpha: float,
    n_best: int = 1,
) -> types.Hypotheses:
    """Search with one alpha for all sentences; another alpha compiles nothing."""
    return beam_search.beam_search(
        STEPPER,
        initial_state(logits, W=W),
        max_lengths=max_lengths,
        options=options(W=W, alpha=0.0, n_best=n_best),
        alpha=jnp.full(logits.shape[0], alpha, jnp.float32),
    )


def log_probabilities(logits: np.ndarray) -> np.ndarray:
    logits = np.float64(logits)
    return logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))


def log_probability(table: np.ndarray, tokens: Prefix) -> float:
    return sum(
        table[number(tokens[:index]), token] for index, token in enumerate(tokens)
    )


def penalty(length: int, alpha: float) -> float:
    return ((5 + length) / 6) ** alpha


def all_finished(max_length: int) -> list[Prefix]:
    return [
        (*words, types.EOS_ID)
        for length in range(max_length)
        for words in itertools.product(WORDS, repeat=length)
    ]


def best_of_all(
    table: np.ndarray, max_length: int, alpha: float
) -> tuple[float, Prefix]:
    """The best finished hypothesis, every one of them tried."""
    return max(
        (log_probability(table, tokens) / penalty(len(tokens), alpha), tokens)
        for tokens in all_finished(max_length)
    )


def plain_search(
    log_probs_after: Callable[[Prefix], np.ndarray],
    max_length: int,
    *,
    W: int,
    alpha: float,
) -> tuple[float, Prefix]:
    """Beam search with lists, always run to the end."""
    live: list[tuple[float, Prefix]] = [(0.0, ())]
    finished = []
    for position in range(max_length):
        candidates = [
            (total + log_probs_after(prefix)[token], (*prefix, token))
            for total, prefix in live
            for token in (types.EOS_ID, *WORDS)
        ]
        candidates.sort(reverse=True)
        for total, tokens in candidates[:W]:
            if tokens[-1] == types.EOS_ID:
                finished.append((total / penalty(position + 1, alpha), tokens))
        live = [each for each in candidates if each[1][-1] != types.EOS_ID][:W]
    if finished:
        return max(finished)
    return live[0][0] / penalty(max_length, alpha), live[0][1]


def padded(tokens: Prefix) -> list[int]:
    return [*tokens, *[types.PAD_ID] * (LONGEST - len(tokens))]


def assert_finds(
    hypotheses: types.Hypotheses, expected: list[tuple[float, Prefix]]
) -> None:
    scores, sentences = zip(*expected, strict=True)
    np.testing.assert_array_equal(
        hypotheses.tokens[:, 0], [padded(s) for s in sentences]
    )
    # A log-probability near 0 is the difference of two larger float32 numbers.
    np.testing.assert_allclose(hypotheses.scores[:, 0], scores, rtol=1e-5, atol=1e-6)
