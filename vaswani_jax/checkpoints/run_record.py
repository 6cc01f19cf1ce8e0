"""Record the starts of a run: settings, devices and software."""

import dataclasses
import datetime
import json
import os
import pathlib
import socket
import uuid
from typing import IO

from vaswani_jax.checkpoints.compatibility import Change
from vaswani_jax.core import config, environment, files, parallel


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
        "environment": environment.describe(),
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
