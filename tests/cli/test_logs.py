"""Lines on standard error, which no reader can break."""

import io
import logging
import os
from collections.abc import Iterator

import pytest

from vaswani_jax.cli import command_line, logs

LOGGER = logging.getLogger("vaswani_jax.training.loop")


@pytest.fixture
def stderr(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """The reading end of a pipe that the loggers write to; they are restored."""
    loggers = [logging.getLogger(name) for name in logs.OUR_LOGGERS]
    states = [(log.handlers, log.propagate, log.level) for log in loggers]
    libraries = [logging.getLogger(name) for name in logs.LIBRARY_LOGGERS]
    levels = [library.level for library in libraries]
    reading, writing = os.pipe()
    monkeypatch.setattr("sys.stderr", None)
    monkeypatch.setattr("os.open", lambda *arguments: writing)
    logs.install()
    monkeypatch.undo()
    yield reading
    os.close(writing)
    for log, (handlers, propagate, level) in zip(loggers, states, strict=True):
        log.handlers, log.propagate = handlers, propagate
        log.setLevel(level)
    for library, level in zip(libraries, levels, strict=True):
        library.setLevel(level)


def test_a_line_is_its_text_and_a_warning_says_that_it_is_one(stderr: int) -> None:
    LOGGER.debug("seen by --verbose alone")
    LOGGER.info("step 8 of 8")
    LOGGER.warning("the disk is full")
    logging.getLogger("__main__").info("written: a.npz")
    expected = b"step 8 of 8\nwarning: the disk is full\nwritten: a.npz\n"
    assert os.read(stderr, 1000) == expected


def test_quiet_and_verbose_choose_the_level(stderr: int) -> None:
    logs.set_level(quiet=True, verbose=False)
    LOGGER.info("hidden")
    LOGGER.warning("shown")
    logs.set_level(quiet=False, verbose=True)
    LOGGER.debug("details")
    assert os.read(stderr, 1000) == b"warning: shown\ndetails\n"
    with pytest.raises(ValueError, match="--quiet and --verbose exclude each other"):
        logs.set_level(quiet=True, verbose=True)


def test_only_process_0_logs(stderr: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vaswani_jax.core.processes.is_main_process", lambda: False)
    LOGGER.info("of another process")
    monkeypatch.undo()
    LOGGER.info("of process 0")
    assert os.read(stderr, 1000) == b"of process 0\n"


def test_a_stream_whose_reader_is_gone_drops_its_text() -> None:
    reading, writing = os.pipe()
    stream = logs.LastingStderr(writing)
    stream.write("kept until the line ends")
    assert stream.write(", now\n") == 6
    assert os.read(reading, 1000) == b"kept until the line ends, now\n"
    os.close(reading)
    print("nobody reads this", file=stream)
    os.close(writing)
    assert not os.isatty(stream.fileno())
    print("nor this", file=stream, flush=True)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_an_error_does_not_stand_in_the_line_of_progress(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    terminal = Terminal()
    handler = logs.LineHandler(terminal)
    monkeypatch.setattr(logging.getLogger("vaswani_jax"), "handlers", [handler])
    monkeypatch.setattr("sys.stderr", terminal)
    record = logging.makeLogRecord({"msg": "step 3", "is_progress": True})
    handler.emit(record)
    with pytest.raises(SystemExit):
        command_line.refuse("the loss is nan")
    handler.close()
    assert terminal.getvalue().endswith("step 3\nerror: the loss is nan\n")


def test_on_a_terminal_progress_is_replaced_and_other_lines_stay(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "10")
    terminal = Terminal()
    handler = logs.LineHandler(terminal)
    for text, is_progress in (
        ("hello", False),
        ("step 1", True),
        ("step 2 of 100", True),
        ("evaluated", False),
        ("step 3", True),
    ):
        record = logging.makeLogRecord({"msg": text, "is_progress": is_progress})
        handler.emit(record)
    handler.close()
    # A line shows what follows the last return to its start.
    lines = terminal.getvalue().split("\n")
    screen = [line.rpartition("\r\033[K")[2] for line in lines]
    assert screen == ["hello", "step 2 of", "evaluated", "step 3", ""]
