"""Section 5.2's step time on a CPU: the C library's allocator keeps what it has.

XLA asks it for the temporaries of every step. By default glibc gives large blocks back
to the kernel at once, and the page faults of getting them anew cost up to a third of a
step. Here it keeps them, in huge pages; what steps of several shapes leave does not fit
the next of another shape, so several times a step's memory is kept where there is room
(`device_memory.make_room`).
"""

import ctypes
import importlib.util
import os

PLUGINS = ("jax_cuda12_plugin", "jax_cuda13_plugin", "jax_rocm7_plugin", "libtpu")
SWITCH = "VASWANI_JAX_ALLOCATOR"
# Parameters of mallopt(3) and an advice of madvise(2), from glibc's headers.
TRIM_THRESHOLD, TOP_PAD, MMAP_MAX, ARENA_MAX = -1, -2, -4, -8
HUGE_PAGES = 14
HUGE_PAGE_BYTES = 2 << 20
GROWTH_BYTES = 512 << 20

_keeps = False


def keep_memory() -> str:
    """Tell glibc to keep freed memory; what was done, in words, for the log.

    `VASWANI_JAX_ALLOCATOR=default` leaves it alone, and so does another C library, or
    JAX for an accelerator, whose arrays lie elsewhere. Call it before the first large
    array is made.
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


def give_back() -> bool:
    """Give all freed memory back to the system, unless it is given back at once anyway
    (see `keep_memory`); which of the two.

    What is allocated next costs its page faults once more.
    """
    if not _keeps:
        return False
    libc = ctypes.CDLL(None)
    libc.malloc_trim.argtypes = [ctypes.c_size_t]
    libc.malloc_trim(0)
    # It has shrunk the heap, too, and with it the part in huge pages.
    _reserve_huge_pages(libc)
    return True


def _for_accelerators() -> bool:
    """Whether JAX, which is not asked yet, will choose an accelerator."""
    if chosen := os.environ.get("JAX_PLATFORMS"):
        return chosen.split(",")[0] != "cpu"
    return any(importlib.util.find_spec(name) for name in PLUGINS)


def _reserve_huge_pages(libc: ctypes.CDLL) -> bool:
    """Grow the heap, whose pages are not there before they are written, and free it:
    what is allocated later lies in the part that asked for huge pages.

    False where the system has none, or not so much memory to promise.
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
