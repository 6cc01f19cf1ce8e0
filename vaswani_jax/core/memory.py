"""Section 5.2's memory: what a device has, what a program needs, and making room."""

import contextlib
import os
import pathlib
import sys
from collections.abc import Callable
from typing import Any, NamedTuple, cast

import jax
import numpy as np

from vaswani_jax.core import cpu_allocator, parallel, processes


class NeededBytes(NamedTuple):
    """Memory of one device: what lives between steps, and what a step adds."""

    state: int
    step: int


def needed_bytes(run: Callable[..., Any], state: Any, rows: Any) -> NeededBytes:
    """What a program of `parallel.over_devices` needs for these shapes; compiles it."""
    found = cast(Any, run).lower(state, rows).compile().memory_analysis()
    held = sum(leaf.nbytes for leaf in jax.tree.leaves(state))
    total = (
        found.argument_size_in_bytes
        + found.output_size_in_bytes
        - found.alias_size_in_bytes
        + found.temp_size_in_bytes
    )
    return NeededBytes(held, max(0, total - held))


def available_bytes(held: Any = ()) -> int:
    """Memory of one device that a run may use; virtual devices share the host's.

    Args:
        held: What the run has on every device already, of `parallel.replicate`: it
            counts.
    """
    here = _available_bytes(held)
    if processes.num_processes() == 1:
        return here
    # All divide their batches alike, hence as the one with the least; in MiB, for what
    # JAX gathers has 32 bits.
    everyone = processes.gather_from_all(np.array(here >> 20, np.int32))
    return int(np.min(everyone)) << 20


def _available_bytes(held: Any) -> int:
    stats = jax.local_devices()[0].memory_stats() or {}
    if "bytes_limit" in stats:
        return int(stats["bytes_limit"])
    free = free_bytes() // jax.local_device_count()
    # An accelerator, above, says what it has in all, a host what it has beside them.
    return free + sum(leaf.nbytes for leaf in jax.tree.leaves(held))


def make_room(needed: int) -> bool:
    """Give freed memory back if the host has less of its own than is needed.

    What is kept would often do, but it may lie in pieces that are all too small.

    Args:
        needed: Bytes on each device.

    Returns:
        Whether it was given back.
    """
    if not parallel.on_cpu() or _available_bytes(()) >= needed:
        return False
    return cpu_allocator.give_back()


CGROUP = pathlib.Path("/sys/fs/cgroup")  # version 2, as a container sees its own


def free_bytes() -> int:
    """Bytes of the host that are free, the cache of files among them."""
    pages = os.sysconf("SC_AVPHYS_PAGES")
    with contextlib.suppress(OSError), open("/proc/meminfo") as file:
        # The cache of files can be had, too.
        found = [line.split() for line in file if line.startswith("MemAvailable")]
        pages = int(found[0][1]) * 1024 // os.sysconf("SC_PAGE_SIZE")
    return min(pages * os.sysconf("SC_PAGE_SIZE"), _left_to_container(CGROUP))


def _left_to_container(directory: pathlib.Path) -> int:
    """Bytes that the limit of a container leaves, without its cache of files."""
    try:
        limit = int((directory / "memory.max").read_text())
        used = int((directory / "memory.current").read_text())
        stat = (directory / "memory.stat").read_text().split()
        cached = int(stat[stat.index("inactive_file") + 1])
    except (OSError, ValueError):  # There is none, or it says "max".
        return sys.maxsize
    return max(0, limit - used + cached)
