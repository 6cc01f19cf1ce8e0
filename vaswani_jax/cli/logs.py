"""Logging of the programs: lines on standard error that can never stop a run."""

import contextlib
import io
import logging
import os
import shutil
import sys

# `python -m` names the logger of the program itself "__main__".
OUR_LOGGERS = ("vaswani_jax", "__main__")
# Absl lets every line of these through; what they log seldom concerns a user.
LIBRARY_LOGGERS = ("jax", "orbax", "absl")


class LastingStderr(io.TextIOBase):
    """A standard error whose reader may go away: a closed terminal, a full disk.

    It drops what it cannot write, and keeps nothing that could fail later.
    """

    encoding = "utf-8"

    def __init__(self, file_descriptor: int) -> None:
        self._file_descriptor = file_descriptor
        self._unwritten = ""

    def write(self, text: str) -> int:
        """Accept a text, and write it out once it holds a whole line."""
        self._unwritten += text
        if "\n" in text:
            self.flush()
        return len(text)

    def flush(self) -> None:
        """Write as much of the accepted text as the reader takes."""
        # A signal handler that logs in between writes the text itself.
        text, self._unwritten = self._unwritten, ""
        remaining = text.encode(errors="backslashreplace")
        with contextlib.suppress(OSError):
            while remaining:
                remaining = remaining[os.write(self._file_descriptor, remaining) :]

    def fileno(self) -> int:
        """Return the file descriptor."""
        return self._file_descriptor

    def isatty(self) -> bool:
        """Return True while the stream is an open terminal."""
        return os.isatty(self._file_descriptor)


class _Formatter(logging.Formatter):
    """An INFO line is its bare text; the others begin with "warning: " or "error: "."""

    def format(self, record: logging.LogRecord) -> str:
        text = super().format(record)
        if record.levelno < logging.WARNING:
            return text
        return f"{record.levelname.lower()}: {text}"


class LineHandler(logging.StreamHandler[io.TextIOBase]):
    """Writes a line a record; on a terminal, progress replaces the progress before."""

    def __init__(self, stream: io.TextIOBase) -> None:
        super().__init__(stream)
        self._line_is_open = False

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record; those with `is_progress` leave their line open."""
        text = self.format(record)
        is_open = getattr(record, "is_progress", False) and self.stream.isatty()
        if is_open:
            # A line that wraps could not be replaced.
            text = text[: shutil.get_terminal_size().columns - 1]
            self.stream.write(f"\r\033[K{text}")
        else:
            self.stream.write("\n" * self._line_is_open + f"{text}\n")
        self.stream.flush()
        self._line_is_open = is_open

    def end_line(self) -> None:
        """End an open line."""
        if self._line_is_open:
            self.stream.write("\n")
            self._line_is_open = False

    def close(self) -> None:
        """End an open line, and write no more."""
        self.end_line()
        super().close()


def end_line() -> None:
    """End an open line of progress, before others write to standard error."""
    for name in OUR_LOGGERS:
        for handler in logging.getLogger(name).handlers:
            if isinstance(handler, LineHandler):
                handler.end_line()


def write_utf8() -> None:
    """Let standard output write UTF-8, whatever the locale.

    What UTF-8 cannot write (half of a surrogate pair) is escaped.
    """
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace")


def discard_output() -> None:
    """Send standard output nowhere, so that the flush at exit cannot fail."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def install() -> None:
    """Replace standard error by one that never raises, and log to it.

    Standard output becomes UTF-8. Of several processes, only process 0 logs.
    """
    write_utf8()
    # If it was closed from the start, a file of ours could have taken its number.
    is_closed = sys.stderr is None
    sys.stderr = LastingStderr(os.open(os.devnull, os.O_WRONLY) if is_closed else 2)
    handler = LineHandler(sys.stderr)
    handler.setFormatter(_Formatter())
    handler.addFilter(_is_of_main_process)
    for name in OUR_LOGGERS:
        logger = logging.getLogger(name)
        logger.handlers = [handler]
        logger.propagate = False  # Absl's handler of the root would repeat the line.
    set_level(quiet=False, verbose=False)


def _is_of_main_process(record: logging.LogRecord) -> bool:
    """Return whether this is process 0."""
    # Only JAX connects processes.
    if "jax" not in sys.modules:
        return True
    from vaswani_jax.core import processes

    return processes.is_main_process()


def set_level(*, quiet: bool, verbose: bool) -> None:
    """Choose what is logged.

    Args:
        quiet: Log warnings and errors only.
        verbose: Log details as well, and the warnings of the libraries.

    Raises:
        ValueError: Both are set.
    """
    if quiet and verbose:
        raise ValueError("--quiet and --verbose exclude each other: give one of them")
    level = logging.INFO
    if quiet:
        level = logging.WARNING
    elif verbose:
        level = logging.DEBUG
    for name in OUR_LOGGERS:
        logging.getLogger(name).setLevel(level)
    for name in LIBRARY_LOGGERS:
        # A backend that is not installed, for example, is nothing to report.
        library_level = logging.WARNING if verbose else logging.ERROR
        logging.getLogger(name).setLevel(library_level)
