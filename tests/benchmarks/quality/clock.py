"""Run a program for a fixed time, and measure the load of other processes.

The clock starts with the process: starting it, compiling, and reading the text count.
"""

import contextlib
import dataclasses
import json
import os
import pathlib
import signal
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import IO

import numpy as np

ROOT = pathlib.Path(__file__).parents[3]
SAMPLE_SECONDS = 5.0
# Time to finish writing a checkpoint; it is not used.
GRACE_SECONDS = 15.0
# Share of all cores' time; above it the page marks a run.
DISTURBED_SHARE = 0.03
TICKS = os.sysconf("SC_CLK_TCK")


@dataclasses.dataclass(frozen=True)
class Load:
    """The shares of the machine that a run and other processes took.

    Attributes:
        seconds: The time between the samples.
        cores: The cores of the machine.
        run_seconds: CPU seconds of the run.
        other_seconds: CPU seconds of all other processes.
        stolen_seconds: CPU seconds that the hypervisor gave to others.
        worst_share: The largest share of others and the hypervisor in a minute.
    """

    seconds: float
    cores: int
    run_seconds: float
    other_seconds: float
    stolen_seconds: float
    worst_share: float

    @property
    def share(self) -> float:
        """The share of the machine that others and the hypervisor took."""
        return (self.other_seconds + self.stolen_seconds) / (self.seconds * self.cores)

    @property
    def is_disturbed(self) -> bool:
        """True if others took more than `DISTURBED_SHARE`."""
        return self.share > DISTURBED_SHARE


@dataclasses.dataclass(frozen=True)
class Sample:
    """Counters at a time of a run.

    Attributes:
        elapsed_seconds: Wall time since the start of the run.
        busy_seconds: CPU time of all processes since the start of the machine.
        stolen_seconds: CPU time that the hypervisor gave to others, since the start of
            the machine.
        run_seconds: CPU time of the run since its start.
    """

    elapsed_seconds: float
    busy_seconds: float
    stolen_seconds: float
    run_seconds: float


@dataclasses.dataclass(frozen=True)
class Checkpoint:
    """A checkpoint, and the seconds from the start of the run to its last write."""

    path: str
    step: int
    elapsed_seconds: float


@dataclasses.dataclass(frozen=True)
class TimedRun:
    """A finished run: its start in seconds since the epoch, and its load."""

    start: float
    load: Load


def measure_gflops(seconds: float = 5.0) -> float:
    """Return how many billion float32 operations a second the machine does now.

    Runs of several days compare only if the machine was equally fast. It multiplies
    matrices on all cores, and takes the median time.
    """
    size = 1024
    matrix = np.random.default_rng(0).standard_normal((size, size), dtype=np.float32)
    times: list[float] = []
    while len(times) < 3 or sum(times) < seconds:
        begin = time.perf_counter()
        matrix @ matrix
        times.append(time.perf_counter() - begin)
    return 2 * size**3 / statistics.median(times) / 1e9


def run_for_seconds(
    command: Sequence[str],
    *,
    seconds: float,
    log: pathlib.Path,
    environment: Mapping[str, str],
    report: Callable[[str], None] = print,
) -> TimedRun:
    """Run a program until its time is over; return its start and its load.

    The log gets each line of its output, with the seconds since the start before it.
    While the program runs, `session_file(log)` holds its session id.

    Raises:
        RuntimeError: The program ends before its time is over.
        ValueError: The program of an earlier call, with this log, is still running.
    """
    check_ended(log)
    start = time.time()
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        cwd=ROOT,
        env={**os.environ, **environment},
        start_new_session=True,
        text=True,
        errors="replace",
    )
    session_file(log).write_text(str(process.pid))
    assert process.stdout is not None
    reader = threading.Thread(target=_stamp, args=(process.stdout, log, start))
    reader.start()
    samples, cpu = [_sample(process.pid, start, {})], {}
    try:
        while (left := start + seconds - time.time()) > 0:
            try:
                process.wait(min(left, SAMPLE_SECONDS))
            except subprocess.TimeoutExpired:
                samples.append(_sample(process.pid, start, cpu))
                continue
            raise RuntimeError(
                f"{command[0]} ended with {process.returncode} after "
                f"{time.time() - start:.0f} of {seconds:.0f} seconds: {log}"
            )
        report(f"stopped after {seconds:.0f} seconds")
        time.sleep(min(GRACE_SECONDS, seconds / 4))
    finally:
        _end(process.pid)
        process.wait()
        reader.join(10)
        process.stdout.close()
        session_file(log).unlink()
    return TimedRun(start, measure_load(samples))


def session_file(log: pathlib.Path) -> pathlib.Path:
    """Return the file with the session of the program that writes a log."""
    return log.with_suffix(".session")


def check_ended(log: pathlib.Path) -> None:
    """Check that no program of an earlier call still writes to a log.

    Raises:
        ValueError: Processes of its session are running.
    """
    path = session_file(log)
    if not path.exists():
        return
    session = int(path.read_text())
    pids = [
        int(stat.parent.name)
        for stat, fields in _processes()
        if int(fields[3]) == session and fields[0] != "Z"
    ]
    if pids:
        raise ValueError(
            f"processes {', '.join(map(str, sorted(pids)))} of an earlier call are "
            f"still running (session file: {path}): end them first"
        )


def _processes() -> Iterator[tuple[pathlib.Path, list[str]]]:
    """Yield the path of the status of each process, and its fields from the third."""
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # It has ended.
            # After the name, which may have spaces and brackets.
            yield stat, stat.read_text().rpartition(")")[2].split()


def measure_load(samples: Sequence[Sample], cores: int | None = None) -> Load:
    """Return the load between the first and the last sample.

    >>> quiet, busy = Sample(0, 5.0, 0, 0.0), Sample(60, 125.0, 1, 100.0)
    >>> load = measure_load([quiet, busy], cores=2)
    >>> load.other_seconds, round(load.share, 3), load.is_disturbed
    (20.0, 0.175, True)
    """
    cores = cores or os.cpu_count() or 1

    def measure_others(first: Sample, last: Sample) -> float:
        busy_seconds = last.busy_seconds - first.busy_seconds
        run_seconds = last.run_seconds - first.run_seconds
        return max(0.0, busy_seconds - run_seconds)

    first, last = samples[0], samples[-1]
    shares = [0.0]
    for sample in samples:
        end = next(
            (s for s in samples if s.elapsed_seconds >= sample.elapsed_seconds + 60),
            None,
        )
        if end:
            lost_seconds = measure_others(sample, end)
            lost_seconds += end.stolen_seconds - sample.stolen_seconds
            seconds = end.elapsed_seconds - sample.elapsed_seconds
            shares.append(lost_seconds / (seconds * cores))
    return Load(
        seconds=last.elapsed_seconds - first.elapsed_seconds,
        cores=cores,
        run_seconds=last.run_seconds - first.run_seconds,
        other_seconds=measure_others(first, last),
        stolen_seconds=last.stolen_seconds - first.stolen_seconds,
        worst_share=max(shares),
    )


def _stamp(output: IO[str], log: pathlib.Path, start: float) -> None:
    with log.open("w", encoding="utf-8") as file:
        for line in output:
            print(f"{time.time() - start:.2f}\t{line.rstrip()}", file=file, flush=True)


def _sample(session: int, start: float, cpu: dict[int, float]) -> Sample:
    """Return the counters; `cpu` keeps the seconds of the session's processes."""
    for stat, fields in _processes():
        if int(fields[3]) == session:
            seconds = (int(fields[11]) + int(fields[12])) / TICKS
            pid = int(stat.parent.name)
            cpu[pid] = max(cpu.get(pid, 0.0), seconds)
    with open("/proc/stat", encoding="ascii") as file:
        user, nice, system, _, _, irq, softirq, steal = map(
            int, file.readline().split()[1:9]
        )
    return Sample(
        elapsed_seconds=time.time() - start,
        busy_seconds=(user + nice + system + irq + softirq) / TICKS,
        stolen_seconds=steal / TICKS,
        run_seconds=sum(cpu.values()),
    )


def _end(session: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(session, signal.SIGKILL)


def find_checkpoints(
    paths: Mapping[int, pathlib.Path], *, start: float
) -> list[Checkpoint]:
    """Return checkpoints by their step, with the time of their newest file."""
    checkpoints = []
    for step, path in sorted(paths.items()):
        files = [path, *path.rglob("*")] if path.is_dir() else [path]
        newest = max(file.stat().st_mtime for file in files)
        checkpoints.append(Checkpoint(str(path), step, newest - start))
    return checkpoints


def choose_checkpoints(
    checkpoints: Sequence[Checkpoint], *, until_seconds: float, count: int
) -> list[Checkpoint]:
    """Return the newest checkpoints written until a time, oldest first.

    Raises:
        ValueError: Fewer checkpoints are in time.
    """
    in_time = [c for c in checkpoints if c.elapsed_seconds <= until_seconds]
    if not 0 < count <= len(in_time):
        raise ValueError(
            f"needs {count} checkpoints within {until_seconds:.0f} s, "
            f"found {len(in_time)}"
        )
    return sorted(in_time, key=lambda checkpoint: checkpoint.step)[-count:]


def read_log(log: pathlib.Path) -> list[tuple[float, str]]:
    """Return the seconds and the text of each line."""
    lines = []
    # Programs write form feeds and U+2028, too, which splitlines() takes for ends.
    for line in log.read_text(encoding="utf-8").split("\n")[:-1]:
        elapsed_seconds, _, text = line.partition("\t")
        lines.append((float(elapsed_seconds), text))
    return lines


def run_worker(
    python: pathlib.Path | str,
    script: pathlib.Path | str,
    job: Mapping[str, object],
    *,
    log: pathlib.Path,
    environment: Mapping[str, str],
) -> None:
    """Run a worker to its end, on a job.

    Raises:
        RuntimeError: The worker fails.
    """
    with log.open("w", encoding="utf-8") as file:
        result = subprocess.run(
            [str(python), str(script), json.dumps(job)],
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            cwd=ROOT,
            env={**os.environ, **environment},
            check=False,
        )
    if result.returncode:
        tail = log.read_text(encoding="utf-8", errors="replace")[-1500:]
        print(tail, file=sys.stderr)
        raise RuntimeError(f"{script} failed with {result.returncode}: {log}")
