"""Steps and a clock for the tests of training.

Runs of a module that compute the same step share one, traced and compiled once.
"""

import copy
import dataclasses
import functools
import logging
import time
import types
from collections.abc import Callable, Iterator
from typing import Any

import jax
import pytest

from tests import settings
from tests.training import logs
from vaswani_jax.core import config, parallel
from vaswani_jax.training import metrics_log, step

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


def _remembered(real: Callable[..., Any]) -> Callable[..., Any]:
    """A function of the step's settings that is computed once for the same."""

    @functools.cache
    def found(small: config.Config, **more: Any) -> Any:
        return real(_without(small), **more)

    return lambda small, **more: found(_of_the_step(small), **more)


@pytest.fixture(scope="module")
def steps_once() -> Iterator[None]:
    """`train_step`, `create_state` and what runs them are remembered in a module."""
    create = step.create_state

    def created(small: config.Config, **more: Any) -> Any:
        # Not on a device: there a run gives its memory to the next state.
        return jax.device_get(create(small, **more))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(step, "train_step", _remembered(step.train_step))
        patch.setattr(step, "create_state", _remembered(created))
        patch.setattr(parallel, "over_devices", functools.cache(parallel.over_devices))
        yield


@pytest.fixture
def log_lines(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    """What is logged for a person."""
    caplog.set_level(logging.INFO, "vaswani_jax")
    return caplog


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> logs.Clock:
    """What a log takes for the time."""
    made = logs.Clock()
    stopped = types.SimpleNamespace(**vars(time) | {"monotonic": made.monotonic})
    monkeypatch.setattr(metrics_log, "time", stopped)
    return made
