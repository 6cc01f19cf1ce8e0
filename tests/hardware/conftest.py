"""The demo's programs, compiled once for TPUs that are not here."""

import dataclasses
import fcntl
import importlib.util
import pathlib
from collections.abc import Callable
from typing import Any

import jax
import pytest

from tests import workers
from vaswani_jax.core import compilation_cache
from vaswani_jax.hardware import chips, topology, verdict, worker
from vaswani_jax.hardware.workload import Workload


@pytest.fixture(scope="session")
def verdict_of(
    tmp_path_factory: pytest.TempPathFactory,
) -> Callable[..., dict[str, Any]]:
    """Return a function that judges a run on TPUs, once in a session."""
    if importlib.util.find_spec("libtpu") is None:
        pytest.skip("needs libtpu: pip install 'vaswani-jax[tpu]'")
    shared = workers.shared_directory(tmp_path_factory)

    verdicts = dict[str, dict[str, Any]]()

    def judge(work: Workload, name: str) -> dict[str, Any]:
        key = f"{name} {work}"
        if key not in verdicts:
            # What is found is kept in a directory that all workers share.
            with open(shared / "tpu_compiler.lock", "w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                [verdicts[key]] = worker.run(work, [topology.parse(name)])
        return verdicts[key]

    return judge


@pytest.fixture
def judge(
    monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> Callable[..., dict[str, Any]]:
    """Judge on 8 devices of some memory, which are those of this CPU."""
    return judge_in(tmp_path, monkeypatch)


@pytest.fixture(scope="session")
def findings(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """Where what tests have found of programs that they do not replace is kept."""
    return tmp_path_factory.mktemp("findings")


@pytest.fixture
def judge_once(
    monkeypatch: pytest.MonkeyPatch, findings: pathlib.Path
) -> Callable[..., dict[str, Any]]:
    """As `judge`, but what one test has compiled is found by the next."""
    return judge_in(findings, monkeypatch)


def judge_in(
    directory: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., dict[str, Any]]:
    """Return a function that keeps in a directory what it finds of programs."""
    monkeypatch.setattr(topology, "devices", lambda hardware: jax.devices())
    monkeypatch.setattr(compilation_cache, "directory", lambda: directory)

    def judge(work: Workload, *, memory_bytes: int = 10**9) -> dict[str, Any]:
        chip = dataclasses.replace(chips.CHIPS["v5e"], memory_bytes=memory_bytes)
        return verdict.judge(work, topology.Hardware(chip, (2, 4)))

    return judge
