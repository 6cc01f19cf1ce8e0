"""Average the parameters of several checkpoints, as section 6.1 does."""

import logging
import pathlib
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from vaswani_jax.checkpoints import bundle, compatibility, store
from vaswani_jax.checkpoints.store import Checkpoint, CheckpointError
from vaswani_jax.core import files
from vaswani_jax.core.config import Config
from vaswani_jax.data.vocabulary import Vocabulary

logger = logging.getLogger(__name__)


def average_params(directory: pathlib.Path, steps: Sequence[int]) -> Checkpoint:
    """Return the mean of the parameters of some checkpoints, summed in float64.

    A checkpoint with a moving average counts with that.

    Warns if they are of different runs, whose mean is seldom a model.

    Raises:
        CheckpointError: One is missing or damaged, or their vocabularies differ.
        OSError: One is complete but cannot be read.
    """
    totals: Any = None
    record: dict[str, Any] = {}
    with_average = [step for step in steps if store.has_average(directory, step)]
    if with_average and len(with_average) < len(steps):
        logger.warning(
            f"only the checkpoints {with_average} of {list(steps)} have a moving "
            "average (config.training.ema_decay): the others enter the mean with "
            "their parameters"
        )
    steps = sorted(steps)
    for step in steps:
        checkpoint = store.restore_for_decoding(directory, step)
        vocabulary = checkpoint.record["vocabulary"]
        if record and vocabulary != record["vocabulary"]:
            raise CheckpointError(
                f"checkpoint {step} has the vocabulary {vocabulary}, an earlier one "
                f"{record['vocabulary']}: only checkpoints of one vocabulary can be "
                "averaged; leave those of the other out"
            )
        if record and not compatibility.may_be_same_run(record, checkpoint.record):
            logger.warning(
                f"checkpoints of different runs are averaged: {checkpoint.step} comes "
                f"from {compatibility.describe_run(checkpoint.record)}, the one before "
                f"from {compatibility.describe_run(record)}"
            )
        record = checkpoint.record
        params = jax.tree.map(np.float64, checkpoint.items["params"])
        totals = params if totals is None else jax.tree.map(np.add, totals, params)
    mean = jax.tree.map(lambda t: (t / len(steps)).astype(np.float32), totals)
    return Checkpoint(max(steps), {"params": mean}, {**record, "averaged": steps})


def save_average(
    workdir: pathlib.Path,
    average: Checkpoint,
    *,
    settings: Config | None = None,
    vocabulary: Vocabulary | None = None,
) -> pathlib.Path:
    """Write averaged parameters to WORKDIR/averaged, and return their path.

    A crash leaves the old directory or the new one.

    Args:
        workdir: The run's directory.
        average: The parameters and their record.
        settings: The run's settings. With the vocabulary, a copy in one file, which
            loads faster, is written beside the checkpoint; a failure is a warning.
        vocabulary: The run's vocabulary.

    Raises:
        NotWrittenError: The checkpoint could not be written.
    """
    directory = workdir / "averaged"
    # `vaswani train` and `vaswani average` may write at the same time.
    with files.locked(directory), files.replacing(directory) as unfinished:
        store.save(unfinished, average, keep=1)
        if settings and vocabulary:
            model = bundle.Bundle(settings, vocabulary, average)
            _save_copy(model, unfinished / str(average.step))
    return directory / str(average.step)


def _save_copy(model: bundle.Bundle, checkpoint: pathlib.Path) -> None:
    path = bundle.path_beside(checkpoint)
    try:
        model.save(path, dtype="float32", copy_of=store.fingerprint(checkpoint))
    except (OSError, CheckpointError) as error:
        logger.warning(f"averaged/{path.name}, a copy, is not written: {error}")


def last_good(
    directory: pathlib.Path,
    count: int,
    *,
    fetch_again: store.FetchAgain = store.no_other_copy,
) -> list[int]:
    """Return the steps of the last checkpoints that can be averaged.

    Damaged ones are left out, with a warning.

    Args:
        directory: Where they lie.
        count: How many there are at most.
        fetch_again: See `store.restore`.

    Raises:
        CheckpointError: There are none, or all are damaged.
        OSError: One is complete but cannot be read.
    """
    good: list[int] = []
    for step in reversed(store.steps(directory)):
        try:
            store.restore_for_decoding(directory, step, fetch_again=fetch_again)
        except CheckpointError as error:
            logger.warning(f"{error}; it is left out of the average")
        else:
            good.insert(0, step)
        if len(good) == count:
            break
    if not good:
        raise CheckpointError(f"no checkpoint in {directory} can be averaged")
    return good
