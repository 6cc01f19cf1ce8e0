"""The hypotheses of a search, against all possible ones and a search with lists."""

import functools
import itertools
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests import settings
from tests.inference import prefixes
from vaswani_jax.core import types
from vaswani_jax.inference import beam_search
from vaswani_jax.model import transformer

# Sentences of a narrow beam, and of a wide one: a search is compiled for each number.
B, B_WIDE = 200, 40


def test_length_penalty_is_1_for_one_token_and_counts_the_end_mark() -> None:
    lengths = np.array([1, 7, 13, 25])
    for alpha in prefixes.ALPHAS:
        expected = [1, 2**alpha, 3**alpha, 5**alpha]
        penalties = [beam_search.length_penalty(float(n), alpha) for n in lengths]
        np.testing.assert_allclose(penalties, expected, rtol=1e-6)


@pytest.mark.parametrize("alpha", prefixes.ALPHAS)
def test_a_wide_beam_finds_the_best_of_all_outputs(alpha: float) -> None:
    logits = prefixes.random_logits(0, B=B_WIDE)
    max_lengths = np.arange(B_WIDE) % prefixes.LONGEST + 1
    hypotheses = prefixes.search(logits, max_lengths, W=prefixes.WIDE, alpha=alpha)
    tables = prefixes.log_probabilities(logits)
    expected = [
        prefixes.best_of_all(tables[b], max_lengths[b], alpha) for b in range(B_WIDE)
    ]
    prefixes.assert_finds(hypotheses, expected)
    # Outputs of many lengths, or the test would show little.
    lengths = {len(tokens) for _, tokens in expected}
    assert len(lengths) >= 3


@pytest.mark.parametrize("alpha", prefixes.ALPHAS)
@pytest.mark.parametrize("W", [1, 2, 3])
def test_a_narrow_beam_finds_what_a_plain_search_to_the_end_finds(
    W: int, alpha: float
) -> None:
    """So stopping early, or beside slower neighbours, never changes an answer."""
    logits = prefixes.random_logits(W, B=B)
    max_lengths = np.arange(B) % prefixes.LONGEST + 1
    hypotheses = prefixes.search(logits, max_lengths, W=W, alpha=alpha)
    tables = prefixes.log_probabilities(logits)
    expected = [
        prefixes.plain_search(
            lambda prefix, table=tables[b]: table[prefixes.number(prefix)],
            max_lengths[b],
            W=W,
            alpha=alpha,
        )
        for b in range(B)
    ]
    prefixes.assert_finds(hypotheses, expected)
    # The plain search is not exhaustive, so this was no second brute force.
    exact = [prefixes.best_of_all(tables[b], max_lengths[b], alpha) for b in range(B)]
    assert any(plain[1] != best[1] for plain, best in zip(expected, exact, strict=True))


def test_one_beam_without_penalty_is_greedy() -> None:
    logits = prefixes.random_logits(5, B=B)
    hypotheses = prefixes.search(logits, np.full(B, prefixes.LONGEST), W=1, alpha=0.0)
    for b in range(B):
        tokens: prefixes.Prefix = ()
        while len(tokens) < prefixes.LONGEST and types.EOS_ID not in tokens:
            tokens = (*tokens, int(logits[b, prefixes.number(tokens)].argmax()))
        assert hypotheses.tokens[b, 0].tolist() == prefixes.padded(tokens)


def markov_logits() -> np.ndarray:
    """3 is the likelier start, but from there no path is; after 4 the end is near.

    P(3) = 0.6, P(4) = 0.4; P(end|3) = 0.3, P(3|3) = P(4|3) = 0.35; P(end|4) = 0.9,
    P(5|4) = 0.1; P(end|5) = 1.
    """
    next_word = {
        None: {3: 0.6, 4: 0.4},
        3: {types.EOS_ID: 0.3, 3: 0.35, 4: 0.35},
        4: {types.EOS_ID: 0.9, 5: 0.1},
        5: {types.EOS_ID: 1.0},
    }
    logits = np.full((1, prefixes.NUM_PREFIXES, prefixes.V), -np.inf, np.float32)
    for length in range(prefixes.LONGEST):
        for prefix in itertools.product(prefixes.WORDS, repeat=length):
            for token, probability in next_word[prefix[-1] if prefix else None].items():
                logits[0, prefixes.number(prefix), token] = math.log(probability)
    return logits


def test_a_chain_whose_best_path_is_known_and_not_greedy() -> None:
    end = types.EOS_ID
    logits = np.repeat(markov_logits(), B, axis=0)
    full = np.full(B, prefixes.LONGEST)
    two = prefixes.search(logits, full, W=2, alpha=0.0)
    prefixes.assert_finds(two, [(math.log(0.4 * 0.9), (4, end))] * B)
    # 3 ends with 0.18, 3 4 ends with 0.189 and 4 5 with 0.04; greedy takes 3 3 ...
    greedy = prefixes.search(logits, full, W=1, alpha=0.0)
    assert (greedy.tokens[:, 0, 0] == 3).all()
    # |Y| = 2 has the penalty 7/6 and |Y| = 3 has 8/6 at alpha 1.
    penalised = prefixes.search(logits, full, W=2, alpha=1.0)
    prefixes.assert_finds(penalised, [(math.log(0.4 * 0.9) / (7 / 6), (4, end))] * B)
    # At alpha 6 longer is better: log 0.189 / (8/6)^6 > log 0.36 / (7/6)^6.
    longer = prefixes.search(
        logits[:B_WIDE], np.full(B_WIDE, 3), W=prefixes.WIDE, alpha=6.0
    )
    prefixes.assert_finds(
        longer, [(math.log(0.6 * 0.35 * 0.9) / (8 / 6) ** 6, (3, 4, end))] * B_WIDE
    )


def test_hypotheses_come_best_first_each_once_with_its_score() -> None:
    longest, alpha = prefixes.LONGEST, 1.0
    logits = prefixes.random_logits(6, B=B)
    tables = prefixes.log_probabilities(logits)
    hypotheses = prefixes.search(logits, np.full(B, longest), W=3, alpha=alpha)
    for b in range(B):
        scores = np.asarray(hypotheses.scores[b])
        assert (np.diff(scores[np.isfinite(scores)]) <= 0).all()
        different = set()
        for tokens, score in zip(hypotheses.tokens[b].tolist(), scores, strict=True):
            if score > -np.inf:
                # Where nothing ended, each hypothesis is as long as it may be.
                length = min([*tokens, types.EOS_ID].index(types.EOS_ID) + 1, longest)
                assert tokens == prefixes.padded(tuple(tokens[:length]))
                total = prefixes.log_probability(tables[b], tuple(tokens[:length]))
                expected = total / prefixes.penalty(length, alpha)
                np.testing.assert_allclose(score, expected, rtol=1e-5, atol=1e-6)
                different.add(tuple(tokens))
        assert len(different) == np.isfinite(scores).sum() >= 1


@pytest.mark.parametrize("alpha", prefixes.ALPHAS)
def test_more_hypotheses_are_the_best_and_leave_the_first_as_it_is(
    alpha: float,
) -> None:
    B, W = 60, 5
    logits = prefixes.random_logits(10, B=B, end_bonus=1.0)
    max_lengths = np.arange(B) % prefixes.LONGEST + 1
    best = prefixes.search(logits, max_lengths, W=W, alpha=alpha)
    n_best = prefixes.search(logits, max_lengths, W=W, alpha=alpha, n_best=W)
    np.testing.assert_array_equal(best.tokens[:, 0], n_best.tokens[:, 0])
    np.testing.assert_array_equal(best.scores[:, 0], n_best.scores[:, 0])
    # Those hypotheses on the way to the best are not all.
    assert (best.scores != n_best.scores).any()
    wide = prefixes.search(logits, max_lengths, W=prefixes.WIDE, alpha=alpha, n_best=3)
    tables = prefixes.log_probabilities(logits)
    for b in range(B):
        ranked = sorted(
            (
                (
                    prefixes.log_probability(tables[b], tokens)
                    / prefixes.penalty(len(tokens), alpha),
                    tokens,
                )
                for tokens in prefixes.all_finished(int(max_lengths[b]))
            ),
            reverse=True,
        )[:3]
        outputs = [tuple(filter(None, ids)) for ids in wide.tokens[b, :3].tolist()]
        assert outputs[: len(ranked)] == [tokens for _, tokens in ranked]


@pytest.mark.parametrize("alpha", prefixes.ALPHAS)
def test_unfinished_hypotheses_are_returned_whole(alpha: float) -> None:
    logits = prefixes.random_logits(7, B=B_WIDE, end_bonus=-np.inf)
    max_lengths = np.arange(B_WIDE) % prefixes.LONGEST + 1
    hypotheses = prefixes.search(logits, max_lengths, W=prefixes.WIDE, alpha=alpha)
    tables = prefixes.log_probabilities(logits)
    expected = []
    for b in range(B_WIDE):
        length = int(max_lengths[b])
        outputs = itertools.product(prefixes.WORDS, repeat=length)
        total, tokens = max(
            (prefixes.log_probability(tables[b], y), y) for y in outputs
        )
        expected.append((total / prefixes.penalty(length, alpha), tokens))
    prefixes.assert_finds(hypotheses, expected)


def test_the_search_stops_once_nothing_can_overtake() -> None:
    """The end mark has the probability 0.99 from position 0 in one sentence, 2 in the
    other: after three of six positions both are settled."""
    visited: list[int] = []

    def step(tokens: Any, state: Any, position: Any) -> tuple[Any, Any]:
        jax.debug.callback(lambda position: visited.append(int(position)), position)
        ends = jnp.where(position >= jnp.array([0, 2]), 0.99, 0.01)[:, None, None]
        other_probabilities = jnp.broadcast_to(
            (1 - ends) / (prefixes.V - 1), (2, 3, prefixes.V)
        )
        return jnp.log(
            other_probabilities.at[..., types.EOS_ID].set(ends[..., 0])
        ), state

    options = beam_search.SearchOptions(
        beam_size=3, alpha=0.6, buffer_lengths=(2, 6), max_length=6
    )
    stepper = beam_search.Stepper(step, lambda state, origin: state)
    hypotheses = beam_search.beam_search(
        stepper, (), max_lengths=jnp.array([6, 6]), options=options
    )
    jax.effects_barrier()
    assert sorted(visited) == [0, 1, 2]
    assert hypotheses.tokens[0, 0].tolist() == [types.EOS_ID, 0, 0, 0, 0, 0]


@pytest.mark.parametrize("W", [1, 3])
def test_a_sentence_does_not_depend_on_its_neighbours(W: int) -> None:
    alpha = 0.6
    logits = prefixes.random_logits(8, B=B)
    # Some end at once, others never.
    logits[::3, :, types.EOS_ID] += 5
    logits[1::3, :, types.EOS_ID] = -np.inf
    max_lengths = np.resize([4, 2, 3, 1], B)
    together = prefixes.search(logits, max_lengths, W=W, alpha=alpha)
    for b in range(0, B, 17):  # each length, ended and not
        alone = prefixes.search(
            logits[b : b + 1], max_lengths[b : b + 1], W=W, alpha=alpha
        )
        np.testing.assert_array_equal(alone.tokens[0], together.tokens[b])
        np.testing.assert_allclose(alone.scores[0], together.scores[b], rtol=1e-6)


def test_each_output_is_at_most_as_long_as_its_sentence_allows() -> None:
    max_lengths = np.resize([0, 1, 2, 3, 4, 0, 4, 1], B)
    logits = prefixes.random_logits(9, B=B, end_bonus=-3.0)
    hypotheses = prefixes.search(logits, max_lengths, W=2, alpha=0.6)
    lengths = (np.asarray(hypotheses.tokens) != types.PAD_ID).sum(axis=-1)
    assert (lengths <= max_lengths[:, None]).all()
    assert (lengths[:, 0] == 0).tolist() == (max_lengths == 0).tolist()
    none = prefixes.search(logits, np.zeros(B, np.int32), W=2, alpha=0.6)
    assert not none.tokens.any()


def test_a_model_s_search_finds_what_full_passes_find() -> None:
    """Cache, permutation and lengths together, against passes over whole prefixes."""
    W, alpha, extra, S = 3, 0.6, 5, 3
    sizes = {"beam_size": W, "length_penalty": alpha, "max_extra_tokens": extra}
    settings_ = settings.small_settings(
        **{f"search.{key}": size for key, size in sizes.items()}
    )
    source = np.array([[3, 5, 2], [4, 2, 0], [0, 0, 0]], np.int32)
    run = jax.jit(settings.search_of(settings_, vocab_size=prefixes.V))

    @jax.jit
    def full_pass(params: Any, source: jax.Array, target_in: jax.Array) -> jax.Array:
        return transformer.Transformer(settings_.model, prefixes.V).apply(
            {"params": params}, source, target_in, deterministic=True
        )

    def expected(params: Any, row: int, max_length: int) -> tuple[float, list[int]]:
        @functools.cache
        def log_probs_after(prefix: prefixes.Prefix) -> np.ndarray:
            target_in = np.zeros((1, S + extra), np.int32)
            target_in[0, : len(prefix) + 1] = [types.BOS_ID, *prefix]
            logits = full_pass(params, source[row : row + 1], target_in)
            log_probs = prefixes.log_probabilities(np.array(logits)[0, len(prefix)])
            log_probs[[types.PAD_ID, types.BOS_ID]] = -np.inf
            return log_probs

        score, tokens = prefixes.plain_search(
            log_probs_after, max_length, W=W, alpha=alpha
        )
        return score, [*tokens, *[types.PAD_ID] * (S + extra - len(tokens))]

    lengths = set()
    for seed in range(20):
        params = settings.random_params(
            settings_.model, vocab_size=prefixes.V, seed=seed
        )
        # What was said before must matter, or a wrong cache would not show.
        attention = params["decoder"]["layers_0"]["self_attention"]
        attention["output"]["kernel"] *= 4
        hypotheses = run(params, source)
        outputs = np.asarray(hypotheses.tokens[:, 0]).tolist()
        for row, length in enumerate((3, 2)):
            score, tokens = expected(params, row, length + extra)
            assert outputs[row] == tokens
            np.testing.assert_allclose(hypotheses.scores[row, 0], score, rtol=1e-4)
        assert outputs[2] == [types.PAD_ID] * (S + extra)
        lengths |= {sum(map(bool, row)) for row in outputs}
    # Some end early, some late, some never.
    assert len(lengths) >= 5
