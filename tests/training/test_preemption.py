"""Signals during training, as a program that imports the package meets them."""

import os
import pathlib
import pickle
import signal
from collections.abc import Callable

import jax
import numpy as np
import pytest

from tests import settings
from tests.training.small_runs import OVERRIDES, train
from vaswani_jax.checkpoints import store
from vaswani_jax.training import preemption

pytestmark = pytest.mark.usefixtures("steps_once")


def send(*numbers: int) -> None:
    """Send signals to this process."""
    for number in numbers:
        os.kill(os.getpid(), number)


def test_what_stopped_a_run_passes_between_processes() -> None:
    stopped = preemption.Stopped(signal.SIGINT, 1234)
    copy = pickle.loads(pickle.dumps(stopped))
    assert (str(copy), copy.step, copy.status) == (str(stopped), 1234, 130)
    assert str(copy).startswith("stopped by SIGINT at step 1,234")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_is_noted_until_the_watch_ends(number: signal.Signals) -> None:
    previous = signal.getsignal(number)
    with preemption.SignalWatch() as signals:
        assert not signals.should_stop(1)
        send(number, signal.SIGTERM, signal.SIGHUP)  # The first one counts.
        assert signals.should_stop(1)
        assert signals.signal_number == number
    assert signal.getsignal(number) == previous


@pytest.mark.parametrize(
    ("number", "message"),
    [
        (signal.SIGINT, "SIGINT: saving; a second Ctrl-C exits without saving"),
        (signal.SIGTERM, "SIGTERM: saving; Ctrl-C exits without saving"),
    ],
)
def test_the_first_signal_says_what_another_does(
    number: signal.Signals, message: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "vaswani_jax")
    with preemption.SignalWatch():
        send(number, signal.SIGTERM)
    assert caplog.messages == [message]


def test_work_ends_when_a_signal_comes_and_does_not_begin_after_it() -> None:
    started: list[str] = []

    def work(name: str, *numbers: int) -> Callable[[], str]:
        def run() -> str:
            started.append(name)
            send(*numbers)
            return name

        return run

    with preemption.SignalWatch() as signals:
        assert signals.run_interruptible(work("first")) == "first"
        assert signals.run_interruptible(work("second", signal.SIGTERM)) is None
        assert signals.run_interruptible(work("third")) is None
    assert started == ["first", "second"]


def test_a_second_ctrl_c_while_saving_raises_and_the_run_resumes(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = settings.small_settings(**OVERRIDES)
    uninterrupted = train(small, tmp_path / "whole")
    seal, previous = store.seal, signal.getsignal(signal.SIGINT)

    def interrupt(path: pathlib.Path) -> None:
        if path.name.startswith("4"):
            send(signal.SIGTERM, signal.SIGINT)
        seal(path)

    workdir = tmp_path / "run"
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(store, "seal", interrupt)
        train(small, workdir)
    assert signal.getsignal(signal.SIGINT) == previous
    assert store.steps(workdir / "checkpoints") == [2]
    resumed = train(small, workdir)
    jax.tree.map(np.testing.assert_array_equal, resumed.items, uninterrupted.items)
