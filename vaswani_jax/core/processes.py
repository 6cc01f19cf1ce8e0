"""Section 5.2's machines, if there are several: JAX's own runtime connects processes.

What is done by one of them alone, and where they wait for one another.
"""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import jax
import numpy as np
from jax.experimental import multihost_utils

Tree = TypeVar("Tree")
# When a process has not been heard of for so long, the others end.
LOST_AFTER_SECONDS = 60


def connect(
    coordinator: str, num_processes: int | None, process_id: int | None
) -> None:
    """Join the processes that compute together, before any work on a device.

    Args:
        coordinator: HOST:PORT of process 0, or "auto" where JAX finds all of it out
            (SLURM, Open MPI, Kubernetes, Cloud TPU).
        num_processes: How many there are; None for "auto".
        process_id: Which this is, from 0; None for "auto".

    Raises:
        ValueError: "auto" finds nothing, or a part is missing or out of range.
        ConnectionError: The processes do not find one another.
    """
    where: dict[str, Any] = {}
    if coordinator != "auto":
        if num_processes is None or process_id is None or ":" not in coordinator:
            raise ValueError(
                "--coordinator=HOST:PORT goes with --num_processes and --process_id, "
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


@contextlib.contextmanager
def main_process_first(place: str) -> Iterator[None]:
    """The others do the same when the main process has done it."""
    if not is_main_process():
        wait_for_all(place)
    yield
    if is_main_process():
        wait_for_all(place)


def by_main_process(work: Callable[[], None], failure: type[Exception]) -> None:
    """Do something in the main process alone; all go on, or fail, together.

    Raises:
        failure: It failed in the main process.
    """
    error = None
    if is_main_process():
        try:
            work()
        except failure as caught:
            error = caught
    failed = _any_process(error is not None)
    if error is not None:
        raise error
    if failed:
        raise failure("it failed in the main process, which says why")


def _any_process(here: bool) -> bool:
    if num_processes() == 1:
        return here
    return bool(np.any(gather_from_all(np.array(here))))


def gather_from_all(tree: Tree) -> Tree:
    """`[processes, ...]` in each leaf, of what each has as NumPy arrays."""
    found: Tree = multihost_utils.process_allgather(tree)
    return found
