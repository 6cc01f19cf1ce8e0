"""What a run tells is whole after a crash, and the same in every form."""

import io
import json
import os
import pathlib
import struct
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from tensorboardX import record_writer
from tensorboardX.proto import event_pb2

from tests.training.logs import Clock, opened

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


def events(path: pathlib.Path) -> Iterator[event_pb2.Event]:
    """What TensorBoard reads: length, its checksum, event, its checksum."""

    def checked(size: int) -> bytes:
        data = stream.read(size)
        (checksum,) = struct.unpack("I", stream.read(4))
        assert checksum == record_writer.masked_crc32c(data)
        return data

    stream = io.BytesIO(path.read_bytes())
    while stream.tell() < path.stat().st_size:
        (length,) = struct.unpack("Q", checked(8))
        yield event_pb2.Event.FromString(checked(length))


def shown_by_tensorboard(workdir: pathlib.Path) -> list[tuple[int, str, float]]:
    """(step, name, value); a start at a step hides the earlier events from there."""
    shown: list[tuple[int, str, float]] = []
    for path in sorted((workdir / "tensorboard").iterdir()):
        for event in events(path):
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
    before = rows(tmp_path)
    opened(tmp_path, first_step=4).close()
    # Of the step that was restored, both records stay.
    assert [row["step"] for row in rows(tmp_path)] == [1, 2, 2, 3, 4, 4]
    assert rows(tmp_path) == before[:6]


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
    before = rows(tmp_path)
    crash(tmp_path, lost=lost)
    resumed = opened(tmp_path, first_step=3)
    resumed.metrics(4, {"train/loss": 6.0})
    resumed.close()
    # Without its line feed a record is still whole.
    kept = before if lost == 1 else before[:-1]
    assert rows(tmp_path)[:-1] == kept
    assert rows(tmp_path)[-1]["step"] == 4


def test_each_update_is_recorded_once_after_a_crash_in_every_form(
    tmp_path: pathlib.Path, clock: Clock
) -> None:
    run(tmp_path, first_step=0, last_step=6, clock=clock, loss=7.0)
    crash(tmp_path, lost=15)
    run(tmp_path, first_step=3, last_step=6, clock=clock, loss=70.0)
    recorded = flat(rows(tmp_path))
    places = [(step, name) for step, name, _ in recorded]
    assert len(places) == len(set(places)) == 10
    steps = [step for step, name in places if name == "train/loss"]
    assert steps == [1, 2, 3, 4, 5, 6]
    values = {(step, name): value for step, name, value in recorded}
    assert values[3, "train/loss"] == 7.3
    assert values[4, "train/loss"] == 70.4
    assert values[4, "valid/loss"] == 74.0
    shown = shown_by_tensorboard(tmp_path)
    assert [value[:2] for value in shown] == places
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


@pytest.mark.parametrize("full", ["_json", "_events", "both"])
def test_records_go_on_when_a_full_disk_has_room_again(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str], full: str
) -> None:
    written = opened(tmp_path)
    written.metrics(1, {"train/loss": 9.0})
    file = written._json
    if full == "_events":
        file = written._events._file._writer
    with open("/dev/full", "ab") as device:
        os.dup2(device.fileno(), file.fileno())
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
    told = capsys.readouterr().err
    assert told.count("cannot be written") == 1
    assert "No space left on device" in told
    lost = {"_json": {2}, "_events": set(), "both": {2, 3}}[full]
    steps = [step for step, *_ in flat(rows(tmp_path))]
    assert steps == [step for step in (1, 2, 3, 4) if step not in lost]
    shown = [step for step, *_ in shown_by_tensorboard(tmp_path)]
    assert shown == [step for step in (1, 2, 3, 4) if step not in (lost or {2})]


def test_a_full_disk_at_the_start_is_told_and_costs_no_run(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = opened(tmp_path)
    for step in (1, 2, 3):
        before.metrics(step, {"train/loss": 9.0})
    before.close()
    (tmp_path / "metrics.jsonl.unfinished").mkdir()  # What cannot be written.
    # It goes on from step 1; what came after it is made again.
    written = opened(tmp_path, first_step=1)
    written.metrics(2, {"train/loss": 8.0})
    (tmp_path / "metrics.jsonl.unfinished").rmdir()
    written.metrics(3, {"train/loss": 7.0})
    written.close()
    assert capsys.readouterr().err.count("cannot be written") == 1
    assert flat(rows(tmp_path)) == [(1, "train/loss", 9.0), (3, "train/loss", 7.0)]


def test_records_are_in_the_file_before_the_run_ends(tmp_path: pathlib.Path) -> None:
    written = opened(tmp_path)
    written.metrics(1, {"train/loss": 5.0})
    assert flat(rows(tmp_path)) == [(1, "train/loss", 5.0)]
    written.close()
