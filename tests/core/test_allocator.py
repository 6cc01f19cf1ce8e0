"""The allocator's settings: told, switched off, and of effect."""

import os
import platform
import subprocess
import sys

import pytest

PROGRAM = """
import ctypes, resource
from vaswani_jax.core import allocator
print(allocator.keep_memory())
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
libc.malloc.argtypes = [ctypes.c_size_t]
libc.free.argtypes = [ctypes.c_void_p]
faults = []
for _ in range(3):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    block = libc.malloc(64 << 20)
    ctypes.memset(block, 1, 64 << 20)
    libc.free(block)
    faults.append(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
print(*faults)
"""


def run(**environment):
    found = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    told, faults = found.stdout.splitlines()
    return told, [int(count) for count in faults.split()]


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="for glibc")
def test_a_block_that_is_allocated_again_costs_no_page_faults():
    told, faults = run(VASWANI_JAX_ALLOCATOR="")
    assert "keeps memory" in told and "VASWANI_JAX_ALLOCATOR=default: off" in told
    assert max(faults[1:]) < 100
    told, faults = run(VASWANI_JAX_ALLOCATOR="default")
    assert told == "allocator: as it is"
    assert min(faults[1:]) >= 32  # with or without huge pages


def test_accelerators_leave_it_alone(monkeypatch, tmp_path):
    told, _ = run(JAX_PLATFORMS="cuda,cpu")
    assert told == "allocator: as it is, for accelerators"
    assert "keeps memory" in run(JAX_PLATFORMS="cpu")[0]
    # The package of JAX's CUDA is installed.
    (tmp_path / "jax_cuda12_plugin.py").touch()
    path = os.pathsep.join([str(tmp_path), *sys.path])
    assert run(PYTHONPATH=path, JAX_PLATFORMS="")[0] == told
