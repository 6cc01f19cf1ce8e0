"""How every program starts and how it fails: one line that says what is wrong."""

import logging
import sys
from collections.abc import Callable, Sequence

from absl import app


def run(main: Callable[[], None], *, expected: tuple[type[Exception], ...]) -> None:
    """Parse the flags, then run `main`.

    Args:
        main: The program.
        expected: Errors whose message tells the user all: printed without a
            traceback, exit status 1. All others keep their traceback.
    """

    def checked(argv: Sequence[str]) -> None:
        if len(argv) > 1:
            raise app.UsageError(f"unexpected arguments: {' '.join(argv[1:])}")
        # absl lets all through; a backend that is not there is nothing to report.
        for name in ("jax", "orbax", "absl"):
            logging.getLogger(name).setLevel(logging.ERROR)
        try:
            main()
        except expected as error:
            print(f"error: {error}", file=sys.stderr)
            sys.exit(1)

    app.run(checked)


def say(text: str) -> None:
    """A line for the person at the terminal; standard output is for results."""
    print(text, file=sys.stderr, flush=True)
