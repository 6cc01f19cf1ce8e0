"""Signals during training, as a program that imports the package meets them."""

import gc
import os
import pathlib
import pickle
import signal
import time
from collections.abc import Callable, Iterator

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
        assert not signals.should_stop()
        send(number, signal.SIGTERM, signal.SIGHUP)  # The first one counts.
        assert signals.should_stop()
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


@pytest.fixture
def in_garbage_collection() -> Iterator[list[int]]:
    """Signals to send in the next garbage collection, where exceptions are ignored."""
    numbers: list[int] = []

    def callback(phase: str, info: dict[str, int]) -> None:
        while numbers:
            send(numbers.pop(0))

    gc.callbacks.append(callback)
    yield numbers
    gc.callbacks.remove(callback)


def wait_for_interrupt() -> None:
    """Pass ten seconds unless an exception ends them."""
    gc.collect()
    for _ in range(1000):
        time.sleep(0.01)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_work_ends_when_a_signal_comes_in_garbage_collection(
    number: signal.Signals, in_garbage_collection: list[int]
) -> None:
    ended: list[str] = []

    def work() -> str:
        in_garbage_collection.append(number)
        wait_for_interrupt()
        ended.append("to the end")
        return "whole"

    with preemption.SignalWatch() as signals:
        assert signals.run_interruptible(work) is None
        assert signals.signal_number == number
    assert ended == []


def test_a_second_ctrl_c_in_garbage_collection_raises(
    in_garbage_collection: list[int],
) -> None:
    with pytest.raises(KeyboardInterrupt), preemption.SignalWatch():
        in_garbage_collection += [signal.SIGTERM, signal.SIGINT]
        wait_for_interrupt()


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
