"""Sections 5 and 6: what programs tell ends no work, whoever has stopped to read it."""

import contextlib
import io
import os
import sys


class Messages(io.TextIOBase):
    """Standard error, which may go away: a closed terminal or pipe, a full disk.

    Nothing is kept that could fail later; what cannot be written is not told.
    """

    encoding = "utf-8"

    def __init__(self, handle: int) -> None:
        self._handle = handle
        self._begun = ""

    def write(self, text: str) -> int:
        """Take a text; whole lines are written at once."""
        self._begun += text
        if "\n" in text:
            self.flush()
        return len(text)

    def flush(self) -> None:
        """Write what can be of what there is."""
        # A signal's handler may write in between, and then writes all of it.
        text, self._begun = self._begun, ""
        rest = text.encode(errors="backslashreplace")
        with contextlib.suppress(OSError):
            while rest:
                rest = rest[os.write(self._handle, rest) :]

    def fileno(self) -> int:
        """The file descriptor."""
        return self._handle

    def isatty(self) -> bool:
        """Whether it is a terminal that is still there."""
        return os.isatty(self._handle)


def outlast_readers() -> None:
    """Make standard error such a stream."""
    # Where it was closed from the start, a file of ours could have taken its number.
    handle = os.open(os.devnull, os.O_WRONLY) if sys.stderr is None else 2
    sys.stderr = Messages(handle)
