"""Let a training program run for so many minutes, and measure what ran beside it.

The clock starts with the process: starting it, compiling, and reading the text count.
"""

import contextlib
import dataclasses
import json
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import IO

ROOT = pathlib.Path(__file__).parents[3]
SAMPLE_SECONDS = 5.0
# A checkpoint that was begun in time is written to its end, but not read.
GRACE_SECONDS = 15.0
# Share of all cores' time; above it the page marks a run.
DISTURBED_SHARE = 0.03
TICKS = os.sysconf("SC_CLK_TCK")


@dataclasses.dataclass(frozen=True)
class Load:
    """The shares of the machine that a run and others took.

    Attributes:
        seconds: The time between the samples.
        cores: The cores of the machine.
        run_seconds: CPU seconds of the run.
        other_seconds: CPU seconds of all other processes.
        stolen_seconds: CPU seconds that the hypervisor gave to others.
        worst: The largest share that others and the hypervisor had of a minute.
    """

    seconds: float
    cores: int
    run_seconds: float
    other_seconds: float
    stolen_seconds: float
    worst: float

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
    """Counters since the machine, or the run, has started; all in seconds."""

    elapsed: float
    busy: float
    stolen: float
    run: float


@dataclasses.dataclass(frozen=True)
class Checkpoint:
    """A checkpoint and when it was on the disk, in seconds since the start."""

    path: str
    step: int
    elapsed: float


def run_by_the_clock(
    command: Sequence[str],
    *,
    seconds: float,
    log: pathlib.Path,
    environment: Mapping[str, str],
    report: Callable[[str], None] = print,
) -> tuple[float, Load]:
    """Run a program until its time is over; return its start and the load.

    Each line of its output goes to the log, after the seconds since the start.

    Raises:
        RuntimeError: It ends before.
    """
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
    return start, measure_load(samples)


def measure_load(samples: Sequence[Sample], cores: int | None = None) -> Load:
    """Return the load between the first and the last sample.

    >>> quiet, busy = Sample(0, 5, 0, 0), Sample(60, 125, 1, 100)
    >>> load = measure_load([quiet, busy], cores=2)
    >>> load.other_seconds, round(load.share, 3), load.is_disturbed
    (20.0, 0.175, True)
    """
    cores = cores or os.cpu_count() or 1

    def take_of_others(first: Sample, last: Sample) -> float:
        busy, run = last.busy - first.busy, last.run - first.run
        return max(0.0, busy - run)

    first, last = samples[0], samples[-1]
    shares = [0.0]
    for sample in samples:
        later = [s for s in samples if s.elapsed >= sample.elapsed + 60]
        if later:
            lost = take_of_others(sample, later[0]) + later[0].stolen - sample.stolen
            shares.append(lost / ((later[0].elapsed - sample.elapsed) * cores))
    return Load(
        seconds=last.elapsed - first.elapsed,
        cores=cores,
        run_seconds=last.run - first.run,
        other_seconds=take_of_others(first, last),
        stolen_seconds=last.stolen - first.stolen,
        worst=max(shares),
    )


def _stamp(output: IO[str], log: pathlib.Path, start: float) -> None:
    with log.open("w", encoding="utf-8") as file:
        for line in output:
            print(f"{time.time() - start:.2f}\t{line.rstrip()}", file=file, flush=True)


def _sample(session: int, start: float, cpu: dict[int, float]) -> Sample:
    """Return the counters; `cpu` keeps what ended processes of the session took."""
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            # After the name, which may have spaces and brackets.
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:  # It has ended.
            continue
        if int(fields[3]) == session:
            seconds = (int(fields[11]) + int(fields[12])) / TICKS
            pid = int(stat.parent.name)
            cpu[pid] = max(cpu.get(pid, 0.0), seconds)
    with open("/proc/stat", encoding="ascii") as file:
        user, nice, system, _, _, irq, softirq, steal = map(
            int, file.readline().split()[1:9]
        )
    return Sample(
        elapsed=time.time() - start,
        busy=(user + nice + system + irq + softirq) / TICKS,
        stolen=steal / TICKS,
        run=sum(cpu.values()),
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


def choose(
    checkpoints: Sequence[Checkpoint], *, until_seconds: float, count: int
) -> list[Checkpoint]:
    """Return the newest checkpoints that were on the disk by then, oldest first.

    Raises:
        ValueError: There are not so many.
    """
    in_time = [c for c in checkpoints if c.elapsed <= until_seconds]
    if not 0 < count <= len(in_time):
        raise ValueError(
            f"{count} checkpoints of {len(in_time)} within {until_seconds:.0f} s"
        )
    return sorted(in_time, key=lambda checkpoint: checkpoint.step)[-count:]


def read_log(log: pathlib.Path) -> list[tuple[float, str]]:
    """Return the seconds and the text of each line."""
    lines = []
    for line in log.read_text(encoding="utf-8").splitlines():
        elapsed, _, text = line.partition("\t")
        lines.append((float(elapsed), text))
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
        RuntimeError: It fails.
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
