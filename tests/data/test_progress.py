"""A terminal shows the progress of work, unless the log is quiet; a file does not."""

import io
import logging
import sys

import pytest
import tqdm

from vaswani_jax.data import progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("stream", "level", "is_shown"),
    [
        (Terminal(), logging.INFO, True),
        (Terminal(), logging.WARNING, False),
        (io.StringIO(), logging.INFO, False),
    ],
    ids=["terminal", "quiet", "file"],
)
def test_a_terminal_shows_progress_unless_the_log_is_quiet(
    stream: io.StringIO,
    level: int,
    is_shown: bool,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(tqdm.tqdm, "monitor_interval", 0)  # no thread that stays
    monkeypatch.setattr(sys, "stderr", stream)
    caplog.set_level(level, logger="vaswani_jax")
    pairs = [("a", "b"), ("c", "d")]
    assert list(progress.show_progress(iter(pairs), "reading", total=2)) == pairs
    assert ("reading: 100%" in stream.getvalue()) == is_shown
