"""Section 5, what a run tells: a live line, JSON lines and TensorBoard events."""

import contextlib
import json
import math
import pathlib
import shutil
import sys
import time
from collections.abc import Mapping
from typing import IO, Any

from tensorboardX import record_writer
from tensorboardX.proto import event_pb2, summary_pb2

from vaswani_jax.core import files

ELAPSED = "time/elapsed_seconds"


class Log:
    """Writes metrics in every form; silent in all processes but the main one."""

    def __init__(
        self, workdir: pathlib.Path, *, first_step: int, num_steps: int, active: bool
    ) -> None:
        self._active = active
        self._num_steps = num_steps
        self._first_step = first_step
        self._started = time.monotonic()
        self._line_open = False
        self._lost = False
        self._open_files: list[IO[str] | _Events] = []
        self._elapsed_before = 0.0
        self._workdir = workdir
        if active:
            self._open_or_lose(first_step)

    def _open_or_lose(self, first_step: int) -> None:
        # Where the records end that are kept, until they have been cut there.
        self._cut_at: int | None = first_step
        try:
            self._open(first_step)
        except OSError as error:
            self._lose(error)

    def _open(self, first_step: int) -> None:
        """Begin after a step, and keep the records up to it."""
        path = self._workdir / "metrics.jsonl"
        kept = _records_up_to(path, first_step)
        files.write_atomically(path, "".join(f"{line}\n" for line in kept))
        self._json = open(path, "a", encoding="utf-8")  # noqa: SIM115
        self._events = _Events(self._workdir / "tensorboard", first_step + 1)
        self._open_files = [self._json, self._events]
        if kept and not self._elapsed_before:
            self._elapsed_before = json.loads(kept[-1])[ELAPSED]
        self._cut_at = None

    def rewind(self, step: int) -> None:
        """Forget what came after a step: it will be made again."""
        if self._active:
            self._close()
            self._open_or_lose(step)

    def message(self, text: str) -> None:
        """A line that stays."""
        if not self._active:
            return
        if self._line_open:
            print(file=sys.stderr)
            self._line_open = False
        print(text, file=sys.stderr, flush=True)

    def metrics(self, step: int, values: Mapping[str, float]) -> None:
        """Record values of a step, in the file and for TensorBoard."""
        if not self._active:
            return
        elapsed = self._elapsed_before + time.monotonic() - self._started
        # JSON has no infinity; an early perplexity can be one.
        finite = {k: v if math.isfinite(v) else None for k, v in values.items()}
        record = {"step": step, ELAPSED: round(elapsed, 3), **finite}
        try:
            if not self._open_files:
                self._open(step if self._cut_at is None else self._cut_at)
            self._json.write(json.dumps(record) + "\n")
            self._json.flush()
            self._events.write(step, values)
        except OSError as error:
            self._lose(error)

    def _lose(self, error: OSError) -> None:
        # A record cut in the middle is removed when there is room again.
        self._close()
        if not self._lost:
            self.message(
                f"warning: {self._workdir / 'metrics.jsonl'} cannot be written "
                f"({error}); training goes on, records are lost until it can be"
            )
        self._lost = True

    def progress(self, step: int, values: Mapping[str, float]) -> None:
        """The live line: rewritten on a terminal, one line each time elsewhere."""
        if not self._active:
            return
        done = step - self._first_step
        elapsed = time.monotonic() - self._started
        left = elapsed / max(done, 1) * (self._num_steps - step)
        text = (
            f"step {step:,} of {self._num_steps:,}  "
            f"loss {values['train/loss']:.3f}  "
            f"perplexity {values['train/perplexity']:.2f}  "
            f"lr {values['train/learning_rate']:.2e}  "
            f"{values['time/tokens_per_second']:,.0f} target tokens/s  "
            f"left {_clock(left)}"
        )
        if sys.stderr.isatty():
            # A line that wraps could not be rewritten.
            text = text[: shutil.get_terminal_size().columns - 1]
            print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)
            self._line_open = True
        else:
            print(text, file=sys.stderr, flush=True)

    def close(self) -> None:
        """End the live line and the files."""
        if self._active:
            if self._line_open:
                print(file=sys.stderr)
            self._close()

    def _close(self) -> None:
        while self._open_files:
            with contextlib.suppress(OSError):  # It has been told.
                self._open_files.pop().close()


class _Events:
    """A file of TensorBoard's; an error is the caller's, not a thread's."""

    def __init__(self, directory: pathlib.Path, first_step: int) -> None:
        directory.mkdir(exist_ok=True)
        # TensorBoard reads files in the order of their names.
        self._file = record_writer.RecordWriter(
            str(directory / f"events.out.tfevents.{time.time_ns()}")
        )
        self._write(0, file_version="brain.Event:2")
        start = event_pb2.SessionLog(status=event_pb2.SessionLog.START)
        self._write(first_step, session_log=start)

    def write(self, step: int, values: Mapping[str, float]) -> None:
        shown = [
            summary_pb2.Summary.Value(tag=name, simple_value=value)
            for name, value in values.items()
        ]
        self._write(step, summary=summary_pb2.Summary(value=shown))

    def _write(self, step: int, **what: Any) -> None:
        event = event_pb2.Event(wall_time=time.time(), step=step, **what)
        self._file.write(event.SerializeToString())
        self._file.flush()

    def close(self) -> None:
        self._file.close()


def _records_up_to(path: pathlib.Path, step: int) -> list[str]:
    """Records of updates that the checkpoint has; later ones will be made again."""
    if not path.exists():
        return []
    rows = path.read_text(encoding="utf-8", errors="replace").splitlines()
    if rows and not rows[-1].endswith("}"):
        rows.pop()  # a crash has cut it
    kept = []
    for number, row in enumerate(rows, start=1):
        try:
            record = json.loads(row)
            if record["step"] <= step and record[ELAPSED] >= 0:
                kept.append(row)
        except (KeyError, TypeError, ValueError):
            raise ValueError(
                f"{path}, line {number} is damaged: {row[:40]!r}; remove it"
            ) from None
    return kept


def _clock(seconds: float) -> str:
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}"
