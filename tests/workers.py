"""What the workers of one session of tests share."""

import fcntl
import os
import pathlib
import shutil
from collections.abc import Callable

import pytest


def make_once(
    factory: pytest.TempPathFactory,
    name: str,
    make: Callable[[pathlib.Path], object],
) -> pathlib.Path:
    """Return this worker's copy of a directory that the first worker makes.

    Args:
        factory: Names the directory of the session.
        name: That of the directory, for instance "runs/demo".
        make: Makes it.
    """
    directory = factory.getbasetemp() / name
    directory.parent.mkdir(parents=True, exist_ok=True)
    if "PYTEST_XDIST_WORKER" not in os.environ:
        make(directory)
        return directory
    original = factory.getbasetemp().parent / "originals" / name
    original.parent.mkdir(parents=True, exist_ok=True)
    with open(original.with_name(f"{original.name}.lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        mark = original.with_name(f"{original.name}.made")
        if not mark.exists():
            make(original)
            mark.touch()
    shutil.copytree(original, directory)
    return directory
