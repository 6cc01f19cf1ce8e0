"""Record the starts of a run: its settings, devices and software."""

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
from typing import IO

from vaswani_jax.checkpoints.compatibility import Change
from vaswani_jax.core import config, files, parallel

# Their versions decide the digits, and whether files can be read.
PACKAGES = (
    *("jax", "jaxlib", "flax", "optax", "numpy", "sentencepiece"),
    *("orbax-checkpoint", "vaswani-jax"),
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
        is_cut_off = file.seek(0, os.SEEK_END) > 0 and _last_byte(file) != b"\n"
        file.write(b"\n" * is_cut_off + json.dumps(line).encode() + b"\n")


def _last_byte(file: IO[bytes]) -> bytes:
    file.seek(-1, os.SEEK_END)
    return file.read(1)


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
        process = subprocess.run(command, capture_output=True, text=True, check=True)
        return process.stdout.strip()

    try:
        changed = git("status", "--porcelain", "--untracked-files=no", str(package))
        return git("rev-parse", "HEAD")[:12] + "+" * bool(changed)
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def software_changes(recorded: dict[str, str]) -> list[str]:
    """Return in words what differs from a recorded description."""
    return [
        f"{name} was {recorded[name]}, is {version}"
        for name, version in describe_software().items()
        if recorded.get(name, version) != version
    ]
