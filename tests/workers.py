"""What the workers of one session of tests share."""

import fcntl
import os
import pathlib
import shutil
from collections.abc import Callable

import pytest


def shared_directory(factory: pytest.TempPathFactory) -> pathlib.Path:
    """Return the temporary directory of the session, the same in all workers."""
    directory = factory.getbasetemp()
    return directory.parent if "PYTEST_XDIST_WORKER" in os.environ else directory


def make_once(
    factory: pytest.TempPathFactory,
    name: str,
    make: Callable[[pathlib.Path], object],
) -> pathlib.Path:
    """Return a directory that the first worker makes for all; no test changes it.

    Args:
        factory: Names the directory of the session.
        name: That of the directory, for instance "runs/demo".
        make: Makes it.
    """
    directory = shared_directory(factory) / "originals" / name
    directory.parent.mkdir(parents=True, exist_ok=True)
    with open(directory.with_name(f"{directory.name}.lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        mark = directory.with_name(f"{directory.name}.made")
        if not mark.exists():
            make(directory)
            mark.touch()
    return directory


def copy_once(
    factory: pytest.TempPathFactory,
    name: str,
    make: Callable[[pathlib.Path], object],
) -> pathlib.Path:
    """Return this worker's copy of what `make_once` makes."""
    directory = factory.getbasetemp() / name
    shutil.copytree(make_once(factory, name, make), directory)
    return directory
