"""Keep the parameters with the best validation score; stop when no score improves."""

import contextlib
import dataclasses
import logging
import math
import pathlib
from collections.abc import Callable, Mapping
from typing import Any

from vaswani_jax.checkpoints import compatibility, store
from vaswani_jax.checkpoints.store import Checkpoint
from vaswani_jax.core import config, files, languages, parallel, processes
from vaswani_jax.core.training_config import TrainingConfig

logger = logging.getLogger(__name__)


@dataclasses.dataclass
class Best:
    """The best score of a run, and that of the parameters in WORKDIR/best.

    The two differ when a kill undoes the updates before an evaluation, or when the
    parameters could not be written.

    Attributes:
        score: The best score in the history of the current parameters.
        step: Its step; before any evaluation, the step at which the run started.
        saved_score: The score of the saved parameters.
        num_worse: The number of evaluations since `step`, none of which was better.
    """

    score: float = -math.inf
    step: int = 0
    saved_score: float = -math.inf
    num_worse: int = 0


@dataclasses.dataclass(frozen=True)
class Criterion:
    """The measure of a run's scores: a metric on one text.

    Attributes:
        settings: The settings of the run, which name the metric.
        valid_text: The fingerprint of the validation text; "" without one.
        tokenizer: That of BLEU for this text, which a package may have changed.
    """

    settings: config.Config
    valid_text: str
    tokenizer: str = ""

    def score(self, metrics: Mapping[str, float]) -> float:
        """Return the score that the metrics of an evaluation give; higher is better."""
        score = -metrics.get("valid/loss", 0.0)
        metric = self.settings.training.best_metric
        return score if metric == "loss" else metrics.get(f"valid/{metric}", score)

    def describe(self) -> dict[str, str]:
        """Return what is recorded beside a score."""
        metric = self.settings.training.best_metric
        record = {"score_of": metric, "valid_text": self.valid_text}
        return record | ({"tokenizer": self.tokenizer} if metric == "bleu" else {})

    def is_comparable(self, record: Mapping[str, Any]) -> bool:
        """Return whether a recorded score can be compared with this run's."""
        metric = self.settings.training.best_metric
        changes = compatibility.find_changes(record.get("config", {}), self.settings)
        scores_changed = any(
            config.SETTINGS[change.key].affects == "scores" for change in changes
        )
        recorded = languages.recorded_tokenizers(self.settings.data)
        tokenizer_changed = self.tokenizer != record.get("tokenizer", recorded)
        return (
            record.get("valid_text") == self.valid_text
            # A record without a metric holds BLEU.
            and record.get("score_of", "bleu") == metric
            and not (metric != "loss" and scores_changed)
            and not (metric == "bleu" and tokenizer_changed)
        )


def restore_best(
    criterion: Criterion,
    directory: pathlib.Path,
    *,
    step: int,
    record: Mapping[str, Any],
) -> Best:
    """Return the best scores of a run that resumes.

    Args:
        criterion: What scores measure.
        directory: WORKDIR/best.
        step: The step that the run resumes from; 0 if it is new.
        record: The record of the checkpoint it resumes from; empty if it is new.
    """
    best = Best(step=step)
    saved_steps = store.steps(directory)
    if not step:
        set_aside(directory)
    elif saved_steps:
        best.saved_score = _saved_score(criterion, directory, step=saved_steps[-1])
    recorded_best = record.get("best")
    if recorded_best and criterion.is_comparable({**record, **recorded_best}):
        best.score, best.step = (
            float(recorded_best["score"]),
            int(recorded_best["step"]),
        )
    elif (
        "best" not in record  # as in checkpoints of earlier versions
        and best.saved_score > -math.inf
        and saved_steps[-1] <= step
    ):
        best.score, best.step = best.saved_score, saved_steps[-1]
    # Earlier versions recorded no number; their evaluations had one distance.
    interval = record.get("config", {}).get("training", {}).get("evaluate_every_steps")
    num_worse = (step - best.step) // interval if interval else 0
    best.num_worse = int((recorded_best or {}).get("num_worse", num_worse))
    if best.score == -math.inf:
        best.num_worse = 0
    return best


def set_aside(directory: pathlib.Path) -> None:
    """Move parameters of an earlier run to DIRECTORY.old, if there are any."""
    if not processes.is_main_process():
        return
    # A kill while they were replaced left them under another name.
    files.recover(directory, mark=".")
    if steps := store.steps(directory):
        target = store.set_aside(directory, steps, suffix="old")
        logger.info(f"note: moved the parameters of an earlier run to {target}")


def _saved_score(criterion: Criterion, directory: pathlib.Path, *, step: int) -> float:
    try:
        record = store.restore(directory, step, names=[]).record
    except store.CheckpointError as error:
        logger.warning(f"{error}; the next evaluation counts as the best so far")
        return -math.inf
    if criterion.is_comparable(record):
        return float(record["score"])
    logger.info(
        f"note: the score of {directory / str(step)} is of another text, metric or "
        "search; the next evaluation counts as the best so far, and these parameters "
        f"move to {directory.name}.old"
    )
    return -math.inf


def best_record(best: Best, criterion: Criterion) -> dict[str, Any] | None:
    """Return what a checkpoint records of the best score; None before there is one."""
    if best.score == -math.inf:
        return None
    return {
        "score": best.score,
        "step": best.step,
        "num_worse": best.num_worse,
        **criterion.describe(),
    }


def update_best(
    best: Best,
    *,
    criterion: Criterion,
    directory: pathlib.Path,
    step: int,
    params: Any,
    metrics: Mapping[str, float],
    make_record: Callable[[], dict[str, Any]],
) -> None:
    """Update the best score, and save parameters that beat the saved ones.

    Args:
        best: The scores so far; changed in place.
        criterion: What scores measure.
        directory: WORKDIR/best.
        step: The step that was evaluated.
        params: Its parameters, on the devices.
        metrics: The metrics of the evaluation.
        make_record: Returns what is recorded with a checkpoint.
    """
    score = criterion.score(metrics)
    best.num_worse += 1
    if score > best.score:
        best.score, best.step, best.num_worse = score, step, 0
    if not processes.broadcast_from_main(score > best.saved_score):
        return
    record = make_record() | {"score": score, "metrics": dict(metrics)}
    checkpoint = Checkpoint(
        step,
        {"params": parallel.gather(params)},
        record | criterion.describe(),
    )
    try:
        processes.run_on_main(
            lambda: replace_best(directory, checkpoint, saved_score=best.saved_score),
            store.NotWrittenError,
        )
        best.saved_score = score
    except store.NotWrittenError as error:
        logger.warning(f"{error}; training continues without it")
        with contextlib.suppress(OSError):
            if not store.steps(directory):  # It was deleted before the write failed.
                best.saved_score = -math.inf


def replace_best(
    directory: pathlib.Path, checkpoint: Checkpoint, *, saved_score: float
) -> None:
    """Save parameters in place of those in WORKDIR/best.

    Raises:
        store.NotWrittenError: They cannot be written.
    """
    try:
        steps = store.steps(directory)
        if steps and saved_score == -math.inf:
            # They were the best by another measure, or are damaged.
            store.set_aside(directory, steps, suffix="old")
        else:
            for step in steps:
                if step >= checkpoint.step:  # of updates that a kill undid
                    store.delete(directory, step)
    except OSError as error:
        raise store.NotWrittenError(
            f"{directory} cannot be replaced: {error}"
        ) from error
    store.save(directory, checkpoint, keep=1)


def stop_reason(best: Best, training: TrainingConfig) -> str:
    """Return why training stops early; "" if it continues."""
    if not training.patience or best.num_worse < training.patience:
        return ""
    return (
        f"no better valid/{training.best_metric} than that of step {best.step:,} in "
        f"{best.num_worse} evaluations (config.training.patience)"
    )
