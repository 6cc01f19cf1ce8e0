"""Beam search against brute force, a plain search in Python and known answers.

The logits depend on the whole prefix, which the search's state carries as a number:
a state that is permuted wrongly gives the logits of another prefix.
"""

import functools
import itertools
import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests import settings
from vaswani_jax.core import types
from vaswani_jax.inference import beam_search, extensions
from vaswani_jax.model import transformer

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


@functools.partial(jax.jit, static_argnames=("W", "alpha", "num_hypotheses"))
def search(
    logits: jax.Array,
    max_lengths: jax.Array,
    *,
    W: int,
    alpha: float,
    num_hypotheses: int = 1,
) -> types.Hypotheses:
    B = logits.shape[0]

    def step(tokens: Any, state: Any, position: Any) -> tuple[Any, Any]:
        logits, codes = state
        codes = jnp.where(position == 0, 0, extended(codes, tokens))
        # A hypothesis that has ended or never was has no prefix: any will do.
        codes = jnp.clip(codes, 0, NUM_PREFIXES - 1)
        found = jnp.take_along_axis(logits, codes[..., None], axis=1)
        return found, (logits, codes)

    def reorder(state: Any, origin: Any) -> Any:
        logits, codes = state
        return logits, jnp.take_along_axis(codes, origin, axis=1)

    return beam_search.beam_search(
        step,
        (logits, jnp.zeros((B, W), jnp.int32)),
        reorder,
        max_lengths,
        beam_size=W,
        alpha=alpha,
        # Most of a batch goes on in parts, as few have finished by then.
        buffer_lengths=(1, 2),
        longest=LONGEST,
        num_hypotheses=num_hypotheses,
    )


def log_probabilities(logits: np.ndarray) -> np.ndarray:
    logits = np.float64(logits)
    return logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))


def log_probability(table: np.ndarray, tokens: Prefix) -> float:
    return sum(
        table[number(tokens[:place]), token] for place, token in enumerate(tokens)
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
        live = [found for found in candidates if found[1][-1] != types.EOS_ID][:W]
    if finished:
        return max(finished)
    return live[0][0] / penalty(max_length, alpha), live[0][1]


def padded(tokens: Prefix) -> list[int]:
    return [*tokens, *[types.PAD_ID] * (LONGEST - len(tokens))]


def assert_finds(found: types.Hypotheses, expected: list[tuple[float, Prefix]]) -> None:
    scores, sentences = zip(*expected, strict=True)
    np.testing.assert_array_equal(found.tokens[:, 0], [padded(s) for s in sentences])
    # A log-probability near 0 is the difference of two larger float32 numbers.
    np.testing.assert_allclose(found.scores[:, 0], scores, rtol=1e-5, atol=1e-6)


def test_length_penalty_is_1_for_one_token_and_counts_the_end_mark() -> None:
    lengths = np.array([1, 7, 13, 25])
    for alpha in ALPHAS:
        expected = [1, 2**alpha, 3**alpha, 5**alpha]
        found = [beam_search.length_penalty(float(n), alpha) for n in lengths]
        np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.parametrize("alpha", ALPHAS)
def test_a_wide_beam_finds_the_best_of_all_outputs(alpha: float) -> None:
    B = 40
    logits = random_logits(0, B=B)
    max_lengths = np.arange(B) % LONGEST + 1
    found = search(logits, max_lengths, W=WIDE, alpha=alpha)
    tables = log_probabilities(logits)
    expected = [best_of_all(tables[b], max_lengths[b], alpha) for b in range(B)]
    assert_finds(found, expected)
    # Outputs of many lengths, or the test would show little.
    lengths = {len(tokens) for _, tokens in expected}
    assert len(lengths) >= 3


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("W", [1, 2, 3])
def test_a_narrow_beam_finds_what_a_plain_search_to_the_end_finds(
    W: int, alpha: float
) -> None:
    """So stopping early, or beside slower neighbours, never changes an answer."""
    B = 200
    logits = random_logits(W, B=B)
    max_lengths = np.arange(B) % LONGEST + 1
    found = search(logits, max_lengths, W=W, alpha=alpha)
    tables = log_probabilities(logits)
    expected = [
        plain_search(
            lambda prefix, table=tables[b]: table[number(prefix)],
            max_lengths[b],
            W=W,
            alpha=alpha,
        )
        for b in range(B)
    ]
    assert_finds(found, expected)
    # The plain search is not exhaustive, so this was no second brute force.
    exact = [best_of_all(tables[b], max_lengths[b], alpha) for b in range(B)]
    assert any(one[1] != other[1] for one, other in zip(expected, exact, strict=True))


def test_one_beam_without_penalty_is_greedy() -> None:
    B = 50
    logits = random_logits(5, B=B)
    found = search(logits, np.full(B, LONGEST), W=1, alpha=0.0)
    for b in range(B):
        tokens: Prefix = ()
        while len(tokens) < LONGEST and types.EOS_ID not in tokens:
            tokens = (*tokens, int(logits[b, number(tokens)].argmax()))
        assert found.tokens[b, 0].tolist() == padded(tokens)


def markov_logits() -> np.ndarray:
    """3 is the likelier start, but from there no path is; after 4 the end is near.

    P(3) = 0.6, P(4) = 0.4; P(end|3) = 0.3, P(3|3) = P(4|3) = 0.35; P(end|4) = 0.9,
    P(5|4) = 0.1; P(end|5) = 1.
    """
    after = {
        None: {3: 0.6, 4: 0.4},
        3: {types.EOS_ID: 0.3, 3: 0.35, 4: 0.35},
        4: {types.EOS_ID: 0.9, 5: 0.1},
        5: {types.EOS_ID: 1.0},
    }
    logits = np.full((1, NUM_PREFIXES, V), -np.inf, np.float32)
    for length in range(LONGEST):
        for prefix in itertools.product(WORDS, repeat=length):
            for token, probability in after[prefix[-1] if prefix else None].items():
                logits[0, number(prefix), token] = math.log(probability)
    return logits


def test_a_chain_whose_best_path_is_known_and_not_greedy() -> None:
    end = types.EOS_ID
    full = np.array([LONGEST])
    two = search(markov_logits(), full, W=2, alpha=0.0)
    assert_finds(two, [(math.log(0.4 * 0.9), (4, end))])
    # 3 ends with 0.18, 3 4 ends with 0.189 and 4 5 with 0.04; greedy takes 3 3 ...
    greedy = search(markov_logits(), full, W=1, alpha=0.0)
    assert greedy.tokens[0, 0, 0] == 3
    # |Y| = 2 has the penalty 7/6 and |Y| = 3 has 8/6 at alpha 1.
    penalised = search(markov_logits(), full, W=2, alpha=1.0)
    assert_finds(penalised, [(math.log(0.4 * 0.9) / (7 / 6), (4, end))])
    # At alpha 6 longer is better: log 0.189 / (8/6)^6 > log 0.36 / (7/6)^6.
    longer = search(markov_logits(), np.array([3]), W=WIDE, alpha=6.0)
    assert_finds(longer, [(math.log(0.6 * 0.35 * 0.9) / (8 / 6) ** 6, (3, 4, end))])


def test_hypotheses_come_best_first_each_once_with_its_score() -> None:
    alpha = 1.0
    logits = random_logits(6, B=20)
    tables = log_probabilities(logits)
    found = search(logits, np.full(20, LONGEST), W=3, alpha=alpha)
    for b in range(20):
        scores = np.asarray(found.scores[b])
        assert (np.diff(scores[np.isfinite(scores)]) <= 0).all()
        seen = set()
        for tokens, score in zip(found.tokens[b].tolist(), scores, strict=True):
            if score > -np.inf:
                length = tokens.index(types.EOS_ID) + 1
                assert tokens == padded(tuple(tokens[:length]))
                total = log_probability(tables[b], tuple(tokens[:length]))
                expected = total / penalty(length, alpha)
                np.testing.assert_allclose(score, expected, rtol=1e-5, atol=1e-6)
                seen.add(tuple(tokens))
        assert len(seen) == np.isfinite(scores).sum() >= 1


@pytest.mark.parametrize("alpha", ALPHAS)
def test_more_hypotheses_are_the_best_and_leave_the_first_as_it_is(
    alpha: float,
) -> None:
    B, W = 60, 5
    logits = random_logits(10, B=B, end_bonus=1.0)
    max_lengths = np.arange(B) % LONGEST + 1
    one = search(logits, max_lengths, W=W, alpha=alpha)
    several = search(logits, max_lengths, W=W, alpha=alpha, num_hypotheses=W)
    np.testing.assert_array_equal(one.tokens[:, 0], several.tokens[:, 0])
    np.testing.assert_array_equal(one.scores[:, 0], several.scores[:, 0])
    # What was found on the way to the first is not all.
    assert (one.scores != several.scores).any()
    wide = search(logits, max_lengths, W=WIDE, alpha=alpha, num_hypotheses=3)
    tables = log_probabilities(logits)
    for b in range(B):
        ranked = sorted(
            (
                (
                    log_probability(tables[b], tokens) / penalty(len(tokens), alpha),
                    tokens,
                )
                for tokens in all_finished(int(max_lengths[b]))
            ),
            reverse=True,
        )[:3]
        found = [tuple(filter(None, ids)) for ids in wide.tokens[b, :3].tolist()]
        assert found[: len(ranked)] == [tokens for _, tokens in ranked]


@pytest.mark.parametrize("V", [5, 127, 128, 129, 6000, 32000])
def test_the_likeliest_extensions_are_those_of_a_full_sort(V: int) -> None:
    B, W = 3, 4
    generator = np.random.default_rng(V)
    # Integers: equal ones abound, and the first of them comes first.
    logits = generator.integers(0, V, (B, W, V)).astype(np.float32)
    offset = generator.integers(-V, 0, (B, W, 1)).astype(np.float32)
    # One beam is impossible, and what may be forbidden is the likeliest.
    offset[0, 2] = -np.inf
    logits[:, :, : types.EOS_ID + 1] = 2 * V
    logits[1, 1, -1] = V
    found = extensions.likeliest(jnp.asarray(logits), jnp.asarray(offset), count=2 * W)
    total = logits + offset
    total[:, :, : types.EOS_ID + 1] = -np.inf
    flat = total.reshape(B, W * V)
    expected = np.argsort(-flat, axis=-1, kind="stable")[:, : 2 * W]
    places = np.asarray(found.places)
    log_probs = np.where(places % V <= types.EOS_ID, -np.inf, found.log_probs)
    for b in range(B):
        order = np.argsort(-log_probs[b], kind="stable")[: 2 * W]
        best = np.take(flat[b], expected[b])
        np.testing.assert_array_equal(log_probs[b][order], best)
        finite = np.isfinite(best)
        np.testing.assert_array_equal(places[b][order][finite], expected[b][finite])


@pytest.mark.parametrize("alpha", ALPHAS)
def test_unfinished_hypotheses_are_returned_whole(alpha: float) -> None:
    B = 12
    logits = random_logits(7, B=B, end_bonus=-np.inf)
    max_lengths = np.arange(B) % LONGEST + 1
    found = search(logits, max_lengths, W=WIDE, alpha=alpha)
    tables = log_probabilities(logits)
    expected = []
    for b in range(B):
        length = int(max_lengths[b])
        outputs = itertools.product(WORDS, repeat=length)
        total, tokens = max((log_probability(tables[b], y), y) for y in outputs)
        expected.append((total / penalty(length, alpha), tokens))
    assert_finds(found, expected)


def test_the_search_stops_once_nothing_can_overtake() -> None:
    """The end mark has the probability 0.99 from position 0 in one sentence, 2 in the
    other: after three of six positions both are settled."""
    visited: list[int] = []

    def step(tokens: Any, state: Any, position: Any) -> tuple[Any, Any]:
        jax.debug.callback(lambda position: visited.append(int(position)), position)
        ends = jnp.where(position >= jnp.array([0, 2]), 0.99, 0.01)[:, None, None]
        rest = jnp.broadcast_to((1 - ends) / (V - 1), (2, 3, V))
        return jnp.log(rest.at[..., types.EOS_ID].set(ends[..., 0])), state

    found = beam_search.beam_search(
        step,
        (),
        lambda state, origin: state,
        jnp.array([6, 6]),
        beam_size=3,
        alpha=0.6,
        buffer_lengths=(2, 6),
        longest=6,
    )
    jax.effects_barrier()
    assert sorted(visited) == [0, 1, 2]
    assert found.tokens[0, 0].tolist() == [types.EOS_ID, 0, 0, 0, 0, 0]


@pytest.mark.parametrize("W", [1, 3])
def test_a_sentence_does_not_depend_on_its_neighbours(W: int) -> None:
    B, alpha = 12, 0.6
    logits = random_logits(8, B=B)
    # Some end at once, others never.
    logits[::3, :, types.EOS_ID] += 5
    logits[1::3, :, types.EOS_ID] = -np.inf
    max_lengths = np.array(3 * [4, 2, 3, 1])
    together = search(logits, max_lengths, W=W, alpha=alpha)
    for b in range(B):
        alone = search(logits[b : b + 1], max_lengths[b : b + 1], W=W, alpha=alpha)
        np.testing.assert_array_equal(alone.tokens[0], together.tokens[b])
        np.testing.assert_allclose(alone.scores[0], together.scores[b], rtol=1e-6)


def test_each_output_is_at_most_as_long_as_its_sentence_allows() -> None:
    max_lengths = np.array([0, 1, 2, 3, 4, 0, 4, 1])
    logits = random_logits(9, B=8, end_bonus=-3.0)
    found = search(logits, max_lengths, W=2, alpha=0.6)
    lengths = (np.asarray(found.tokens) != types.PAD_ID).sum(axis=-1)
    assert (lengths <= max_lengths[:, None]).all()
    assert (lengths[:, 0] == 0).tolist() == (max_lengths == 0).tolist()
    none = search(logits, np.zeros(8, np.int32), W=2, alpha=0.6)
    assert not none.tokens.any()


def test_a_model_s_search_finds_what_full_passes_find() -> None:
    """Cache, permutation and lengths together, against passes over whole prefixes."""
    W, alpha, extra, S = 3, 0.6, 5, 3
    sizes = {"beam_size": W, "length_penalty": alpha, "max_extra_tokens": extra}
    settings_ = settings.small_settings(
        **{f"search.{key}": size for key, size in sizes.items()}
    )
    source = np.array([[3, 5, 2], [4, 2, 0], [0, 0, 0]], np.int32)
    run = jax.jit(settings.search_of(settings_, vocab_size=V))

    @jax.jit
    def full_pass(params: Any, source: jax.Array, target_in: jax.Array) -> jax.Array:
        return transformer.Transformer(settings_.model, V).apply(
            {"params": params}, source, target_in, deterministic=True
        )

    def expected(params: Any, row: int, max_length: int) -> tuple[float, list[int]]:
        @functools.cache
        def log_probs_after(prefix: Prefix) -> np.ndarray:
            target_in = np.zeros((1, S + extra), np.int32)
            target_in[0, : len(prefix) + 1] = [types.BOS_ID, *prefix]
            logits = full_pass(params, source[row : row + 1], target_in)
            found = log_probabilities(np.array(logits)[0, len(prefix)])
            found[[types.PAD_ID, types.BOS_ID]] = -np.inf
            return found

        score, tokens = plain_search(log_probs_after, max_length, W=W, alpha=alpha)
        return score, [*tokens, *[types.PAD_ID] * (S + extra - len(tokens))]

    lengths = set()
    for seed in range(20):
        params = settings.random_params(settings_.model, vocab_size=V, seed=seed)
        # What was said before must matter, or a wrong cache would not show.
        attention = params["decoder"]["layers_0"]["self_attention"]
        attention["output"]["kernel"] *= 4
        hypotheses = run(params, source)
        found = np.asarray(hypotheses.tokens[:, 0]).tolist()
        for row, length in enumerate((3, 2)):
            score, tokens = expected(params, row, length + extra)
            assert found[row] == tokens
            np.testing.assert_allclose(hypotheses.scores[row, 0], score, rtol=1e-4)
        assert found[2] == [types.PAD_ID] * (S + extra)
        lengths |= {sum(map(bool, row)) for row in found}
    # Some end early, some late, some never.
    assert len(lengths) >= 5
