"""Runs of a module that compute the same step share one, traced and compiled once."""

import copy
import dataclasses
import functools
from collections.abc import Iterator
from typing import Any

import jax
import pytest

from tests import settings
from vaswani_jax.core import config, parallel
from vaswani_jax.training import step

# What the loop does around a step; no step is computed otherwise for it.
AROUND = (
    "num_steps log_every_steps evaluate_every_steps checkpoint_every_steps "
    "keep_checkpoints average_checkpoints best_metric patience max_skipped_batches "
    "max_loss_rise"
).split()


def _of_the_step(small: config.Config) -> config.Config:
    """The same for all settings whose steps are the same."""
    default = settings.small_settings().training
    same = {name: getattr(default, name) for name in AROUND}
    return dataclasses.replace(
        small, training=dataclasses.replace(small.training, **same)
    )


def _without(small: config.Config) -> config.Config:
    """Settings of which a step that reads what is of the loop fails."""
    training = copy.copy(small.training)
    for name in AROUND:
        object.__delattr__(training, name)
    return dataclasses.replace(small, training=training)


@pytest.fixture(scope="module")
def steps_once() -> Iterator[None]:
    """`train_step`, `create_state` and what runs them are remembered in a module."""
    make, create = step.train_step, step.create_state
    over_devices = functools.cache(parallel.over_devices)

    @functools.cache
    def made(small: config.Config, **more: Any) -> Any:
        return make(_without(small), **more)

    def train_step(small: config.Config, **more: Any) -> Any:
        return made(_of_the_step(small), **more)

    @functools.cache
    def created(small: config.Config, *, vocab_size: int) -> Any:
        # Not on a device: there a run gives its memory to the next state.
        return jax.device_get(create(_without(small), vocab_size=vocab_size))

    def create_state(small: config.Config, *, vocab_size: int) -> Any:
        return created(_of_the_step(small), vocab_size=vocab_size)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(step, "train_step", train_step)
        patch.setattr(step, "create_state", create_state)
        patch.setattr(parallel, "over_devices", over_devices)
        yield
