"""Section 5.2's memory: what a device has, what a program needs, and making room."""

from collections.abc import Callable
from typing import Any, NamedTuple, cast

import jax
import numpy as np

from vaswani_jax.core import allocator, host_memory, parallel, processes


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
    free = host_memory.free_bytes() // jax.local_device_count()
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
    return allocator.give_back()
