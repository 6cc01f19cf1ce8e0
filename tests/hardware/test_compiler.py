"""Programs are compiled once, one after the other, with progress in the log."""

import logging
from collections.abc import Callable
from typing import Any

import pytest

from tests.hardware import tiny_run
from vaswani_jax.hardware import programs

Judge = Callable[..., dict[str, Any]]


def test_what_was_found_is_kept(
    judge_once: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = judge_once(tiny_run.run_of())

    def fail(*arguments: Any, **options: Any) -> None:
        raise AssertionError("compiled again")

    with monkeypatch.context() as patched:
        patched.setattr(programs, "train_step", fail)
        patched.setattr(programs, "search", fail)
        assert judge_once(tiny_run.run_of()) == first
        loop = {
            "training.num_steps": 77,
            "training.log_every_steps": 7,
            "training.checkpoint_every_steps": 11,
        }
        assert judge_once(tiny_run.run_of(**loop)) == first
        with pytest.raises(AssertionError, match="compiled again"):
            judge_once(tiny_run.run_of(**{"model.d_ff": 20}))
        with pytest.raises(AssertionError, match="compiled again"):
            judge_once(tiny_run.run_of(**{"training.label_smoothing": 0.2}))
        with pytest.raises(AssertionError, match="compiled again"):
            judge_once(tiny_run.run_of(**{"training.ema_decay": 0.9}))


def test_progress_says_how_many_programs_are_left(
    judge_once: Judge, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, logger="vaswani_jax"):
        judge_once(tiny_run.run_of())
    lines = [line for line in caplog.messages if "compiling" in line]
    assert [line.partition("(")[2][0] for line in lines] == ["3", "2", "1"]
    assert "the step of 64 x 16 tokens" in lines[0]
    assert "the search of" in lines[2]
