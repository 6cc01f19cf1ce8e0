"""Section 5.3's updates go wrong at times: which one, and what batch it was of."""

import dataclasses
import json
import math
import pathlib
from collections.abc import Callable, Sequence

import numpy as np

from vaswani_jax.core import config, processes
from vaswani_jax.training import loss, step

# The mean loss of so many updates is what a spike rises from.
WINDOW = 50


class DivergedError(RuntimeError):
    """The run cannot go on: the loss or the gradient is not finite, or rises."""


@dataclasses.dataclass(frozen=True)
class BadUpdate:
    """An update that must not stay. `step` counts the updates, from 1."""

    step: int
    loss: float
    gradient_norm: float
    reason: str

    def __str__(self) -> str:
        return (
            f"at step {self.step:,} the loss is {self.loss:.4g} and the gradient's "
            f"norm {self.gradient_norm:.4g}: {self.reason}"
        )


class Watch:
    """Looks at the loss of every update, and leaves batches out that spoil it.

    What it remembers (`recent` losses, `skipped` batches) is kept in checkpoints.
    """

    def __init__(
        self,
        settings: config.TrainingConfig,
        *,
        recent: Sequence[float],
        skipped: Sequence[int],
    ) -> None:
        self._settings = settings
        self.recent, self.skipped = list(recent), list(skipped)

    def index_of(self, made: int) -> int:
        """Which batch the next update takes after so many."""
        return index_of(made, self.skipped)

    def look(self, made: int, found: Sequence[step.StepMetrics]) -> BadUpdate | None:
        """The first of the last updates that must not stay."""
        for number, metrics in enumerate(found, start=made - len(found) + 1):
            value = loss.per_token(metrics.sums)["loss"]
            norm = float(metrics.gradient_norm)
            if reason := self._reason(value, norm):
                return BadUpdate(number, value, norm, reason)
            self.recent = [*self.recent, value][-WINDOW:]
        return None

    def _reason(self, value: float, norm: float) -> str:
        if not (math.isfinite(value) and math.isfinite(norm)):
            return "not finite"
        most = self._settings.max_loss_rise
        usual = sum(self.recent) / max(1, len(self.recent))
        if most and len(self.recent) == WINDOW and value > usual + most:
            return (
                f"over {usual:.4g}, the mean of the last {WINDOW}, by more than "
                f"config.training.max_loss_rise={most}"
            )
        return ""

    def leave_out(
        self,
        bad: BadUpdate,
        workdir: pathlib.Path,
        pairs_at: Callable[[int], np.ndarray],
        good: Sequence[int],
    ) -> tuple[list[int], str]:
        """The batches that are left out from now on, and what to say of it.

        Args:
            bad: What its batch gave.
            workdir: Where a line is added to diverged.jsonl.
            pairs_at: The pairs of a batch.
            good: Steps of the checkpoints.

        Raises:
            DivergedError: As many as are allowed were left out before.
        """
        batch = self.index_of(bad.step - 1)
        path = workdir / "diverged.jsonl"
        lost = ""
        if processes.is_main_process():
            try:
                _record(path, bad, batch=batch, pairs=pairs_at(batch))
            except OSError as error:
                lost = f"; {path} cannot be written ({error})"
        most, before = self._settings.max_skipped_batches, len(self.skipped)
        if before >= most:
            newest = f"step {good[-1]:,}" if good else "none yet"
            raise DivergedError(
                f"{bad}; {before} batches were left out before "
                f"(config.training.max_skipped_batches={most}). {path} has the pairs "
                f"of each; the last good checkpoint in {workdir}: {newest}"
            )
        told = f"warning: {bad}; batch {batch:,} is left out (its pairs are in {path})"
        told += lost
        return [*self.skipped, batch], told


def index_of(made: int, skipped: Sequence[int]) -> int:
    """Which batch the next update takes after so many, some batches being left out.

    >>> [index_of(made, [1, 2, 4]) for made in range(4)]
    [0, 3, 5, 6]
    """
    index = made
    for batch in sorted(skipped):
        index += batch <= index
    return index


def _record(
    path: pathlib.Path, bad: BadUpdate, *, batch: int, pairs: np.ndarray
) -> None:
    """Add a line: the update, its batch and the batch's pairs in the token files."""
    line = dataclasses.asdict(bad) | {"batch": batch, "pairs": np.sort(pairs).tolist()}
    for key in ("loss", "gradient_norm"):  # JSON has no infinity.
        line[key] = line[key] if math.isfinite(line[key]) else str(line[key])
    with open(path, "a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")
