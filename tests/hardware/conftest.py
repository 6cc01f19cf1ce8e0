"""The demo's programs, compiled once for TPUs that are not here."""

import fcntl
import importlib.util
import os
import pathlib
from collections.abc import Callable
from typing import Any

import pytest

from vaswani_jax.hardware import topology, worker
from vaswani_jax.hardware.workload import Workload


@pytest.fixture(scope="session")
def verdict_of(
    tmp_path_factory: pytest.TempPathFactory,
) -> Callable[..., dict[str, Any]]:
    """Return a function that judges a run on TPUs, once in a session."""
    if importlib.util.find_spec("libtpu") is None:
        pytest.skip("needs libtpu: pip install 'vaswani-jax[tpu]'")
    shared = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        shared = shared.parent

    def judge(work: Workload, name: str) -> dict[str, Any]:
        # What is found is kept in a directory that all workers share.
        with open(shared / "tpu_compiler.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            [verdict] = worker.run(
                work, [topology.parse(name)], cache=pathlib.Path(shared, "compiled")
            )
        return verdict

    return judge
