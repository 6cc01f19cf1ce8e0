"""Measure the memory that devices have and a step needs, and release unused memory."""

import pathlib
import re
import sys
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, cast

import jax
import numpy as np
import psutil

from vaswani_jax.core import cpu_allocator, parallel, processes, shards

UNITS = {"K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
CGROUP = pathlib.Path("/sys/fs/cgroup")
MEMBERSHIP = pathlib.Path("/proc/self/cgroup")
# The limit, the usage and the file cache of a control group, in versions 2 and 1.
ACCOUNTS = (
    ("memory.max", "memory.current", "inactive_file"),
    ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
)


class NeededBytes(NamedTuple):
    """Memory of one device: what lives between steps, and what a step adds.

    `program` is the compiled step itself, which lies in an accelerator's memory.
    """

    state: int
    step: int
    program: int = 0


def needed_bytes(step: Callable[..., Any], *, state: Any, rows: Any) -> NeededBytes:
    """Compile a step of `parallel.over_devices`, and return the memory it needs."""
    compiled = cast(Any, step).lower(state, rows).compile()
    return needed_by(compiled, state=state)


def needed_by(compiled: Any, *, state: Any) -> NeededBytes:
    """Return the memory that a compiled step needs.

    Args:
        compiled: The step, as JAX compiles it.
        state: Its first argument, or the shapes of it.
    """
    analysis = compiled.memory_analysis()
    state_bytes = size_in_bytes(state)
    total = (
        analysis.argument_size_in_bytes
        + analysis.output_size_in_bytes
        - analysis.alias_size_in_bytes
        + analysis.temp_size_in_bytes
    )
    # A CPU's programs are small beside the memory of its host.
    program = 0 if parallel.on_cpu() else analysis.generated_code_size_in_bytes
    return NeededBytes(state_bytes, max(0, total - state_bytes), program)


def refused_bytes(error: RuntimeError) -> int | None:
    """Return what a program needs that a compiler refuses, the largest size it tells.

    Args:
        error: What compiling has raised.

    Returns:
        None if the program is not refused for its memory.

    >>> refused_bytes(RuntimeError("RESOURCE_EXHAUSTED: (97.50G) exceeds (15.75G)."))
    104689827840
    """
    if not str(error).startswith("RESOURCE_EXHAUSTED"):
        return None
    sizes = re.findall(r"([\d.]+)([KMGT])\b", str(error))
    return max((int(float(size) * UNITS[unit]) for size, unit in sizes), default=0)


def available_bytes(state: Any = ()) -> int:
    """Return the memory of one device that a run may use.

    Virtual devices share the host's. All processes get the minimum over processes, so
    that they divide their batches alike.

    Args:
        state: The state on every device (`parallel.replicate`); its memory counts as
            available.
    """
    local = _local_available_bytes(state)
    if processes.num_processes() == 1:
        return local
    # In MiB, because JAX gathers 32-bit integers.
    mebibytes = processes.gather_from_all(np.array(local >> 20, np.int32))
    return int(np.min(mebibytes)) << 20


def _local_available_bytes(state: Any) -> int:
    stats = jax.local_devices()[0].memory_stats() or {}
    if "bytes_limit" in stats:  # An accelerator's whole memory, the state included.
        return int(stats["bytes_limit"])
    return free_bytes() // jax.local_device_count() + size_in_bytes(state)


def size_in_bytes(tree: Any) -> int:
    """Return the bytes of a tree of arrays, or of their shapes, on one device."""
    return sum(
        leaf.size * leaf.dtype.itemsize
        for leaf in jax.tree.leaves(shards.parts_of_a_device(tree))
    )


def make_room(needed: int) -> bool:
    """Return freed memory to the system if the host has less than a step needs.

    The memory that the allocator keeps may suffice, but in pieces that are too small.

    Args:
        needed: Bytes on each device.

    Returns:
        True if memory was returned.
    """
    if not parallel.on_cpu() or _local_available_bytes(()) >= needed:
        return False
    return cpu_allocator.release_memory()


def free_bytes() -> int:
    """Return the bytes that the host and its limits leave, file cache included."""
    host = psutil.virtual_memory()
    groups = [_free_in_group(group, total=host.total) for group in _control_groups()]
    return min([host.available, *groups])


def _control_groups() -> Iterator[pathlib.Path]:
    """Yield the control groups of this process and their parents, innermost first.

    The limits of all hold: a container's, a SLURM job's, a systemd service's.
    """
    try:
        lines = MEMBERSHIP.read_text(encoding="utf-8").splitlines()
    except OSError:  # not Linux, or hidden
        lines = ["0::/"]
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers and "memory" not in controllers.split(","):
            continue
        root = CGROUP / "memory" if controllers else CGROUP
        # "/.." means that the group lies outside what this container can see.
        group = root if path.startswith("/..") else root / path.strip("/")
        yield group
        yield from group.parents[: len(group.parts) - len(root.parts)]


def _free_in_group(group: pathlib.Path, *, total: int) -> int:
    """Return the bytes below a control group's limit, its file cache included.

    Args:
        group: Its directory.
        total: The memory of the host; a limit above it is none.
    """
    for limit_file, usage_file, cache in ACCOUNTS:
        try:
            limit = int((group / limit_file).read_text(encoding="utf-8"))
            if limit >= total:
                continue
            used = int((group / usage_file).read_text(encoding="utf-8"))
            stat = (group / "memory.stat").read_text(encoding="utf-8").split()
            cached = int(stat[stat.index(cache) + 1])
        except (OSError, ValueError):  # It is of the other version, or "max".
            continue
        return max(0, limit - used + cached)
    return sys.maxsize
