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
from vaswani_jax.core import compilation, config, parallel
from vaswani_jax.training import metrics_log, step

# The loop alone reads these; steps do not depend on them.
LOOP_SETTINGS = (
    "num_steps log_every_steps evaluate_every_steps checkpoint_every_steps "
    "keep_checkpoints average_checkpoints best_metric patience max_skipped_batches "
    "max_loss_rise"
).split()


def _of_the_step(small: config.Config) -> config.Config:
    """Return the same settings for all whose steps are the same."""
    default = settings.small_settings().training
    same = {name: getattr(default, name) for name in LOOP_SETTINGS}
    return dataclasses.replace(
        small, training=dataclasses.replace(small.training, **same)
    )


def _without(small: config.Config) -> config.Config:
    """Return settings with which a step that reads `LOOP_SETTINGS` fails."""
    training = copy.copy(small.training)
    for name in LOOP_SETTINGS:
        object.__delattr__(training, name)
    return dataclasses.replace(small, training=training)


def _remembered(real: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that computes once for the same settings of a step."""

    @functools.cache
    def compute(small: config.Config, **options: Any) -> Any:
        return real(_without(small), **options)

    return lambda small, **options: compute(_of_the_step(small), **options)


@pytest.fixture(scope="module")
def steps_once() -> Iterator[None]:
    """Trace and compile each step once in a module."""
    create = step.create_state

    def create_on_host(small: config.Config, **options: Any) -> Any:
        # Not on a device: there a run gives its memory to the next state.
        return jax.device_get(create(small, **options))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(step, "train_step", _remembered(step.train_step))
        patch.setattr(step, "create_state", _remembered(create_on_host))
        compile_once = functools.cache(parallel.over_devices)

        def over_devices(function: Any, *, identity: Any = None, **options: Any) -> Any:
            return compile_once(function, **options)

        patch.setattr(parallel, "over_devices", over_devices)
        # Identities name all settings, also those of the loop that are removed here.
        patch.setattr(
            compilation, "on_one_device", lambda init, *, identity: jax.jit(init)
        )
        yield


@pytest.fixture
def log_lines(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    """The lines that are logged."""
    caplog.set_level(logging.INFO, "vaswani_jax")
    return caplog


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> logs.Clock:
    """The clock that a log of metrics reads."""
    test_clock = logs.Clock()
    stopped = types.SimpleNamespace(**vars(time) | {"monotonic": test_clock.monotonic})
    monkeypatch.setattr(metrics_log, "time", stopped)
    return test_clock
