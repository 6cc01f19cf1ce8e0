"""Section 5.2's machines are taken away at times: a run that is told so saves first.

SIGTERM comes from schedulers, SIGINT from Ctrl-C, SIGHUP from a terminal that goes. The
first of them lets the update end, the state be saved and the program exit with 128 +
the signal's number. A Ctrl-C after that exits at once, which harms nothing, as a kill
harms nothing; of other signals more than one come of themselves (a closed terminal
sends SIGHUP from the shell and from the kernel), and change nothing.
"""

import os
import signal
import sys
import threading
import types
from collections.abc import Callable
from typing import Any, TypeVar

from vaswani_jax.core import processes

Result = TypeVar("Result")
NOTICED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class Stopped(Exception):  # noqa: N818 - it is no error
    """A run has saved and ends, as a signal asked; `status` is that of the program."""

    def __init__(self, number: int | None, step: int) -> None:
        # Another process has had the signal, as a scheduler's sign.
        number = number or signal.SIGTERM
        super().__init__(
            f"stopped by {signal.Signals(number).name} at step {step:,}, which is "
            "saved; the same command goes on"
        )
        self.status = 128 + number


class _Cut(BaseException):
    """A signal came while something went on that need not be waited for."""


class Signals:
    """Notices signals while it is entered, in the main thread of a program."""

    def __init__(self) -> None:
        self.number: int | None = None
        self._may_cut = self._together = False
        self._before: dict[int, Any] = {}

    def __enter__(self) -> "Signals":
        # Of several processes JAX's own service notices SIGTERM, and tells all.
        noticed = NOTICED if processes.num_processes() == 1 else NOTICED[1:]
        if threading.current_thread() is threading.main_thread():
            for number in noticed:
                ignored = signal.getsignal(number) == signal.SIG_IGN
                if number == signal.SIGHUP and ignored:  # as nohup wants it
                    continue
                self._before[number] = signal.signal(number, self._notice)
        return self

    def __exit__(self, *error: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def stops_at(self, step: int) -> bool:
        """Whether the run ends after this update; the same in all processes."""
        if processes.num_processes() == 1:
            return self.number is not None
        # Told once, but a bad update may have to be made good first.
        self._together = self._together or processes.reached_preemption(step)
        return self._together

    def cut_short(self, work: Callable[[], Result]) -> Result | None:
        """What `work` gives; None if a signal came before its end.

        Processes together do it to its end: one alone cannot leave the others.
        """
        alone = processes.num_processes() == 1
        if alone and self.number is not None:
            return None
        try:
            self._may_cut = alone
            return work()
        except _Cut:
            return None
        finally:
            self._may_cut = False

    def _notice(self, number: int, frame: types.FrameType | None) -> None:
        if self.number is not None:
            if number == signal.SIGINT:
                os._exit(128 + number)
            return
        self.number = number
        name = signal.Signals(number).name
        sys.stderr.write(f"\n{name}: saving; Ctrl-C exits at once\n")
        if processes.num_processes() > 1:
            os.kill(os.getpid(), signal.SIGTERM)
        elif self._may_cut:
            raise _Cut
