"""Runs of a module that compute the same step share one, traced and compiled once."""

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
    default = settings.small_settings().training
    same = {name: getattr(default, name) for name in AROUND}
    return dataclasses.replace(
        small, training=dataclasses.replace(small.training, **same)
    )


@pytest.fixture(scope="module")
def steps_once() -> Iterator[None]:
    """`train_step`, `create_state` and what runs them are remembered in a module."""
    make = functools.cache(step.train_step)
    over_devices = functools.cache(parallel.over_devices)
    create = step.create_state

    def train_step(small: config.Config, **more: Any) -> Any:
        return make(_of_the_step(small), **more)

    @functools.cache
    def created(small: config.Config, *, vocab_size: int) -> Any:
        # Not on a device: there a run gives its memory to the next state.
        return jax.device_get(create(small, vocab_size=vocab_size))

    def create_state(small: config.Config, *, vocab_size: int) -> Any:
        return created(_of_the_step(small), vocab_size=vocab_size)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(step, "train_step", train_step)
        patch.setattr(step, "create_state", create_state)
        patch.setattr(parallel, "over_devices", over_devices)
        yield
