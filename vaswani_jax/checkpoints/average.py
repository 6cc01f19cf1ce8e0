"""Average the parameters of several checkpoints, as section 6.1 does."""

import pathlib
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from vaswani_jax.checkpoints.store import Checkpoint, CheckpointError, Checkpoints
from vaswani_jax.core import files, remote


def average_params(found: Checkpoints, steps: list[int]) -> Checkpoint:
    """The mean of the parameters of some checkpoints, summed in float64.

    Raises:
        CheckpointError: One is missing or damaged, or their vocabularies differ.
    """
    totals: Any = None
    record: dict[str, Any] = {}
    for number in steps:
        one = found.restore(number, ["params"])
        if record and one.record["vocabulary"] != record["vocabulary"]:
            raise CheckpointError(
                f"checkpoint {number} has the vocabulary {one.record['vocabulary']}, "
                f"another one {record['vocabulary']}: they cannot be averaged"
            )
        record = one.record
        params = jax.tree.map(np.float64, one.items["params"])
        totals = params if totals is None else jax.tree.map(np.add, totals, params)
    mean = jax.tree.map(lambda t: (t / len(steps)).astype(np.float32), totals)
    return Checkpoint(max(steps), {"params": mean}, {**record, "averaged": steps})


def save_average(workdir: pathlib.Path, mean: Checkpoint) -> pathlib.Path:
    """Write averaged parameters to WORKDIR/averaged, for decoding."""
    directory = workdir / "averaged"
    with files.replacing(directory) as unfinished:
        manager = Checkpoints(unfinished, keep=1)
        manager.save(mean.step, mean.items, mean.record)
        manager.close()
    return directory / str(mean.step)


def last_good(
    found: Checkpoints, count: int, *, log: Callable[[str], None]
) -> list[int]:
    """The steps of the last checkpoints that can be averaged, damaged ones left out.

    Raises:
        CheckpointError: All are damaged.
    """
    good: list[int] = []
    for number in reversed(found.steps()):
        try:
            restored(found, number, ["params"])
        except CheckpointError as error:
            log(f"warning: {error}; it is left out of the average")
        else:
            good.insert(0, number)
        if len(good) == count:
            break
    if not good:
        raise CheckpointError(f"no checkpoint in {found.directory} can be averaged")
    return good


def restored(found: Checkpoints, number: int, names: list[str]) -> Checkpoint:
    try:
        return found.restore(number, names)
    except CheckpointError:
        # A mirror's copy may be damaged and the store's good.
        if not remote.fetch_again(found.directory / str(number)):
            raise
        return found.restore(number, names)
