"""Repeat interrupts that come where Python ignores exceptions.

The handler of a signal runs wherever the main thread is. What it raises inside a
callback of the garbage collector (JAX has one) or inside `__del__` does not stop the
program: Python prints it as "Exception ignored in ..." and goes on.
"""

import contextlib
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

# By then the main thread has usually left the callback; if not, the next one counts.
DELAY_SECONDS = 0.01


@contextlib.contextmanager
def repeated(
    *kinds: type[BaseException],
    on_ignored: Callable[[type[BaseException]], None] = lambda kind: None,
) -> Iterator[None]:
    """Send SIGINT to the main thread again if what its handler raised was ignored.

    Args:
        *kinds: The exceptions that the handler raises.
        on_ignored: Called with the kind of an ignored one, before SIGINT is sent.
    """
    previous_hook = sys.unraisablehook
    has_ended = threading.Event()

    def hook(unraisable: Any) -> None:
        if not issubclass(unraisable.exc_type, kinds):
            previous_hook(unraisable)
            return
        on_ignored(unraisable.exc_type)
        is_at_end = threading.Event()

        def interrupt() -> None:
            # In the hook an exception would be ignored, too.
            is_at_end.wait()
            if not has_ended.wait(DELAY_SECONDS):
                _interrupt_main_thread()

        threading.Thread(target=interrupt, daemon=True).start()
        is_at_end.set()

    sys.unraisablehook = hook
    try:
        yield
    finally:
        sys.unraisablehook = previous_hook
        has_ended.set()


def _interrupt_main_thread() -> None:
    main_thread = threading.main_thread().ident
    assert main_thread is not None  # It has begun.
    signal.pthread_kill(main_thread, signal.SIGINT)
