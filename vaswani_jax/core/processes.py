"""Section 5.2's machines, if there are several: JAX's own runtime connects processes.

What is done by one of them alone, and where they wait for one another.
"""

from collections.abc import Callable
from typing import Any, TypeVar

import jax
import numpy as np
from jax.experimental import multihost_utils

Tree = TypeVar("Tree")
Result = TypeVar("Result")
# When a process has not been heard of for so long, the others end.
LOST_AFTER_SECONDS = 60


def connect(
    coordinator: str | None,
    num_processes: int | None,
    process_id: int | None,
    *,
    saves: bool,
) -> None:
    """Join the processes that compute together, before any work on a device.

    Args:
        coordinator: HOST:PORT of process 0, or "auto" where JAX finds all of it out
            (SLURM, Open MPI, Kubernetes, Cloud TPU).
        num_processes: How many there are; None for "auto".
        process_id: Which this is, from 0; None for "auto".
        saves: Whether SIGTERM is for `stops_together`; else it ends the process.

    Raises:
        ValueError: "auto" finds nothing, or a part is missing or out of range.
        ConnectionError: The processes do not find one another.
    """
    where: dict[str, Any] = {}
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
        where = {
            "coordinator_address": coordinator,
            "num_processes": num_processes,
            "process_id": process_id,
        }
    jax.config.update("jax_enable_preemption_service", saves)
    try:
        jax.distributed.initialize(
            **where,
            heartbeat_timeout_seconds=LOST_AFTER_SECONDS,
            shutdown_timeout_seconds=LOST_AFTER_SECONDS,
        )
    except ValueError as error:
        raise ValueError(
            f"--coordinator={coordinator}: nothing here tells JAX of other processes "
            f"({error})"
        ) from None
    except RuntimeError as error:
        reason = str(error).partition("\n")[0]
        raise ConnectionError(f"--coordinator={coordinator}: {reason}") from error


def num_processes() -> int:
    """Processes that compute together, of which each may have several devices."""
    return jax.process_count() if jax.distributed.is_initialized() else 1


def is_main_process() -> bool:
    """True in the one process that writes files and prints."""
    return not jax.distributed.is_initialized() or jax.process_index() == 0


def stops_together(step: int) -> bool:
    """Whether a process has had SIGTERM; all learn it at the same step.

    Asked after every update, of all processes.
    """
    return bool(multihost_utils.reached_preemption_sync_point(step))


def wait_for_all(place: str) -> None:
    """Go on when all processes have come here."""
    if num_processes() > 1:
        multihost_utils.sync_global_devices(place)


def by_main_process(
    work: Callable[[], Result], *failures: type[Exception]
) -> Result | None:
    """Do something in the main process alone; all go on, or fail, together.

    Returns:
        What it gave in the main process; None in the others.

    Raises:
        failures: It failed in the main process; in the others, the first of them.
    """
    error = result = None
    if is_main_process():
        try:
            result = work()
        except failures as caught:
            error = caught
    failed = _any_process(error is not None)
    if error is not None:
        raise error
    if failed:
        raise failures[0]("it failed in the main process, which says why")
    return result


def as_main_process(here: bool) -> bool:
    """What the main process found; others may see older files."""
    if num_processes() == 1:
        return here
    return bool(gather_from_all(np.array(here))[0])


def _any_process(here: bool) -> bool:
    if num_processes() == 1:
        return here
    return bool(np.any(gather_from_all(np.array(here))))


def gather_from_all(tree: Tree) -> Tree:
    """`[processes, ...]` in each leaf, of what each has as NumPy arrays."""
    found: Tree = multihost_utils.process_allgather(tree)
    return found
