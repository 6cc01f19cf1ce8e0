"""A store, two machines, and a run that the first one has sent."""

import pathlib
from collections.abc import Iterator

import fsspec
import pytest

from tests.core import machines


@pytest.fixture(params=["memory", "file", "s3"])
def url(request: pytest.FixtureRequest, tmp_path: pathlib.Path) -> Iterator[str]:
    """A directory on a store that is there for one test alone."""
    if request.param == "s3":
        yield f"{request.getfixturevalue('s3').make_bucket()}/run"
        return
    if request.param == "file":
        yield f"file://{tmp_path}/bucket/run"
        return
    yield "memory://bucket/run"
    fsspec.filesystem("memory").store.clear()
    fsspec.filesystem("memory").pseudo_dirs[:] = [""]


@pytest.fixture
def machine(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> machines.Machine:
    return machines.Machine(tmp_path / "one", monkeypatch)


@pytest.fixture
def other_machine(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> machines.Machine:
    return machines.Machine(tmp_path / "two", monkeypatch)


@pytest.fixture
def local_run(url: str, machine: machines.Machine) -> pathlib.Path:
    """The local copy of the first machine, when the store has all of it."""
    path = machine.pull(url)
    machines.write(path, machines.RUN)
    machine.push(url)
    return path
