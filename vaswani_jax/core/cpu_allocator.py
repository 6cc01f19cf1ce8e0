"""Make glibc's allocator keep freed memory, which saves up to a third of a CPU's step.

XLA allocates the temporaries of every step. By default glibc returns large blocks to
the kernel at once, and page faults slow the next step. `keep_memory` makes it keep
them, in huge pages. Blocks of steps of different shapes do not fit one another, so it
keeps several times a step's memory, until `memory.make_room` releases it.
"""

import ctypes
import importlib.util
import os
import sys

PLUGINS = ("jax_cuda12_plugin", "jax_cuda13_plugin", "jax_rocm7_plugin", "libtpu")
SWITCH = "VASWANI_JAX_ALLOCATOR"
# Parameters of mallopt(3) and madvise(2), from glibc's headers.
TRIM_THRESHOLD, TOP_PAD, MMAP_MAX, ARENA_MAX = -1, -2, -4, -8
HUGE_PAGES = 14
HUGE_PAGE_BYTES = 2 << 20
GROWTH_BYTES = 512 << 20

_is_kept = False


def keep_memory() -> str:
    """Make glibc keep freed memory, and describe for the log what was done.

    Does nothing with VASWANI_JAX_ALLOCATOR=default, with another C library, or with
    JAX for accelerators, whose arrays lie elsewhere. Call it before the first large
    array is allocated.
    """
    global _is_kept
    if sys.platform != "linux":
        return "allocator: unchanged"
    libc = ctypes.CDLL(None)
    if _uses_accelerators():
        return "allocator: unchanged, for accelerators (JAX_PLATFORMS=cpu: for a CPU)"
    if os.environ.get(SWITCH) == "default" or not hasattr(libc, "gnu_get_libc_version"):
        return "allocator: unchanged"
    # One arena, grown by the program break alone and never shrunk.
    libc.mallopt(ARENA_MAX, 1)
    libc.mallopt(MMAP_MAX, 0)
    libc.mallopt(TRIM_THRESHOLD, -1)
    libc.mallopt(TOP_PAD, GROWTH_BYTES)
    _is_kept = True
    pages = "huge pages" if _reserve_huge_pages(libc) else "small pages"
    return f"allocator: glibc keeps memory, in {pages} ({SWITCH}=default: off)"


def release_memory() -> bool:
    """Return all freed memory to the system; new blocks cause page faults again.

    Returns:
        False if `keep_memory` did nothing: then there is nothing to release.
    """
    if not _is_kept:
        return False
    libc = ctypes.CDLL(None)
    libc.malloc_trim.argtypes = [ctypes.c_size_t]
    libc.malloc_trim(0)
    # Trimming shrinks the heap, and with it the part in huge pages.
    _reserve_huge_pages(libc)
    return True


def _uses_accelerators() -> bool:
    """Return True if JAX, which is not started yet, will choose an accelerator."""
    if platforms := os.environ.get("JAX_PLATFORMS"):
        return platforms.split(",")[0] != "cpu"
    return any(importlib.util.find_spec(name) for name in PLUGINS)


def _reserve_huge_pages(libc: ctypes.CDLL) -> bool:
    """Grow the heap by a block that asks for huge pages, and free the block.

    Later allocations lie in this block; its pages take memory once they are written.

    Returns:
        False if the system has no huge pages, or too little memory.
    """
    libc.malloc.restype = ctypes.c_void_p
    libc.malloc.argtypes = [ctypes.c_size_t]
    libc.free.argtypes = [ctypes.c_void_p]
    libc.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    size = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
    block = libc.malloc(size)
    if not block:
        return False
    start = -(-block // HUGE_PAGE_BYTES) * HUGE_PAGE_BYTES
    length = (block + size - start) & -HUGE_PAGE_BYTES
    error_code = libc.madvise(start, length, HUGE_PAGES)
    libc.free(block)
    return error_code == 0
