"""Record the starts of a run, and the software that it starts with."""

import contextlib
import dataclasses
import datetime
import functools
import importlib.metadata
import json
import os
import pathlib
import platform
import socket
import subprocess
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from vaswani_jax.checkpoints.compatibility import Change
from vaswani_jax.core import config, files, parallel

# Their versions decide the digits, and whether files can be read.
PACKAGES = (
    *("jax", "jaxlib", "flax", "optax", "numpy", "sentencepiece"),
    *("orbax-checkpoint", "vaswani-jax"),
)


def refuse_other_config(workdir: pathlib.Path) -> None:
    """Refuse a directory whose config.json is no run's: a start would replace it.

    Raises:
        ValueError: It is not the configuration of a run. The message names it.
        OSError: It cannot be read.
    """
    path = workdir / "config.json"
    if not path.exists() or (workdir / "starts.jsonl").exists():
        return
    try:
        values = dict(json.loads(path.read_text(encoding="utf-8")))
    except (TypeError, ValueError):
        values = {}
    if not {"model", "data", "training"} <= values.keys():
        raise ValueError(
            f"{path} is not the record of a run, and training would replace it: move "
            "it, or name another --workdir"
        )


def refuse_random_restart(workdir: pathlib.Path, *, name: str) -> None:
    """Refuse to begin from random parameters a run that began from given ones.

    Call it if the run has no checkpoints, and no --init_from names parameters.

    Args:
        workdir: The run's directory, or its local copy.
        name: The directory as the user names it, for the error.

    Raises:
        ValueError: Its last start from step 0 took other parameters than random ones.
        OSError: starts.jsonl cannot be read.
    """
    starts = [start for start in read_starts(workdir) if start.get("step") == 0]
    origin = starts[-1].get("init_from") if starts else None
    if origin:
        raise ValueError(
            f"{name} has no checkpoint, and began from the parameters of {origin}: "
            "without --init_from it would begin from random ones; add "
            f"--init_from={origin}, or name another --workdir"
        )


def record_start(
    workdir: pathlib.Path,
    settings: config.Config,
    *,
    step: int,
    changes: list[Change],
    init_from: str = "",
) -> None:
    """Write config.json, and add a line to starts.jsonl.

    Args:
        workdir: Where they lie.
        settings: The settings of this start.
        step: The step from which the run resumes; 0 if it is new.
        changes: Settings that differ from those of the checkpoint.
        init_from: The origin of its first parameters; "" if they were random.
    """
    values = config.to_dict(settings)
    files.write_atomically(workdir / "config.json", json.dumps(values, indent=1))
    line = {
        "id": uuid.uuid4().hex,
        "host": socket.gethostname(),
        "time": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "step": step,
        "init_from": init_from,
        "devices": parallel.describe(),
        "environment": describe_software(),
        "changes": [dataclasses.asdict(change) for change in changes],
        "config": values,
    }
    with open(workdir / "starts.jsonl", "a+b") as file:
        # A full disk may have cut off the last line.
        file.seek(max(0, file.seek(0, os.SEEK_END) - 1))
        is_cut_off = file.read(1) not in (b"", b"\n")
        file.write(b"\n" * is_cut_off + json.dumps(line).encode() + b"\n")


def identify_run(workdir: pathlib.Path) -> dict[str, str]:
    """Return the identity of a workdir's run: its `id`, and where it lies.

    The id is that of its last start from step 0; "" if it has recorded none.
    """
    starts = [start for start in read_starts(workdir) if start.get("step") == 0]
    run_id = _last_id(starts)[:8]
    return {"id": run_id, "workdir": str(workdir.absolute())}


def newest_start(workdir: pathlib.Path) -> str:
    """Return the id of a workdir's last start; "" if it has recorded none."""
    return _last_id(read_starts(workdir))


def read_starts(workdir: pathlib.Path) -> list[dict[str, Any]]:
    """Return the starts that a workdir records, as `record_start` writes them.

    A line that a full disk has cut off is left out.
    """
    path = workdir / "starts.jsonl"
    starts = []
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
        with contextlib.suppress(ValueError, TypeError):
            starts.append(dict(json.loads(line)))
    return starts


def _last_id(starts: Sequence[Mapping[str, Any]]) -> str:
    """Return the id of the last start that has one; "" if none has."""
    # Starts of old versions have no id.
    ids = [str(start["id"]) for start in starts if "id" in start]
    return ids[-1] if ids else ""


@functools.cache
def describe_software() -> dict[str, str]:
    """Return the versions of Python and packages, and the revision of this source."""
    versions = {"python": platform.python_version(), "revision": revision()}
    for name in PACKAGES:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            versions[name] = "not installed"
    return versions


def revision() -> str:
    """Return the commit of this source, "+" if it was changed; else "unknown"."""
    package = pathlib.Path(__file__).parents[1]

    def git(*arguments: str) -> str:
        command = ["git", "-C", str(package), *arguments]
        process = subprocess.run(
            command, capture_output=True, encoding="utf-8", check=True
        )
        return process.stdout.strip()

    try:
        # A virtual environment may lie in another repository, which does not track it.
        if not git("ls-files", __file__):
            return "unknown"
        changed_files = git(
            "status", "--porcelain", "--untracked-files=no", str(package)
        )
        return git("rev-parse", "HEAD")[:12] + "+" * bool(changed_files)
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def software_changes(recorded: dict[str, str]) -> list[str]:
    """Return in words what differs from a recorded description."""
    return [
        f"{name} was {recorded[name]}, is {version}"
        for name, version in describe_software().items()
        if recorded.get(name, version) != version
    ]
