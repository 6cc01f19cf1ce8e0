"""What a run tells a person: progress, the time left, and messages that stay."""

import pathlib

import pytest

from tests.training.logs import Clock, opened

VALUES = {
    "train/loss": 4.3214,
    "train/perplexity": 75.296,
    "train/learning_rate": 6.987e-4,
    "time/tokens_per_second": 25_123.4,
}


def test_progress_tells_step_loss_rate_speed_and_time_left(
    tmp_path: pathlib.Path, clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    written = opened(tmp_path, first_step=2_000, num_steps=10_500)
    clock.seconds += 567
    written.progress(2_500, VALUES)
    written.close()
    out, line = capsys.readouterr()
    assert out == "" and line.count("\n") == 1
    assert "step 2,500 of 10,500 " in line
    assert "loss 4.321 " in line
    assert "perplexity 75.30 " in line
    assert "lr 6.99e-04 " in line
    assert " 25,123 target tokens/s" in line
    # The 500 updates since the start took 567 s; at that pace 8,000 take 9,072 s.
    assert "left 2:31:12\n" in line


@pytest.mark.parametrize(
    ("elapsed_seconds", "left"),
    [(2.0, "0:00:06"), (20.5, "0:01:02"), (2e4, "16:40:00")],
)
def test_time_left_is_hours_minutes_seconds(
    tmp_path: pathlib.Path,
    clock: Clock,
    capsys: pytest.CaptureFixture[str],
    elapsed_seconds: float,
    left: str,
) -> None:
    written = opened(tmp_path, num_steps=4)
    clock.seconds += elapsed_seconds
    written.progress(1, VALUES)
    written.close()
    assert f"left {left}\n" in capsys.readouterr().err


def test_on_a_terminal_one_line_is_rewritten_and_messages_stay(
    tmp_path: pathlib.Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "200")
    written = opened(tmp_path)
    written.message("hello")
    for step in (1, 2):
        written.progress(step, VALUES)
    written.message("evaluated")
    written.progress(3, VALUES)
    written.close()
    # What stands on the screen is what follows the last return to the line's start.
    lines = capsys.readouterr().err.split("\n")
    screen = [line.rpartition("\r\033[K")[2][:10].strip() for line in lines]
    assert screen == ["hello", "step 2 of", "evaluated", "step 3 of", ""]


def test_only_the_main_process_writes_and_prints(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    silent = opened(tmp_path, active=False)
    silent.message("hello")
    silent.metrics(1, {"train/loss": 5.0})
    silent.progress(1, VALUES)
    silent.close()
    assert list(tmp_path.iterdir()) == []
    assert capsys.readouterr() == ("", "")
