"""Make glibc's allocator keep freed memory, which saves up to a third of a CPU's step.

XLA allocates the temporaries of every step. By default glibc returns large blocks to
the kernel at once, and page faults make the next step slow. Here it keeps them, in huge
pages. Steps of several shapes leave blocks that do not fit one another, so it keeps
several times a step's memory, until `memory.make_room` releases it.
"""

import ctypes
import importlib.util
import os

PLUGINS = ("jax_cuda12_plugin", "jax_cuda13_plugin", "jax_rocm7_plugin", "libtpu")
SWITCH = "VASWANI_JAX_ALLOCATOR"
# Parameters of mallopt(3) and madvise(2), from glibc's headers.
TRIM_THRESHOLD, TOP_PAD, MMAP_MAX, ARENA_MAX = -1, -2, -4, -8
HUGE_PAGES = 14
HUGE_PAGE_BYTES = 2 << 20
GROWTH_BYTES = 512 << 20

_keeps = False


def keep_memory() -> str:
    """Tell glibc to keep freed memory, and return in words what was done.

    Nothing is done with VASWANI_JAX_ALLOCATOR=default, with another C library, or with
    JAX for accelerators, whose arrays lie elsewhere. Call it before the first large
    array is allocated.
    """
    global _keeps
    libc = ctypes.CDLL(None)
    if _for_accelerators():
        return "allocator: as it is, for accelerators (JAX_PLATFORMS=cpu: for a CPU)"
    if os.environ.get(SWITCH) == "default" or not hasattr(libc, "gnu_get_libc_version"):
        return "allocator: as it is"
    # One arena, grown by the program break alone and never shrunk.
    libc.mallopt(ARENA_MAX, 1)
    libc.mallopt(MMAP_MAX, 0)
    libc.mallopt(TRIM_THRESHOLD, -1)
    libc.mallopt(TOP_PAD, GROWTH_BYTES)
    _keeps = True
    pages = "huge pages" if _reserve_huge_pages(libc) else "small pages"
    return f"allocator: glibc keeps memory, in {pages} ({SWITCH}=default: off)"


def release_memory() -> bool:
    """Return all freed memory to the system; new blocks cost their page faults again.

    Returns:
        False if `keep_memory` did nothing, for then there is nothing to release.
    """
    if not _keeps:
        return False
    libc = ctypes.CDLL(None)
    libc.malloc_trim.argtypes = [ctypes.c_size_t]
    libc.malloc_trim(0)
    # This has shrunk the heap as well, and its part in huge pages with it.
    _reserve_huge_pages(libc)
    return True


def _for_accelerators() -> bool:
    """Return True if JAX, which is not started yet, will choose an accelerator."""
    if platforms := os.environ.get("JAX_PLATFORMS"):
        return platforms.split(",")[0] != "cpu"
    return any(importlib.util.find_spec(name) for name in PLUGINS)


def _reserve_huge_pages(libc: ctypes.CDLL) -> bool:
    """Grow the heap by a block that asks for huge pages, and free the block.

    Its pages are there only when they are written: later allocations lie in it.

    Returns:
        False if the system has no huge pages, or too little memory to promise.
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
    refused = libc.madvise(start, length, HUGE_PAGES)
    libc.free(block)
    return not refused
