"""Scores of given outputs, against the logits of a pass and against one another."""

from typing import Any

import jax.numpy as jnp
import numpy as np

from tests import settings
from vaswani_jax.core import parallel, types
from vaswani_jax.inference import scoring
from vaswani_jax.model import transformer

V = 30
MODEL = settings.small_settings(**{"model.num_layers": 2}).model
SOURCE, OUTPUT = [7, 8, 9, 10, 11, 12], [9, 3, 17, types.EOS_ID]


def params(seed: int) -> Any:
    return settings.random_params(MODEL, vocab_size=V, seed=seed)


def log_probs(*seeds: int) -> np.ndarray:
    """Return those of OUTPUT by the mean of models."""
    [scored] = scoring.score_pairs(
        [(SOURCE, OUTPUT)],
        models=[MODEL] * len(seeds),
        params=[parallel.replicate(params(seed)) for seed in seeds],
        vocab_size=V,
    )
    return np.asarray(scored.log_probs)


def test_log_probs_are_those_of_the_logits() -> None:
    logits: Any = transformer.Transformer(MODEL, V).apply(
        {"params": params(1)},
        jnp.array([[*SOURCE, types.EOS_ID]]),
        jnp.array([[types.BOS_ID, *OUTPUT[:-1]]]),
        deterministic=True,
    )
    exact = np.float64(logits[0])
    expected = exact - np.log(np.exp(exact).sum(axis=1, keepdims=True))
    np.testing.assert_allclose(
        log_probs(1), expected[np.arange(4), OUTPUT], rtol=1e-4, atol=1e-5
    )


def test_an_ensembles_probability_is_the_mean_of_its_models() -> None:
    alone = np.exp(np.stack([log_probs(1), log_probs(2)]).astype(np.float64))
    np.testing.assert_allclose(log_probs(1, 2), np.log(alone.mean(axis=0)), rtol=1e-4)
    # One model twice is that model.
    np.testing.assert_allclose(log_probs(1, 1), log_probs(1), rtol=1e-5)


def test_attention_has_the_layers_and_kinds_that_are_asked_for() -> None:
    pairs = [(SOURCE, OUTPUT), (SOURCE[:2], OUTPUT[:3])]
    scored = scoring.score_pairs(
        pairs,
        models=[MODEL],
        params=[parallel.replicate(params(1))],
        vocab_size=V,
        layers={"memory": (1,)},
    )
    for (source, output), pair in zip(pairs, scored, strict=True):
        [(kind, weights)] = pair.attention.items()
        assert kind == "memory"
        assert weights.shape == (1, MODEL.num_heads, len(output), len(source) + 1)
        np.testing.assert_allclose(weights.sum(axis=-1), 1, rtol=1e-5)
