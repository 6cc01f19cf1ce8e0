"""Run one program in several processes: connect, synchronise, write in one of them."""

import collections
import hashlib
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import jax
import numpy as np
from jax.experimental import multihost_utils

from vaswani_jax.core import errors

Tree = TypeVar("Tree")
Output = TypeVar("Output")
# The others exit when a process has been silent for this long.
LOST_AFTER_SECONDS = 60
_preemption_calls = itertools.count()


def connect(
    *,
    coordinator: str | None,
    num_processes: int | None,
    process_id: int | None,
    handles_sigterm: bool,
) -> None:
    """Join the processes of a program, before the first use of a device.

    Args:
        coordinator: HOST:PORT of process 0, or "auto" where JAX finds all three
            arguments out (SLURM, Open MPI, Kubernetes, Cloud TPU).
        num_processes: Number of processes; None for "auto".
        process_id: Index of this process, from 0; None for "auto".
        handles_sigterm: Whether `reached_preemption` reports SIGTERM; otherwise it
            ends the process.

    Raises:
        ValueError: "auto" finds nothing, an argument is missing or out of range, or
            the processes have different numbers of devices.
        ConnectionError: The processes do not reach one another.
    """
    arguments: dict[str, Any] = {}
    if coordinator != "auto" or (num_processes, process_id) != (None, None):
        port = (coordinator or "").rpartition(":")[2]
        valid = port.isdecimal() and 0 < int(port) < 2**16 and ":" in str(coordinator)
        if not valid or num_processes is None or process_id is None:
            raise ValueError(
                "--coordinator=HOST:PORT goes with --num_processes and --process_id, "
                "--coordinator=auto goes alone; "
                f"got {coordinator!r}, {num_processes} and {process_id}"
            )
        if process_id >= num_processes:
            raise ValueError(
                f"--process_id must be below --num_processes={num_processes}, got "
                f"{process_id}"
            )
        arguments = {
            "coordinator_address": coordinator,
            "num_processes": num_processes,
            "process_id": process_id,
        }
    jax.config.update("jax_enable_preemption_service", handles_sigterm)
    try:
        jax.distributed.initialize(
            **arguments,
            heartbeat_timeout_seconds=LOST_AFTER_SECONDS,
            shutdown_timeout_seconds=LOST_AFTER_SECONDS,
        )
    except ValueError as error:
        raise ValueError(
            f"--coordinator={coordinator}: nothing here tells JAX of other processes "
            f"({error})"
        ) from None
    except RuntimeError as error:
        reason = errors.first_line(error)
        raise ConnectionError(f"--coordinator={coordinator}: {reason}") from error
    _check_device_counts()


def _check_device_counts() -> None:
    """Refuse processes with different numbers of devices: rows are divided equally."""
    by_process = collections.Counter(device.process_index for device in jax.devices())
    counts = [by_process[index] for index in range(jax.process_count())]
    if len(set(counts)) > 1:
        listing = ", ".join(f"process {i}: {count}" for i, count in enumerate(counts))
        raise ValueError(
            f"the processes have different numbers of devices ({listing}): each needs "
            "the same number; choose the GPUs of each by JAX_LOCAL_DEVICE_IDS, or "
            "start fewer processes"
        )


def num_processes() -> int:
    """Return the number of processes; each may have several devices."""
    return jax.process_count() if jax.distributed.is_initialized() else 1


def is_main_process() -> bool:
    """Return True in the one process that writes files and prints."""
    return not jax.distributed.is_initialized() or jax.process_index() == 0


def reached_preemption() -> bool:
    """Return True if any process has received SIGTERM; all learn it at the same call.

    Call it once after every step, in every process, through all runs.
    """
    # JAX waits for the call whose number is one above the last: never reuse a number.
    call = next(_preemption_calls)
    return bool(multihost_utils.reached_preemption_sync_point(call))


def run_on_main(
    function: Callable[[], Output], *failures: type[Exception]
) -> Output | None:
    """Call a function in the main process alone; all processes return, or fail.

    Args:
        function: What to call.
        *failures: Exceptions that it may raise.

    Returns:
        Its output in the main process, None in the others.

    Raises:
        failures: The function's exception in the main process; in the others, the
            first of the types.
    """
    error = output = None
    if is_main_process():
        try:
            output = function()
        except failures as failure:
            error = failure
    has_failed = broadcast_from_main(error is not None)
    if error is not None:
        raise error
    if has_failed:
        raise failures[0]("the main process failed; its message says why")
    return output


def broadcast_from_main(flag: bool) -> bool:
    """Return the main process's flag, so that all processes decide alike."""
    if num_processes() == 1:
        return flag
    return bool(gather_from_all(np.array(flag))[0])


def broadcast_numbers_from_main(numbers: Sequence[int]) -> list[int]:
    """Return the main process's numbers; all processes pass as many."""
    if num_processes() == 1:
        return list(numbers)
    return list(map(int, gather_from_all(np.array(numbers))[0]))


def gather_from_all(tree: Tree) -> Tree:
    """Return the NumPy arrays of all processes as `[processes, ...]` leaves."""
    gathered: Tree = multihost_utils.process_allgather(tree)
    return gathered


def refuse_differences(parts: Mapping[str, str]) -> None:
    """Refuse processes whose work is not that of process 0.

    Args:
        parts: The texts that must be equal in all processes, by their names in the
            error. All processes pass the same names in the same order.

    Raises:
        ValueError: Names the processes, and the parts that differ; raised in every
            process.
    """
    if num_processes() == 1:
        return
    digests = gather_from_all(np.array(list(map(digest, parts.values())), np.int32))
    differs = digests != digests[0]
    if not differs.any():
        return
    names = np.array(list(parts))[differs.any(axis=0)]
    numbers = np.flatnonzero(differs.any(axis=1)).tolist()
    raise ValueError(
        f"processes {numbers} differ from process 0 in {', '.join(names)}: all need "
        "the same; start each host with the same flags, files and packages, and name "
        "any checkpoint by its step"
    )


def digest(text: str) -> int:
    """Return the first 28 bits of a text's SHA-256, which fit into an int32."""
    return int(hashlib.sha256(text.encode()).hexdigest()[:7], 16)
