"""glibc's allocator keeps memory, or releases it, or is left alone."""

import os
import platform
import sys

import pytest

from tests import interpreter

PREAMBLE = """
import ctypes, pathlib, re, resource
from vaswani_jax.core import cpu_allocator
print(cpu_allocator.keep_memory())
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
RELEASING = """
def resident():
    status = pathlib.Path("/proc/self/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) >> 10
def in_huge_pages():
    sizes = re.findall(
        r"^Size: +(\\d+) kB$|^VmFlags:.* (hg)( |$)",
        pathlib.Path("/proc/self/smaps").read_text(),
        re.M,
    )
    return sum(int(size[0]) >> 10 for size, flag in zip(sizes, sizes[1:]) if flag[1])
before, huge = resident(), in_huge_pages()
block, last = libc.malloc(96 << 20), libc.malloc(64 << 20)
for address, size in ((block, 96), (last, 64)):
    ctypes.memset(address, 1, size << 20)
libc.free(block)
growth = resident() - before
released = cpu_allocator.release_memory()
print(growth, resident() - before, int(released), huge, in_huge_pages())
"""


def run(program=PROGRAM, **environment):
    message, numbers = interpreter.output_of(
        PREAMBLE + program, **environment
    ).splitlines()
    return message, [int(number) for number in numbers.split()]


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="for glibc")
def test_a_block_that_is_allocated_again_costs_no_page_faults():
    message, faults = run(VASWANI_JAX_ALLOCATOR="")
    assert "keeps memory" in message and "VASWANI_JAX_ALLOCATOR=default: off" in message
    assert max(faults[1:]) < 100
    message, faults = run(VASWANI_JAX_ALLOCATOR="default")
    assert message == "allocator: unchanged"
    assert min(faults[1:]) >= 32  # with or without huge pages


def test_accelerators_leave_it_alone(monkeypatch, tmp_path):
    message, _ = run(JAX_PLATFORMS="cuda,cpu")
    assert message == (
        "allocator: unchanged, for accelerators (JAX_PLATFORMS=cpu: for a CPU)"
    )
    assert "keeps memory" in run(JAX_PLATFORMS="cpu")[0]
    # The package of JAX's CUDA is installed.
    (tmp_path / "jax_cuda12_plugin.py").touch()
    path = os.pathsep.join([str(tmp_path), *sys.path])
    assert run(PYTHONPATH=path, JAX_PLATFORMS="")[0] == message


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="for glibc")
def test_freed_memory_is_released_on_demand():
    message, (growth, left, is_released, huge_before, huge_after) = run(
        RELEASING, VASWANI_JAX_ALLOCATOR=""
    )
    assert is_released and growth >= 150 and 60 <= left < 80
    # What is allocated later still asks for huge pages, where there are any.
    assert huge_after >= huge_before
    assert (huge_before > 0) == ("huge pages" in message)
    _, (growth, _, is_released, _, _) = run(RELEASING, VASWANI_JAX_ALLOCATOR="default")
    assert not is_released and growth < 80
