"""Train and evaluate each run once, and keep every finished step."""

import dataclasses
import datetime
import gzip
import hashlib
import json
import math
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from tests.benchmarks.quality import clock, evaluation, tasks
from tests.benchmarks.quality.clock import ROOT, Checkpoint
from tests.benchmarks.quality.systems import FOLDER, VASWANI_JAX, Setting, System
from tests.benchmarks.quality.tasks import SPLITS, Task
from tests.benchmarks.quality.text import Text, read_lines

TRAINING, RECORD = "training.json", "record.json"
# In a workdir: the short runs that choose each peer's settings.
CHOICE = "choice"
# A run with its outputs, for pages that are written where its workdir is not.
KEPT = ".json.gz"
# All settings of a run of ours.
OUR_CONFIG = "run/config.json"
# A run of ours depends on these.
SOURCES = ("vaswani_jax", "configs")
LOGGED_POINTS = 200


@dataclasses.dataclass(frozen=True)
class Run:
    """A run of a system.

    Attributes:
        task: The task that it trains on.
        system: The system that trains.
        settings_name: The name of its worker's settings.
        seed: The random seed.
        minutes: The training time.
        checkpoint_every: Updates between checkpoints of ours.
        most_lines: Lines of the held-out sets to translate; None for all.
        is_choice: Whether it is a short run, one for each settings of a system.
    """

    task: Task
    system: System
    settings_name: str
    seed: int
    minutes: float
    checkpoint_every: int
    most_lines: int | None
    is_choice: bool = False

    @property
    def setting(self) -> Setting:
        """Its settings in words, with their learning rates."""
        return self.system.settings[self.settings_name]

    @property
    def is_trial(self) -> bool:
        """True if its figures are no results."""
        return (
            self.minutes < self.task.minutes
            or self.checkpoint_every != self.task.checkpoint_every
            or self.most_lines is not None
        )

    def describe(self, text: Text) -> dict[str, Any]:
        """Return the values that a recorded run must share."""
        return {
            "settings": self.setting.words,
            "text": text.fingerprint,
            "code": fingerprint_code(self.system),
            "task": self.task.name,
            "minutes": self.minutes,
            "checkpoint_every": self.checkpoint_every,
            "most_lines": self.most_lines,
            "is_trial": self.is_trial,
        }

    @property
    def key(self) -> str:
        """Its directory in the workdir."""
        return f"{self.system.name}-{self.settings_name}-{self.seed}"

    @property
    def evaluation_minutes(self) -> list[float]:
        """The minutes of evaluation, scaled from the task's to the run's length."""
        scale = self.minutes / self.task.minutes
        return [minutes * scale for minutes in self.task.evaluation_minutes]


def complete(
    run: Run,
    text: Text,
    *,
    data: pathlib.Path,
    workdir: pathlib.Path,
    venvs: pathlib.Path,
    retrain: bool,
    train_only: bool = False,
) -> dict[str, Any]:
    """Train and evaluate a run, unless that is done; return its record.

    With `train_only` it is not evaluated, and the record has no evaluation.

    Raises:
        ValueError: The directory has a run of other values.
        FileNotFoundError: The system's interpreter is missing.
        RuntimeError: The training or an evaluation fails, or the log of the training
            has learning rates that its settings do not have. That training is kept.
    """
    directory = workdir / run.key
    if retrain:
        clock.check_ended(directory / "training.log")
        shutil.rmtree(directory, ignore_errors=True)
    if (directory / TRAINING).exists():
        recorded = json.loads((directory / TRAINING).read_text())
        _check_same(run.describe(text), recorded, directory)
    if (directory / RECORD).exists():
        return json.loads((directory / RECORD).read_text())
    python = run.system.python(venvs, sys.executable)
    if not pathlib.Path(python).exists():
        raise FileNotFoundError(f"{python} is missing: --venvs names the environments")
    job = evaluation.make_job(
        run.system,
        text,
        directory,
        settings_name=run.settings_name,
        seed=run.seed,
        checkpoint_every=round(
            run.checkpoint_every * run.system.checkpoint_interval_factor
        ),
        flags=tasks.our_flags(run.task, data=data, prepared=text.directory / "data"),
    )
    script = str(FOLDER / run.system.worker)
    if not (directory / TRAINING).exists():
        command = [python, script, json.dumps({**job, "action": "train"})]
        _train(run, directory, command, text=text)
    progress = run.system.parse(clock.read_log(directory / "training.log"))
    if wrong_rate := run.setting.find_wrong_rate(progress):
        raise RuntimeError(
            f"{run.key} logged {wrong_rate}. The training is kept in {directory}: "
            "if systems.py has the wrong rate, correct it and call again; if the "
            "worker has, correct it and pass --retrain, which deletes the training"
        )
    training = json.loads((directory / TRAINING).read_text())
    if train_only:
        return {**training, "evaluations": []}
    checkpoints = [Checkpoint(**entry) for entry in training["checkpoints"]]

    def run_job(job: Mapping[str, Any], name: str) -> None:
        clock.run_worker(
            python,
            script,
            job,
            log=directory / f"{name}.log",
            environment=run.system.environment,
        )

    evaluator = evaluation.Evaluator(
        run.system, text, directory, run.task.beam, job=job, run=run_job
    )
    parts = {
        f"evaluation.{minutes:g}": lambda minutes=minutes: evaluator.evaluate(
            checkpoints, minutes=minutes
        )
        for minutes in ([] if run.is_choice else run.evaluation_minutes)
    }
    parts["curve"] = lambda: evaluator.measure_curve(
        checkpoints,
        minutes=run.minutes,
        num_points=1 if run.is_choice else evaluation.CURVE_POINTS,
    )
    for name, compute in parts.items():
        path = directory / f"{name}.part.json"
        if not path.exists():
            print(f"{run.key}: {name}", file=sys.stderr)
            write_json(path, compute())
    results = {
        name: json.loads((directory / f"{name}.part.json").read_text())
        for name in parts
    }
    record = {
        **training,
        "curve": results.pop("curve"),
        "evaluations": list(results.values()),
    }
    write_json(directory / RECORD, record)
    return record


def choose_settings(system: System, workdir: pathlib.Path) -> str:
    """Return the name of the settings with the lowest validation loss in short runs.

    Raises:
        ValueError: Settings of several have no short run.
    """
    names = list(system.settings)
    if len(names) == 1:
        return names[0]
    losses = {
        record["settings_name"]: record["curve"][-1]["loss"]
        for record in all_records(workdir / CHOICE).values()
        if record["system"] == system.name
    }
    if missing := [name for name in names if name not in losses]:
        raise ValueError(
            f"{system.name} has {', '.join(names)}, and no short run of "
            f"{', '.join(missing)}: run --choose first, or name --settings"
        )
    return min(names, key=lambda name: rank_loss(losses[name]))


def rank_loss(loss: float) -> tuple[bool, float]:
    """Return a key by which losses are sorted: those that are no number come last."""
    return math.isnan(loss), loss


def fingerprint_code(system: System) -> str:
    """Return the first digits of the SHA-256 of the code that a run executes."""
    files = [FOLDER / system.worker]
    if system.name == VASWANI_JAX:
        for folder in SOURCES:
            files += sorted((ROOT / folder).rglob("*.py"))
    digest = hashlib.sha256()
    for file in files:
        content = file.read_bytes()
        digest.update(f"{file.relative_to(ROOT)} {len(content)} ".encode())
        digest.update(content)
    return digest.hexdigest()[:16]


def _check_same(
    described: Mapping[str, Any], recorded: Mapping[str, Any], directory: pathlib.Path
) -> None:
    differences = [
        f"{name} {recorded.get(name)} instead of {value}"
        for name, value in described.items()
        if recorded.get(name) != value
    ]
    if differences:
        raise ValueError(
            f"{directory} has a different run: {', '.join(differences)}; name another "
            "--workdir, or pass --retrain to delete it"
        )


def _train(
    run: Run, directory: pathlib.Path, command: Sequence[str], *, text: Text
) -> None:
    """Train for the minutes of the run; record checkpoints, progress and load.

    Raises:
        RuntimeError: The program ends before its time is over, or has no checkpoint at
            the first evaluation.
    """
    description = run.describe(text)
    log = directory / "training.log"
    clock.check_ended(log)
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    print(f"{run.key}: trains for {run.minutes:g} minutes: {log}", file=sys.stderr)
    gflops = [clock.measure_gflops()]
    timed = clock.run_for_seconds(
        command,
        seconds=60 * run.minutes,
        log=log,
        environment=run.system.environment,
    )
    gflops.append(clock.measure_gflops())
    progress = run.system.parse(clock.read_log(log))
    checkpoints = clock.find_checkpoints(
        run.system.find_checkpoints(directory), start=timed.start
    )
    in_time = [c for c in checkpoints if c.elapsed_seconds <= 60 * run.minutes]
    first = run.minutes if run.is_choice else run.evaluation_minutes[0]
    if not any(c.elapsed_seconds <= 60 * first for c in in_time):
        raise RuntimeError(
            f"{run.key} has no checkpoint within {first:g} minutes: {log}"
        )
    print(
        f"{run.key}: {len(in_time)} checkpoints; "
        f"other processes took {timed.load.share:.1%} of the machine"
        f"{' (DISTURBED)' if timed.load.is_disturbed else ''}",
        file=sys.stderr,
    )
    step = max(1, len(progress) // LOGGED_POINTS)
    setup = json.loads((directory / "settings.json").read_text())
    if (directory / OUR_CONFIG).exists():
        setup["config"] = json.loads((directory / OUR_CONFIG).read_text())
    write_json(
        directory / TRAINING,
        {
            "system": run.system.name,
            "title": run.system.title,
            **description,
            "settings_name": run.settings_name,
            "seed": run.seed,
            "started": datetime.datetime.fromtimestamp(
                timed.start, datetime.UTC
            ).isoformat(timespec="seconds"),
            "commit": find_commit(),
            "machine": describe_machine(),
            "gflops": gflops,
            "load": {**dataclasses.asdict(timed.load), "share": timed.load.share},
            "is_disturbed": timed.load.is_disturbed,
            "setup": setup,
            "progress": [dataclasses.asdict(point) for point in progress[::step]],
            "checkpoints": [dataclasses.asdict(c) for c in in_time],
        },
    )


def find_commit() -> str:
    """Return the commit, with `+` if a source has changed since."""
    git = ["git", "-C", str(ROOT)]
    head = subprocess.run(
        [*git, "rev-parse", "--short=12", "HEAD"], capture_output=True, text=True
    )
    changes = subprocess.run(
        [*git, "status", "--porcelain", "--", *SOURCES], capture_output=True, text=True
    )
    return head.stdout.strip() + ("+" if changes.stdout.strip() else "")


def describe_machine() -> dict[str, Any]:
    """Return the processor, the number of cores and the operating system."""
    lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
    names = [line.partition(": ")[2] for line in lines if line.startswith("model name")]
    return {
        "processor": names[0] if names else platform.processor(),
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
    }


def write_json(path: pathlib.Path, content: Any) -> None:
    """Write JSON; the file is replaced at once, never half written."""
    temporary = path.with_name(f"{path.name}.tmp")
    temporary.write_text(json.dumps(content, indent=1) + "\n")
    temporary.replace(path)


def all_records(workdir: pathlib.Path) -> dict[str, dict[str, Any]]:
    """Return the records of all complete runs by their keys."""
    return {
        path.parent.name: json.loads(path.read_text())
        for path in sorted(workdir.glob(f"*/{RECORD}"))
    }


def keep(workdir: pathlib.Path, folder: pathlib.Path) -> None:
    """Write each complete run, with its outputs, into one file of a folder.

    The short runs of a workdir go into its `choice.json`.
    """
    folder.mkdir(parents=True, exist_ok=True)
    choices = read_choices(folder)
    for key, record in all_records(workdir / CHOICE).items():
        choices[key] = without_directories(record)
    if choices:
        write_json(folder / f"{CHOICE}.json", choices)
    for key, record in all_records(workdir).items():
        outputs = [
            {
                split: read_lines(workdir / key / evaluation["outputs"][split])
                for split in SPLITS
            }
            for evaluation in record["evaluations"]
        ]
        content = {"record": without_directories(record), "outputs": outputs}
        data = json.dumps(content, ensure_ascii=False).encode()
        # Without a time, the same run is the same bytes.
        (folder / f"{key}{KEPT}").write_bytes(gzip.compress(data, mtime=0))


def read_choices(folder: pathlib.Path) -> dict[str, dict[str, Any]]:
    """Return the short runs that `keep` has written, by their keys."""
    path = folder / f"{CHOICE}.json"
    return json.loads(path.read_text()) if path.exists() else {}


def read_kept(folder: pathlib.Path) -> dict[str, dict[str, Any]]:
    """Return what `keep` has written by the keys of the runs, ours first."""
    kept = {
        path.name.removesuffix(KEPT): json.loads(gzip.decompress(path.read_bytes()))
        for path in sorted(folder.glob(f"*{KEPT}"))
    }
    ours_first = sorted(kept, key=lambda k: kept[k]["record"]["system"] != VASWANI_JAX)
    return {key: kept[key] for key in ours_first}


def without_directories(value: Any) -> Any:
    """Return JSON without the directories of absolute paths.

    >>> without_directories({"text": ["a/b /runs/text/train.source", 3]})
    {'text': ['a/b train.source', 3]}
    """
    if isinstance(value, str):
        return re.sub(r"(?<![\w.~/])/(?:[^\s/]+/)+", "", value)
    if isinstance(value, Mapping):
        return {key: without_directories(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [without_directories(entry) for entry in value]
    return value
