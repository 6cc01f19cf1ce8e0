"""Save and stop when a signal asks for it: SIGTERM, SIGINT (Ctrl-C) or SIGHUP.

SIGTERM comes from schedulers, SIGHUP from a terminal that closes. After the first
signal the current update ends, the run saves its state, and `Stopped` is raised.
Ctrl-C after the first signal, whichever that was, raises KeyboardInterrupt at once,
which loses no more than a kill. SIGTERM and SIGHUP after it are ignored: a closed
terminal sends SIGHUP twice, from the shell and from the kernel.
"""

import contextlib
import logging
import os
import signal
import threading
import types
from collections.abc import Callable
from typing import Any, TypeVar

from vaswani_jax.core import interrupts, processes

Result = TypeVar("Result")
SIGHUP = getattr(signal, "SIGHUP", None)  # Windows has none.
SIGNALS = tuple(filter(None, (signal.SIGTERM, signal.SIGINT, SIGHUP)))

logger = logging.getLogger(__name__)


class Stopped(Exception):  # noqa: N818 - it is no error
    """A signal stopped a run, which is saved and can resume.

    Attributes:
        step: The step of the saved state.
        status: The exit status of a program that a signal stops: 128 + its number.
    """

    def __init__(self, signal_number: int | None, step: int) -> None:
        # None if another process received it, as SIGTERM of a scheduler.
        signal_number = signal_number or signal.SIGTERM
        super().__init__(signal_number, step)  # so that it can be pickled
        self.step = step
        self.status = 128 + signal_number
        self._signal = signal.Signals(signal_number)

    def __str__(self) -> str:
        return (
            f"stopped by {self._signal.name} at step {self.step:,}, which is saved; "
            "the same command resumes it"
        )


class _Interrupt(BaseException):
    """A signal came during work that need not be finished."""


class SignalWatch:
    """Takes note of signals while it is entered, in the main thread of a program.

    Attributes:
        signal_number: The first signal that came; None before.
    """

    def __init__(self) -> None:
        self.signal_number: int | None = None
        self._is_interruptible = self._stops_together = False
        self._is_interrupt_ignored = False
        self._repetition = contextlib.ExitStack()
        self._previous_handlers: dict[int, Any] = {}

    def __enter__(self) -> "SignalWatch":
        # Of several processes, JAX's own service handles SIGTERM and tells all.
        numbers = SIGNALS if processes.num_processes() == 1 else SIGNALS[1:]
        if threading.current_thread() is threading.main_thread():
            self._repetition.enter_context(
                interrupts.repeated(
                    _Interrupt, KeyboardInterrupt, on_ignored=self._note_ignored
                )
            )
            for number in numbers:
                is_ignored = signal.getsignal(number) == signal.SIG_IGN
                if number == SIGHUP and is_ignored:  # by nohup
                    continue
                previous = signal.signal(number, self._handle)
                self._previous_handlers[number] = previous
        return self

    def __exit__(self, *error: object) -> None:
        for number, handler in self._previous_handlers.items():
            signal.signal(number, handler)
        self._repetition.close()

    def should_stop(self) -> bool:
        """Return whether the run stops after this update, alike in all processes."""
        if processes.num_processes() == 1:
            return self.signal_number is not None
        # JAX says so once, but a bad update may have to be taken back first.
        self._stops_together = self._stops_together or processes.reached_preemption()
        return self._stops_together

    def run_interruptible(self, work: Callable[[], Result]) -> Result | None:
        """Return what `work` returns, or None if a signal comes before its end.

        Several processes finish it: one alone cannot leave the others.
        """
        is_alone = processes.num_processes() == 1
        if is_alone and self.signal_number is not None:
            return None
        try:
            self._is_interruptible = is_alone
            return work()
        except _Interrupt:
            return None
        finally:
            self._is_interruptible = False

    def _note_ignored(self, kind: type[BaseException]) -> None:
        self._is_interrupt_ignored = kind is _Interrupt

    def _handle(self, signal_number: int, frame: types.FrameType | None) -> None:
        if self._is_interrupt_ignored:  # This signal repeats it.
            self._is_interrupt_ignored = False
            if self._is_interruptible:
                raise _Interrupt
            return
        if self.signal_number is not None:
            if signal_number == signal.SIGINT:
                raise KeyboardInterrupt
            return
        self.signal_number = signal_number
        name = signal.Signals(signal_number).name
        ctrl_c = "a second Ctrl-C" if signal_number == signal.SIGINT else "Ctrl-C"
        logger.info(f"{name}: saving; {ctrl_c} exits without saving")
        if processes.num_processes() > 1:
            os.kill(os.getpid(), signal.SIGTERM)
        elif self._is_interruptible:
            raise _Interrupt
