"""Updates of a small model on one device and on eight, and their comparison."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from tests import settings
from vaswani_jax.core import config, parallel, types
from vaswani_jax.training import optimizer
from vaswani_jax.training import step as training_step

# Rows of a full batch: six on each of eight devices, in two parts or in three.
ROWS, S, T, V = 48, 7, 5, 11
FIELDS = ("loss", "nll", "correct", "tokens")
# Far above the gradients, so that an update is as smooth in them as they are exact.
SMOOTH = {"optimizer.epsilon": 1.0, "optimizer.learning_rate_scale": 10.0}
PARTS = {"training.accumulate_steps": "3"}
DROPPING = {"model.dropout_rate": 0.5, **PARTS}


def random_batch(seed: int, *, rows: int = ROWS) -> types.Batch:
    return settings.random_batch(
        rows=rows, source_length=S, target_length=T, vocab_size=V, seed=seed
    )


def vocab_size(settings_: config.Config) -> types.VocabSize:
    """V, or V of each side: the source has more."""
    is_shared = settings_.data.vocabulary_sharing == "shared"
    return V if is_shared else types.VocabSizes(V + 2, V)


def random_state(
    settings_: config.Config, *, seed: int, step: int = 0
) -> training_step.TrainState:
    """A state of random parameters and moments of 0."""
    params = settings.random_params(
        settings_.model, vocab_size=vocab_size(settings_), seed=seed
    )
    params = jax.tree.map(jnp.asarray, params)
    opt_state = optimizer.make_optimizer(settings_).init(params)
    average = None
    if settings_.training.ema_decay:
        average = jax.tree.map(lambda leaf: leaf + 1, params)
    return training_step.TrainState(jnp.int32(step), params, opt_state, average)


@functools.lru_cache
def on_eight(settings_: config.Config) -> Any:
    parts = int(settings_.training.accumulate_steps)
    step = training_step.train_step(
        settings_, vocab_size=vocab_size(settings_), num_microbatches=parts
    )
    return parallel.over_devices(step, donate_state=False)


@functools.lru_cache
def on_one(settings_: config.Config) -> Any:
    parts = int(settings_.training.accumulate_steps)
    step = training_step.train_step(
        settings_, vocab_size=vocab_size(settings_), num_microbatches=parts
    )
    placement = {"in_axes": (None, 0), "out_axes": None}
    devices = jax.devices()[:1]
    return jax.pmap(step, parallel.AXIS, devices=devices, **placement)


def shared_among(batch: types.Batch, devices: int) -> types.Batch:
    def share(side: np.ndarray) -> np.ndarray:
        return side.reshape(devices, -1, side.shape[1])

    return jax.tree.map(share, batch)


def pairs_of_leaves(tree: Any, expected: Any) -> Any:
    assert jax.tree.structure(tree) == jax.tree.structure(expected)
    return zip(jax.tree.leaves(tree), jax.tree.leaves(expected), strict=True)


def assert_equal(tree: Any, expected: Any) -> None:
    for leaf, expected_leaf in pairs_of_leaves(tree, expected):
        np.testing.assert_array_equal(leaf, expected_leaf)


def assert_close(tree: Any, expected: Any, *, rtol: float, atol: float) -> None:
    for leaf, expected_leaf in pairs_of_leaves(tree, expected):
        np.testing.assert_allclose(leaf, expected_leaf, rtol=rtol, atol=atol)
