"""Record metrics in metrics.jsonl and for TensorBoard, and log the progress."""

import contextlib
import json
import logging
import math
import pathlib
import sys
import time
from collections.abc import Mapping, Sequence
from typing import IO, Any

from vaswani_jax.core import files, types
from vaswani_jax.training import event_file

FILE = "metrics.jsonl"
ELAPSED = "time/elapsed_seconds"
# Every evaluation has it.
EVALUATION = "time/evaluation_seconds"

logger = logging.getLogger(__name__)


class MetricsLog:
    """The recorded metrics of a run; a resumed run continues them.

    On a full disk training continues, and records are lost until there is room again.

    Attributes:
        latest: The latest finite value of each metric.
    """

    def __init__(
        self,
        workdir: pathlib.Path,
        *,
        first_step: int,
        num_steps: int,
        is_active: bool,
        loggers: Sequence[types.MetricsLogger] = (),
    ) -> None:
        """Note where the files lie; `open` opens them.

        Args:
            workdir: Their directory.
            first_step: The step that the run resumes from; 0 if it is new.
            num_steps: The step at which it ends, for the time that is left.
            is_active: Whether to write; True in only one process.
            loggers: Get the metrics, too. One that fails gets no more of them.
        """
        self.latest: dict[str, float] = {}
        self._is_active = is_active
        self._num_steps = num_steps
        self._first_step = first_step
        self._start_time = time.monotonic()
        self._elapsed_before: float | None = None  # Known when the file is read.
        self._has_warned = False
        self._workdir = workdir
        self._loggers = list(loggers)
        # Set until the records after this step are dropped.
        self._drop_after: int | None = first_step
        self._drops_evaluation = False
        self._files: tuple[IO[str], event_file.EventFile] | None = None

    def open(self, step: int, *, is_evaluated: bool = True) -> None:
        """Open the files without the records after a step, which are made again.

        Args:
            step: The step.
            is_evaluated: False if the step is evaluated again; then the records of its
                evaluation are dropped, too.

        Raises:
            ValueError: metrics.jsonl is damaged.
        """
        if not self._is_active:
            return
        self.close()
        self._drop_after = step
        self._drops_evaluation = not is_evaluated
        try:
            self._files = self._open_files(step)
        except OSError as error:
            self._stop_recording(error)

    def _open_files(self, step: int) -> tuple[IO[str], event_file.EventFile]:
        """Open the files with the records up to a step."""
        path = self._workdir / FILE
        lines = _lines_up_to(path, step)
        records = [json.loads(line) for line in lines]
        if self._drops_evaluation:
            records = [
                record
                for record in records
                if record["step"] < step or EVALUATION not in record
            ]
            lines = [json.dumps(record) for record in records]
        files.write_atomically(path, "".join(f"{line}\n" for line in lines))
        if self._elapsed_before is None:
            self._elapsed_before = records[-1][ELAPSED] if records else 0.0
        self.latest = {}
        for record in records:
            self._remember(record)
        directory = self._workdir / "tensorboard"
        first_step = step if self._drops_evaluation else step + 1
        events = event_file.create(directory, first_step=first_step)
        for record in records:
            if record["step"] >= first_step:
                events.write(
                    step,
                    {
                        name: math.inf if value is None else value
                        for name, value in record.items()
                        if name not in ("step", ELAPSED)
                    },
                )
        file = open(path, "a", encoding="utf-8")  # noqa: SIM115
        self._drop_after = None
        self._drops_evaluation = False
        return file, events

    def _remember(self, values: Mapping[str, Any]) -> None:
        for name, value in values.items():
            if name not in ("step", ELAPSED) and value is not None:
                self.latest[name] = value

    def metrics(self, step: int, values: Mapping[str, float]) -> None:
        """Record values of a step."""
        # JSON has no infinity; an early perplexity can be one.
        finite = {k: v if math.isfinite(v) else None for k, v in values.items()}
        self._remember(finite)
        if not self._is_active:
            return
        try:
            if self._files is None:
                drop_after = step if self._drop_after is None else self._drop_after
                self._files = self._open_files(drop_after)
                self._remember(finite)  # Opening has reset it to the file's records.
            elapsed = (
                time.monotonic() - self._start_time + (self._elapsed_before or 0.0)
            )
            stamp = {"step": step, ELAPSED: round(elapsed, 3)}
            # First for the order, last so that an evaluator's values cannot replace it.
            record = stamp | finite | stamp
            file, events = self._files
            file.write(json.dumps(record) + "\n")
            file.flush()
            events.write(step, values)
        except OSError as error:
            self._stop_recording(error)
        numbers = {name: value for name, value in finite.items() if value is not None}
        for metrics_logger in list(self._loggers):
            try:
                metrics_logger(step, numbers)
            except Exception as error:  # Others' code; training continues.
                self._loggers.remove(metrics_logger)
                logger.warning(
                    f"a logger of metrics failed at step {step:,} and is dropped: "
                    f"{error!r}"
                )

    def _stop_recording(self, error: OSError) -> None:
        # Opening the file again removes a record that was cut off.
        self.close()
        if not self._has_warned:
            logger.warning(
                f"{self._workdir / FILE} cannot be written ({error}); "
                "training continues, records are lost until it can be"
            )
        self._has_warned = True

    def progress(self, step: int, values: Mapping[str, float]) -> None:
        """Log how far training is; on a terminal the line replaces the one before."""
        elapsed = time.monotonic() - self._start_time
        seconds_per_step = elapsed / max(step - self._first_step, 1)
        clipping = ""
        if "train/clipped_share" in values:
            clipping = (
                f"gradient norm {values['train/gradient_norm']:.2f} "
                f"({values['train/clipped_share']:.0%} clipped)  "
            )
        logger.info(
            f"step {step:,} of {self._num_steps:,}  "
            f"loss {values['train/loss']:.3f}  "
            f"perplexity {values['train/perplexity']:.2f}  "
            f"lr {values['train/learning_rate']:.2e}  {clipping}"
            f"{values['time/tokens_per_second']:,.0f} target tokens/s  "
            f"left {_clock(seconds_per_step * (self._num_steps - step))}",
            extra={"is_progress": True},
        )

    def close(self) -> None:
        """Close the files."""
        if self._files is not None:
            for file in self._files:
                with contextlib.suppress(OSError):  # A full disk was warned of.
                    file.close()
            self._files = None


def read(workdir: pathlib.Path) -> list[dict[str, Any]]:
    """Return the records of a run, also of one that is training.

    Raises:
        ValueError: A line is damaged.
    """
    return [json.loads(line) for line in _lines_up_to(workdir / FILE, sys.maxsize)]


def _lines_up_to(path: pathlib.Path, step: int) -> list[str]:
    """Return the records of a file up to a step; later updates are made again."""
    if not path.exists():
        return []
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    if lines and not lines[-1].endswith("}"):
        lines.pop()  # A crash has cut it off.
    kept_lines = []
    for number, line in enumerate(lines, start=1):
        try:
            record = json.loads(line)
            if record["step"] <= step and record[ELAPSED] >= 0:
                kept_lines.append(line)
        except (KeyError, TypeError, ValueError):
            raise ValueError(
                f"{path}, line {number} is damaged: {line[:40]!r}; remove it"
            ) from None
    return kept_lines


def _clock(seconds: float) -> str:
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}"
