"""Detect losses that are not finite or spike, and skip the batches that cause them."""

import dataclasses
import json
import logging
import math
import pathlib
from collections.abc import Sequence

import numpy as np

from vaswani_jax.core import processes
from vaswani_jax.training import loss
from vaswani_jax.training.step import StepMetrics

# A spike exceeds the mean loss of this many updates before it.
WINDOW = 50

logger = logging.getLogger(__name__)


class DivergedError(RuntimeError):
    """Too many batches gave a loss that is not finite or a spike."""


@dataclasses.dataclass(frozen=True)
class BadUpdate:
    """An update that must be undone.

    Attributes:
        step: Its number, from 1.
        loss: Nats per token.
        gradient_norm: The norm of the gradient.
        reason: What is wrong.
    """

    step: int
    loss: float
    gradient_norm: float
    reason: str

    def __str__(self) -> str:
        return (
            f"at step {self.step:,} the loss is {self.loss:.4g} and the gradient's "
            f"norm {self.gradient_norm:.4g}: {self.reason}"
        )


def find_bad_update(
    updates: Sequence[StepMetrics],
    *,
    step: int,
    recent_losses: list[float],
    max_loss_rise: float,
) -> BadUpdate | None:
    """Return the first of the last updates that must be undone, or None.

    Args:
        updates: The metrics of the last updates.
        step: The number of the last one.
        recent_losses: Losses of at most `WINDOW` earlier updates; those of good updates
            are added in place.
        max_loss_rise: Nats per token above their mean that make a spike; 0 for no
            limit.
    """
    for number, metrics in enumerate(updates, start=step - len(updates) + 1):
        nats = loss.per_token(metrics.sums)["loss"]
        norm = float(metrics.gradient_norm)
        mean = sum(recent_losses) / max(1, len(recent_losses))
        if not (math.isfinite(nats) and math.isfinite(norm)):
            return BadUpdate(number, nats, norm, "not finite")
        is_full = len(recent_losses) == WINDOW
        if max_loss_rise and is_full and nats > mean + max_loss_rise:
            reason = (
                f"over {mean:.4g}, the mean of the last {WINDOW}, by more than "
                f"config.training.max_loss_rise={max_loss_rise}"
            )
            return BadUpdate(number, nats, norm, reason)
        recent_losses[:] = [*recent_losses, nats][-WINDOW:]
    return None


def skip_batch(
    bad_update: BadUpdate,
    skipped_batches: Sequence[int],
    *,
    batch: int,
    pairs: np.ndarray,
    max_skipped_batches: int,
    workdir: pathlib.Path,
    checkpoint_steps: Sequence[int],
) -> list[int]:
    """Record the batch of a bad update, and return the batches to skip from now on.

    Args:
        bad_update: The update whose batch to skip.
        skipped_batches: The batches that are skipped already.
        batch: Its batch.
        pairs: The indices in the corpus of the batch's pairs.
        max_skipped_batches: How many batches may be skipped.
        workdir: The run's directory, with diverged.jsonl.
        checkpoint_steps: The steps of the checkpoints, for the message.

    Raises:
        DivergedError: `max_skipped_batches` are skipped already.
    """
    path = workdir / "diverged.jsonl"
    failure = ""
    if processes.is_main_process():
        try:
            _record(path, bad_update, batch=batch, pairs=pairs)
        except OSError as error:
            failure = f"; {path} cannot be written ({error})"
    if len(skipped_batches) >= max_skipped_batches:
        newest = f"step {checkpoint_steps[-1]:,}" if checkpoint_steps else "none yet"
        advice = "resume with a lower learning rate"
        if not failure:
            advice = f"look at these pairs, or {advice}"
        raise DivergedError(
            f"{bad_update}; batches skipped before: {len(skipped_batches)} "
            f"(config.training.max_skipped_batches={max_skipped_batches})"
            f"{failure or f'. {path} has the pairs of each'}; the last good checkpoint "
            f"in {workdir}: {newest}; {advice}"
        )
    recorded = failure or f" (its pairs are in {path})"
    logger.warning(f"{bad_update}; batch {batch:,} is skipped{recorded}")
    return [*skipped_batches, batch]


def batch_index(step: int, skipped_batches: Sequence[int]) -> int:
    """Return the index of the batch that the update after `step` others takes.

    >>> [batch_index(step, [1, 2, 4]) for step in range(4)]
    [0, 3, 5, 6]
    """
    index = step
    for batch in sorted(skipped_batches):
        index += batch <= index
    return index


def _record(
    path: pathlib.Path, bad_update: BadUpdate, *, batch: int, pairs: np.ndarray
) -> None:
    """Add a line: the update, its batch, and the batch's pairs in the token files."""
    line = dataclasses.asdict(bad_update) | {
        "batch": batch,
        "pairs": np.sort(pairs).tolist(),
    }
    for key in ("loss", "gradient_norm"):  # JSON has no infinity.
        line[key] = line[key] if math.isfinite(line[key]) else str(line[key])
    with open(path, "a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")
