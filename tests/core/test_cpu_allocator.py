"""The allocator's settings: told, switched off, and of effect."""

import os
import platform
import subprocess
import sys

import pytest

PREAMBLE = """
import ctypes, pathlib, re, resource
from vaswani_jax.core import allocator
print(allocator.keep_memory())
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
libc.malloc.argtypes = [ctypes.c_size_t]
libc.free.argtypes = [ctypes.c_void_p]
"""

PROGRAM = """
faults = []
for _ in range(3):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    block = libc.malloc(64 << 20)
    ctypes.memset(block, 1, 64 << 20)
    libc.free(block)
    faults.append(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
print(*faults)
"""

# A block between others, which no trimming of the heap's end reaches.
GIVING_BACK = """
def held():
    status = pathlib.Path("/proc/self/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) >> 10
def in_huge_pages():
    sizes = re.findall(
        r"^Size: +(\\d+) kB$|^VmFlags:.* (hg)( |$)",
        pathlib.Path("/proc/self/smaps").read_text(),
        re.M,
    )
    return sum(int(size[0]) >> 10 for size, flag in zip(sizes, sizes[1:]) if flag[1])
before, huge = held(), in_huge_pages()
block, last = libc.malloc(96 << 20), libc.malloc(64 << 20)
for each, size in ((block, 96), (last, 64)):
    ctypes.memset(each, 1, size << 20)
libc.free(block)
kept = held() - before
given = allocator.give_back()
print(kept, held() - before, int(given), huge, in_huge_pages())
"""


def run(program=PROGRAM, **environment):
    found = subprocess.run(
        [sys.executable, "-c", PREAMBLE + program],
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
    assert told == (
        "allocator: as it is, for accelerators (JAX_PLATFORMS=cpu: for a CPU)"
    )
    assert "keeps memory" in run(JAX_PLATFORMS="cpu")[0]
    # The package of JAX's CUDA is installed.
    (tmp_path / "jax_cuda12_plugin.py").touch()
    path = os.pathsep.join([str(tmp_path), *sys.path])
    assert run(PYTHONPATH=path, JAX_PLATFORMS="")[0] == told


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="for glibc")
def test_what_was_freed_is_given_back_when_told():
    told, (kept, left, given, before, after) = run(
        GIVING_BACK, VASWANI_JAX_ALLOCATOR=""
    )
    assert given and kept >= 150 and 60 <= left < 80
    # What is allocated later still asks for huge pages, where there are any.
    assert after >= before and (before > 0) == ("huge pages" in told)
    _, (kept, _, given, _, _) = run(GIVING_BACK, VASWANI_JAX_ALLOCATOR="default")
    assert not given and kept < 80
