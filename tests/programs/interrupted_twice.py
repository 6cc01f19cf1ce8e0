"""Train, and be interrupted twice in one garbage collection.

python -m tests.programs.interrupted_twice WORKDIR STEP [--FLAG=VALUE ...]

Python ignores what signal handlers raise there.
"""

import gc
import os
import pathlib
import runpy
import signal
import sys
import threading

from tests.programs import long_runs

signals = [signal.SIGINT, signal.SIGINT]


def interrupt(workdir: pathlib.Path, step: int) -> None:
    """Send the signals, once a step is recorded."""
    # From another thread both would wait for the main thread, and become one.
    if threading.current_thread() is not threading.main_thread():
        return
    if signals and long_runs.has_step(workdir, step):
        while signals:
            os.kill(os.getpid(), signals.pop())


if __name__ == "__main__":
    workdir, step, *words = sys.argv[1:]
    gc.callbacks.append(lambda *_: interrupt(pathlib.Path(workdir), int(step)))
    program = "vaswani_jax.main"
    sys.argv = [program, *words]
    runpy.run_module(program, run_name="__main__", alter_sys=True)
