"""Records are whole after a crash, and the same in every form."""

import contextlib
import json
import math
import os
import pathlib
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from tensorboardX.proto import event_pb2

from tests.training.event_records import read_events
from tests.training.logs import Clock, opened
from vaswani_jax.training import metrics_log

# Updates that are evaluated, too, and so have a second record.
EVALUATED = (2, 4)


def run(
    workdir: pathlib.Path, *, first_step: int, last_step: int, clock: Clock, loss: float
) -> None:
    """Records of the updates after `first_step`, each of which takes two seconds."""
    written = opened(workdir, first_step=first_step)
    for step in range(first_step + 1, last_step + 1):
        clock.seconds += 2
        written.metrics(step, {"train/loss": loss + step / 10})
        if step in EVALUATED:
            written.metrics(step, {"valid/loss": loss + step, "valid/bleu": 3.5 * step})
    written.close()


def rows(workdir: pathlib.Path) -> list[dict[str, Any]]:
    text = (workdir / "metrics.jsonl").read_text()
    assert text.endswith("\n")
    return [json.loads(row) for row in text.split("\n")[:-1]]


def flat(records: list[dict[str, Any]]) -> list[tuple[int, str, float]]:
    """(step, name, value) of every value that was recorded."""
    return [
        (record["step"], name, value)
        for record in records
        for name, value in record.items()
        if name not in ("step", "time/elapsed_seconds")
    ]


def shown_by_tensorboard(workdir: pathlib.Path) -> list[tuple[int, str, float]]:
    """(step, name, value); a start at a step hides the earlier events from there."""
    shown: list[tuple[int, str, float]] = []
    for path in sorted((workdir / "tensorboard").iterdir()):
        for event in read_events(path):
            if event.session_log.status == event_pb2.SessionLog.START:
                shown = [value for value in shown if value[0] < event.step]
            for value in event.summary.value:
                shown.append((event.step, value.tag, value.simple_value))
    return shown


def crash(workdir: pathlib.Path, *, lost: int) -> None:
    """Cut the file, as a kill does in the middle of a write."""
    path = workdir / "metrics.jsonl"
    path.write_bytes(path.read_bytes()[:-lost])


def test_resuming_drops_the_records_beyond_the_restored_step(
    tmp_path: pathlib.Path, clock: Clock
) -> None:
    run(tmp_path, first_step=0, last_step=5, clock=clock, loss=7.0)
    records = rows(tmp_path)
    opened(tmp_path, first_step=4).close()
    # Of the step that was restored, both records stay.
    assert [row["step"] for row in rows(tmp_path)] == [1, 2, 2, 3, 4, 4]
    assert rows(tmp_path) == records[:6]


def test_an_evaluation_that_is_made_again_is_recorded_once(
    tmp_path: pathlib.Path, clock: Clock
) -> None:
    run(tmp_path, first_step=0, last_step=1, clock=clock, loss=7.0)
    evaluation = {"valid/loss": 3.0, metrics_log.EVALUATION: 1.0}
    for step in (1, 2, 2, 2):
        log = opened(tmp_path, first_step=step)
        log.open(step, is_evaluated=False)
        log.metrics(step, evaluation)
        log.close()
    assert [
        (row["step"], "train/loss" in row, row.get("valid/loss"))
        for row in rows(tmp_path)
    ] == [(1, True, None), (1, False, 3.0), (2, False, 3.0)]
    shown, recorded = shown_by_tensorboard(tmp_path), flat(rows(tmp_path))
    assert [value[:2] for value in shown] == [value[:2] for value in recorded]


def test_a_run_that_starts_anew_keeps_no_record(
    tmp_path: pathlib.Path, clock: Clock
) -> None:
    run(tmp_path, first_step=0, last_step=3, clock=clock, loss=7.0)
    opened(tmp_path, first_step=0).close()
    assert (tmp_path / "metrics.jsonl").read_text() == ""


# 1 is the line feed alone, 2 the brace with it, 3 half a number, 59 all but a brace.
@pytest.mark.parametrize("lost", [1, 2, 3, 20, 59])
def test_resuming_drops_a_line_that_a_kill_cut(
    tmp_path: pathlib.Path, clock: Clock, lost: int
) -> None:
    run(tmp_path, first_step=0, last_step=3, clock=clock, loss=7.0)
    records = rows(tmp_path)
    crash(tmp_path, lost=lost)
    resumed = opened(tmp_path, first_step=3)
    resumed.metrics(4, {"train/loss": 6.0})
    resumed.close()
    # Without its line feed a record is still whole.
    kept_records = records if lost == 1 else records[:-1]
    assert rows(tmp_path)[:-1] == kept_records
    assert rows(tmp_path)[-1]["step"] == 4


def test_each_update_is_recorded_once_after_a_crash_in_every_form(
    tmp_path: pathlib.Path, clock: Clock
) -> None:
    run(tmp_path, first_step=0, last_step=6, clock=clock, loss=7.0)
    crash(tmp_path, lost=15)
    run(tmp_path, first_step=3, last_step=6, clock=clock, loss=70.0)
    recorded = flat(rows(tmp_path))
    keys = [(step, name) for step, name, _ in recorded]
    assert len(keys) == len(set(keys)) == 10
    steps = [step for step, name in keys if name == "train/loss"]
    assert steps == [1, 2, 3, 4, 5, 6]
    values = {(step, name): value for step, name, value in recorded}
    assert values[3, "train/loss"] == 7.3
    assert values[4, "train/loss"] == 70.4
    assert values[4, "valid/loss"] == 74.0
    shown = shown_by_tensorboard(tmp_path)
    assert [value[:2] for value in shown] == keys
    np.testing.assert_allclose(
        [value for *_, value in shown], [value for *_, value in recorded], rtol=1e-6
    )


def test_the_time_of_the_lost_updates_is_not_counted(
    tmp_path: pathlib.Path, clock: Clock
) -> None:
    run(tmp_path, first_step=0, last_step=5, clock=clock, loss=7.0)
    clock.seconds += 1000
    run(tmp_path, first_step=3, last_step=5, clock=clock, loss=7.0)
    elapsed = {row["step"]: row["time/elapsed_seconds"] for row in rows(tmp_path)}
    assert elapsed == {1: 2, 2: 4, 3: 6, 4: 8, 5: 10}


def test_infinity_is_null_in_json_and_infinity_for_tensorboard(
    tmp_path: pathlib.Path,
) -> None:
    written = opened(tmp_path)
    written.metrics(1, {"train/perplexity": float("inf"), "train/loss": 90.0})
    written.close()
    assert "Infinity" not in (tmp_path / "metrics.jsonl").read_text()
    assert flat(rows(tmp_path)) == [
        (1, "train/perplexity", None),
        (1, "train/loss", 90),
    ]
    assert shown_by_tensorboard(tmp_path) == [
        (1, "train/perplexity", float("inf")),
        (1, "train/loss", 90),
    ]


def fill_disk(path: pathlib.Path) -> None:
    """Let the next write to an open file fail."""
    for handle in pathlib.Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):
            if pathlib.Path(os.readlink(handle)).is_relative_to(path):
                with open("/dev/full", "ab") as device:
                    os.dup2(device.fileno(), int(handle.name))


@pytest.mark.parametrize("full", ["metrics.jsonl", "tensorboard", "both"])
def test_records_go_on_when_a_full_disk_has_room_again(
    tmp_path: pathlib.Path, caplog: pytest.LogCaptureFixture, full: str
) -> None:
    written = opened(tmp_path)
    written.metrics(1, {"train/loss": 9.0})
    fill_disk(tmp_path / ("metrics.jsonl" if full == "both" else full))
    if full == "both":
        # Half a record was written, and the file cannot be opened for some time.
        with open(tmp_path / "metrics.jsonl", "a", encoding="utf-8") as half:
            half.write('{"step": 2, "tr')
        (tmp_path / "metrics.jsonl.unfinished").mkdir()
    written.metrics(2, {"train/loss": 8.0})
    written.metrics(3, {"train/loss": 7.0})
    if full == "both":
        (tmp_path / "metrics.jsonl.unfinished").rmdir()
    written.metrics(4, {"train/loss": 6.0})
    written.close()
    [message] = caplog.messages
    assert "cannot be written" in message
    assert "No space left on device" in message
    lost = {"metrics.jsonl": {2}, "tensorboard": set(), "both": {2, 3}}[full]
    steps = [step for step, *_ in flat(rows(tmp_path))]
    assert steps == [step for step in (1, 2, 3, 4) if step not in lost]
    shown = [step for step, *_ in shown_by_tensorboard(tmp_path)]
    assert shown == [step for step in (1, 2, 3, 4) if step not in (lost or {2})]


def test_a_full_disk_at_the_start_costs_no_run(
    tmp_path: pathlib.Path, caplog: pytest.LogCaptureFixture
) -> None:
    interrupted = opened(tmp_path)
    for step in (1, 2, 3):
        interrupted.metrics(step, {"train/loss": 9.0})
    interrupted.close()
    (tmp_path / "metrics.jsonl.unfinished").mkdir()  # What cannot be written.
    # It goes on from step 1; what came after it is made again.
    written = opened(tmp_path, first_step=1)
    written.metrics(2, {"train/loss": 8.0})
    (tmp_path / "metrics.jsonl.unfinished").rmdir()
    written.metrics(3, {"train/loss": 7.0})
    written.close()
    assert caplog.text.count("cannot be written") == 1
    assert flat(rows(tmp_path)) == [(1, "train/loss", 9.0), (3, "train/loss", 7.0)]


def test_records_are_in_the_file_before_the_run_ends(tmp_path: pathlib.Path) -> None:
    written = opened(tmp_path)
    written.metrics(1, {"train/loss": 5.0})
    assert flat(rows(tmp_path)) == [(1, "train/loss", 5.0)]
    written.close()


def test_the_latest_values_are_known_after_a_run_resumes(
    tmp_path: pathlib.Path, clock: Clock
) -> None:
    run(tmp_path, first_step=0, last_step=5, clock=clock, loss=7.0)
    resumed = opened(tmp_path, first_step=4)
    assert resumed.latest == {"train/loss": 7.4, "valid/loss": 11.0, "valid/bleu": 14.0}
    resumed.metrics(5, {"train/loss": 6.0})
    assert resumed.latest["train/loss"] == 6.0
    resumed.open(2)
    assert resumed.latest == {"train/loss": 7.2, "valid/loss": 9.0, "valid/bleu": 7.0}
    resumed.close()


def test_only_the_main_process_writes(tmp_path: pathlib.Path) -> None:
    silent = opened(tmp_path, is_active=False)
    silent.metrics(1, {"train/loss": 5.0})
    silent.close()
    assert list(tmp_path.iterdir()) == []
    assert silent.latest == {"train/loss": 5.0}


VALUES = {
    "train/loss": 4.3214,
    "train/perplexity": 75.296,
    "train/learning_rate": 6.987e-4,
    "time/tokens_per_second": 25_123.4,
}


def test_progress_shows_step_loss_rate_speed_and_time_left(
    tmp_path: pathlib.Path, clock: Clock, log_lines: pytest.LogCaptureFixture
) -> None:
    written = opened(tmp_path, first_step=2_000, num_steps=10_500)
    clock.seconds += 567
    written.progress(2_500, VALUES)
    written.close()
    [line] = log_lines.messages
    assert "step 2,500 of 10,500 " in line
    assert "loss 4.321 " in line
    assert "perplexity 75.30 " in line
    assert "lr 6.99e-04 " in line
    assert " 25,123 target tokens/s" in line
    # The 500 updates since the start took 567 s; at that pace 8,000 take 9,072 s.
    assert line.endswith("left 2:31:12")


def test_loggers_get_finite_metrics_until_they_fail(
    tmp_path: pathlib.Path, log_lines: pytest.LogCaptureFixture
) -> None:
    received: list[tuple[int, dict[str, float]]] = []

    def keep(step: int, values: Mapping[str, float]) -> None:
        received.append((step, dict(values)))

    def fail(step: int, values: Mapping[str, float]) -> None:
        raise ConnectionError("no network")

    written = opened(tmp_path, loggers=[fail, keep])
    written.metrics(1, {"train/loss": 2.5, "train/perplexity": math.inf})
    written.metrics(2, {"train/loss": 2.25})
    written.close()
    assert received == [(1, {"train/loss": 2.5}), (2, {"train/loss": 2.25})]
    [line] = log_lines.messages
    assert line == (
        "a logger of metrics failed at step 1 and is dropped: "
        "ConnectionError('no network')"
    )


def test_progress_shows_the_norm_where_gradients_are_clipped(
    tmp_path: pathlib.Path, log_lines: pytest.LogCaptureFixture
) -> None:
    written = opened(tmp_path)
    written.progress(1, VALUES)
    clipping = {"train/gradient_norm": 2.346, "train/clipped_share": 0.25}
    written.progress(2, VALUES | clipping)
    written.close()
    unclipped, clipped = log_lines.messages
    assert "gradient norm" not in unclipped
    assert "lr 6.99e-04  gradient norm 2.35 (25% clipped)  25,123" in clipped


@pytest.mark.parametrize(
    ("elapsed_seconds", "left"),
    [(2.0, "0:00:06"), (20.5, "0:01:02"), (2e4, "16:40:00")],
)
def test_time_left_is_hours_minutes_seconds(
    tmp_path: pathlib.Path,
    clock: Clock,
    log_lines: pytest.LogCaptureFixture,
    elapsed_seconds: float,
    left: str,
) -> None:
    written = opened(tmp_path, num_steps=4)
    clock.seconds += elapsed_seconds
    written.progress(1, VALUES)
    written.close()
    assert log_lines.messages[0].endswith(f"left {left}")


def test_elapsed_time_counts_once_when_the_log_is_reopened(
    tmp_path: pathlib.Path, clock: Clock
) -> None:
    written = opened(tmp_path)
    clock.seconds += 100
    written.metrics(1, {"train/loss": 9.0})
    written.open(1)  # As after a bad batch.
    clock.seconds += 50
    written.metrics(2, {"train/loss": 8.0})
    written.close()
    elapsed = [row["time/elapsed_seconds"] for row in rows(tmp_path)]
    assert elapsed == [100.0, 150.0]


def test_the_record_that_opens_the_file_again_is_the_latest(
    tmp_path: pathlib.Path,
) -> None:
    written = opened(tmp_path)
    written.metrics(1, {"valid/loss": 9.0})
    fill_disk(tmp_path / "metrics.jsonl")
    written.metrics(2, {"valid/loss": 8.0})
    written.metrics(3, {"valid/loss": 7.0, "valid/bleu": 5.0})
    assert written.latest == {"valid/loss": 7.0, "valid/bleu": 5.0}
    written.close()


def test_an_evaluator_cannot_change_the_step(tmp_path: pathlib.Path) -> None:
    log = opened(tmp_path, first_step=0)
    log.metrics(7, {"step": 0.5, metrics_log.ELAPSED: math.inf, "valid/loss": 2.0})
    log.close()
    [record] = rows(tmp_path)
    assert list(record) == ["step", metrics_log.ELAPSED, "valid/loss"]
    assert record["step"] == 7 and record[metrics_log.ELAPSED] >= 0
