"""An interrupt that Python ignored comes again; other ignored errors are printed."""

from tests import interpreter

PROGRAM = """
import gc, signal, sys, time
from vaswani_jax.core import interrupts

# A shell starts what it runs in the background with SIGINT ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)
ignored = []
sys.unraisablehook = lambda unraisable: ignored.append(unraisable.exc_type.__name__)
raised = [KeyboardInterrupt, ValueError]


def callback(phase, info):
    if raised:
        raise raised.pop(0)


def wait():
    gc.callbacks.append(callback)
    try:
        gc.collect()
        for _ in range(1000):
            time.sleep(0.01)
        return "whole"
    except KeyboardInterrupt:
        return "interrupted"
    finally:
        gc.callbacks.remove(callback)


with interrupts.repeated(KeyboardInterrupt, on_ignored=lambda kind: print(kind)):
    print(wait())
print(ignored)
"""


def test_an_ignored_interrupt_is_repeated_and_other_errors_are_not() -> None:
    assert interpreter.output_of(PROGRAM).splitlines() == [
        "<class 'KeyboardInterrupt'>",
        "interrupted",
        "['ValueError']",
    ]


SLOW_THREADS = """
import threading, time

start = threading.Thread.start


def start_slowly(thread):
    start(thread)
    time.sleep(0.1)


threading.Thread.start = start_slowly
"""


def test_an_interrupt_is_not_repeated_before_its_report_has_ended() -> None:
    assert "interrupted" in interpreter.output_of(SLOW_THREADS + PROGRAM).splitlines()
