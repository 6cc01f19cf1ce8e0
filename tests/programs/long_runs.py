"""Runs of the copy task that are long enough for something to happen to them."""

import contextlib
import json
import os
import pathlib
import select
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np

from tests.programs import runs
from vaswani_jax.checkpoints import store

SETTINGS = {
    "training.num_steps": 60,
    "training.checkpoint_every_steps": 10,
    "training.evaluate_every_steps": 30,
    "training.log_every_steps": 1,
    "model.dropout_rate": 0.2,
}
FLAGS = [f"--config.{key}={value}" for key, value in SETTINGS.items()]


Ended = tuple[Any, dict[int, float]]


@contextlib.contextmanager
def running(
    workdir: pathlib.Path | str, *flags: str
) -> Iterator[subprocess.Popen[bytes]]:
    """Train beside the test."""
    # Not as under nohup, whoever runs the tests.
    old_handler = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    with runs.running([*runs.command("main", workdir), *FLAGS, *flags]) as process:
        signal.signal(signal.SIGHUP, old_handler)
        yield process


def has_step(workdir: pathlib.Path, step: int) -> bool:
    """Return whether a run has recorded a step."""
    path = workdir / "metrics.jsonl"
    return path.exists() and f'"step": {step},' in path.read_text()


def wait_for_step(workdir: pathlib.Path, step: int, *, terminal: int = -1) -> None:
    """Wait until a run has recorded a step.

    Args:
        workdir: That of the run.
        step: Which step.
        terminal: Where the run writes, if that must be read lest it wait for us.
    """

    def has_step_and_room() -> bool:
        if terminal >= 0 and select.select([terminal], [], [], 0)[0]:
            os.read(terminal, 4096)
        return has_step(workdir, step)

    wait_until(has_step_and_room, f"step {step}")


def wait_until(
    has_happened: Callable[[], bool],
    event: str,
    *,
    process: subprocess.Popen[bytes] | None = None,
) -> None:
    """Wait for an event, however slow the machine is.

    Args:
        has_happened: Whether it has happened; asked 100 times a second at most.
        event: What is waited for.
        process: The program that makes it happen, which must not end before.
    """
    for _ in range(60_000):
        if has_happened():
            return
        assert process is None or process.poll() is None, f"it ended without {event}"
        time.sleep(0.01)
    raise AssertionError(f"no {event} in ten minutes")


def ended(workdir: pathlib.Path) -> Ended:
    """The last checkpoint, and the loss of every update."""
    directory = workdir / "checkpoints"
    last = store.restore(
        directory, store.steps(directory)[-1], names=["params", "optimizer"]
    )
    rows = map(json.loads, (workdir / "metrics.jsonl").read_text().splitlines())
    losses = {row["step"]: row["train/loss"] for row in rows if "train/loss" in row}
    return last, losses


def finish(workdir: pathlib.Path, *flags: str) -> str:
    """Train to the end of such a run; what was told."""
    return runs.finish(workdir, *FLAGS, *flags)


def assert_same(outcome: Ended, expected: Ended) -> None:
    """Bit for bit the state and the losses of a whole run."""
    assert outcome[0].step == expected[0].step
    jax.tree.map(np.testing.assert_array_equal, outcome[0].items, expected[0].items)
    assert outcome[1] == expected[1]
    assert sorted(outcome[1]) == list(range(1, 61))
