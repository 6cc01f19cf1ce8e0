"""Start a run: from its newest valid checkpoint, or with new parameters."""

import contextlib
import dataclasses
import json
import logging
import pathlib
from typing import Any

import flax.serialization
import jax
import jax.numpy as jnp
import numpy as np

from vaswani_jax.checkpoints import compatibility, run_record, store
from vaswani_jax.checkpoints.store import Checkpoint, CheckpointError
from vaswani_jax.core import config, files, parallel, processes, shards
from vaswani_jax.data.vocabulary import Vocabulary
from vaswani_jax.training import early_stopping, optimizer, step
from vaswani_jax.training.early_stopping import Best, Criterion
from vaswani_jax.training.step import TrainState

# The file in the workdir that records an evaluation repeated after a signal cut it.
EVALUATED = "evaluated.json"
logger = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True)
class Run:
    """A run: its settings, its directory and its text.

    Attributes:
        settings: Its settings.
        workdir: Its directory.
        vocabulary: Its vocabulary.
        training_text: The fingerprint of the training text.
        valid_text: The fingerprint of the validation text.
        tokenizer: That of BLEU for the validation text.
        identity: Its `run_record.identify_run`; empty before its start is recorded.
    """

    settings: config.Config
    workdir: files.Directory
    vocabulary: Vocabulary
    training_text: str
    valid_text: str
    tokenizer: str
    identity: dict[str, str] = dataclasses.field(default_factory=dict)

    @property
    def checkpoints(self) -> pathlib.Path:
        """The directory of the newest checkpoints."""
        return self.workdir.path / "checkpoints"

    @property
    def best(self) -> pathlib.Path:
        """The directory of the parameters with the best validation score."""
        return self.workdir.path / "best"

    @property
    def criterion(self) -> Criterion:
        """The measure of its validation scores."""
        return Criterion(self.settings, self.valid_text, self.tokenizer)


@dataclasses.dataclass
class Progress:
    """The part of a checkpoint that is neither parameters nor moments.

    Attributes:
        step: Number of updates made.
        best: The best validation scores.
        num_microbatches: The number of parts a batch is computed in.
        recent_losses: Losses of the last updates.
        skipped_batches: Batches that gave no finite loss or a spike.
        irregular_steps: Steps of checkpoints that a signal asked for, or with which
            the run ended before it was prolonged.
        is_evaluated: Whether the evaluation that is due at this step was finished.
    """

    step: int
    best: Best
    num_microbatches: int = 1
    recent_losses: list[float] = dataclasses.field(default_factory=list)
    skipped_batches: list[int] = dataclasses.field(default_factory=list)
    irregular_steps: list[int] = dataclasses.field(default_factory=list)
    is_evaluated: bool = True


@dataclasses.dataclass(frozen=True)
class Resumed:
    """The state that a run continues from.

    Attributes:
        state: Parameters and moments.
        progress: The rest of the checkpoint.
        changes: Settings that differ from those of the checkpoint.
    """

    state: TrainState
    progress: Progress
    changes: list[compatibility.Change]


def resume(
    run: Run, initial_params: Any = None, *, previous_best: Best | None = None
) -> Resumed:
    """Return the state of the newest valid checkpoint, or a new one.

    Args:
        run: The run.
        initial_params: Parameters of a new run, as NumPy arrays; random if None.
        previous_best: The best scores of a run that goes back. If there is no
            checkpoint to go back to, WORKDIR/best stays the run's.

    Raises:
        CheckpointError: All checkpoints are damaged, or the newest is of another
            vocabulary or model.
        ValueError: The settings or the text are those of another run.
        OSError: A checkpoint is complete but cannot be read, or the store cannot be
            read.
    """
    if not processes.is_main_process():
        run.workdir.pull(is_follower=True)
    checkpoint = newest_valid(run.checkpoints, fetch_again=run.workdir.pull_again)
    if checkpoint is None:
        state = _new_state(run, initial_params)
        if previous_best is None:
            early_stopping.set_aside(run.workdir.path / "averaged")
            best = _restore_best(run, step=0, record={})
        else:
            best = Best(saved_score=previous_best.saved_score)
        return Resumed(state, Progress(0, best), [])
    record = checkpoint.record
    if record.get("unevaluated", False):
        record = record | _read_evaluation(run, checkpoint.step)
    changes = compatibility.find_changes(record["config"], run.settings)
    _check_same_run(run, checkpoint, changes=changes)
    for difference in run_record.software_changes(record.get("environment", {})):
        logger.warning(f"{difference}: the digits may differ from here on")
    state = _restore_state(run.settings, checkpoint)
    steps = store.steps(run.checkpoints)
    progress = Progress(
        checkpoint.step,
        _restore_best(run, step=checkpoint.step, record=record),
        num_microbatches=_recorded_microbatches(record),
        recent_losses=record.get("recent", []),
        skipped_batches=record.get("skipped", []),
        irregular_steps=[
            step for step in _irregular_steps(run, checkpoint) if step in steps
        ],
        is_evaluated=not record.get("unevaluated", False),
    )
    return Resumed(state, progress, changes)


def _recorded_microbatches(record: dict[str, Any]) -> int:
    """Return the number of parts before the run resumed; 1 on other devices.

    The same devices continue to the same digits; others may have room for fewer parts.
    """
    devices = record.get("devices", parallel.describe())  # Old records have none.
    return record.get("parts", 1) if devices == parallel.describe() else 1


def _irregular_steps(run: Run, checkpoint: Checkpoint) -> list[int]:
    """Return the steps of checkpoints that an uninterrupted run would not save."""
    recorded = checkpoint.record["config"]["training"]["checkpoint_every_steps"]
    intervals = (recorded, run.settings.training.checkpoint_every_steps)
    irregular = set(checkpoint.record.get("extra", []))
    # The run ended there before it was prolonged.
    if all(checkpoint.step % interval for interval in intervals):
        irregular.add(checkpoint.step)
    return sorted(irregular)


def _restore_state(settings: config.Config, checkpoint: Checkpoint) -> TrainState:
    """Return the state that `save_checkpoint` saved.

    A moving average that the checkpoint lacks begins with the parameters.
    """
    params = checkpoint.items["params"]
    structure = jax.eval_shape(optimizer.make_optimizer(settings).init, params)
    opt_state = flax.serialization.from_state_dict(
        structure, checkpoint.items["optimizer"]
    )
    step = jnp.asarray(checkpoint.step, jnp.int32)
    average = None
    if settings.training.ema_decay:
        average = checkpoint.items.get(store.AVERAGE)
        if average is None:
            average = jax.tree.map(np.copy, params)
    return TrainState(step, params, opt_state, average)


def _restore_best(run: Run, *, step: int, record: dict[str, Any]) -> Best:
    return early_stopping.restore_best(
        run.criterion, run.best, step=step, record=record
    )


def make_record(run: Run, progress: Progress) -> dict[str, Any]:
    """Return what a checkpoint records, under the keys that `resume` reads."""
    return {
        "run": run.identity,
        "vocabulary": run.vocabulary.fingerprint,
        "training_text": run.training_text,
        "config": config.to_dict(run.settings),
        "environment": run_record.describe_software(),
        "parts": progress.num_microbatches,
        "devices": parallel.describe(),
        "recent": progress.recent_losses,
        "skipped": progress.skipped_batches,
        "extra": progress.irregular_steps,
        "best": early_stopping.best_record(progress.best, run.criterion),
    }


def save_checkpoint(run: Run, progress: Progress, *, state: TrainState) -> None:
    """Save what `resume` needs, and send it to the store of a remote workdir.

    Raises:
        store.NotWrittenError: It cannot be written or sent.
        files.SupersededError: Another run has begun on the store since.
    """
    optimizer_state = shards.gather(state.opt_state)
    items = {
        "params": parallel.gather(state.params),
        "optimizer": flax.serialization.to_state_dict(optimizer_state),
    }
    if state.average is not None:
        items[store.AVERAGE] = parallel.gather(state.average)
    record = make_record(run, progress) | {"unevaluated": not progress.is_evaluated}

    def save() -> files.SupersededError | None:
        store.save(
            run.checkpoints,
            Checkpoint(progress.step, items, record),
            keep=run.settings.training.keep_checkpoints,
            irregular_steps=progress.irregular_steps,
        )
        try:
            run.workdir.push()
        except OSError as error:
            raise store.NotWrittenError(str(error)) from error
        except files.SupersededError as error:
            return error
        return None

    error = processes.run_on_main(save, store.NotWrittenError)
    if processes.broadcast_from_main(error is not None):
        raise error or files.SupersededError(
            f"another run has started in {run.workdir.path}: use another workdir"
        )


def record_evaluation(run: Run, progress: Progress) -> None:
    """Record the evaluation that the newest checkpoint lacks, for later starts."""
    best = early_stopping.best_record(progress.best, run.criterion)
    if best:
        # The score is of these settings, perhaps not of the checkpoint's.
        best["config"] = config.to_dict(run.settings)
    with contextlib.suppress(OSError):  # The next start evaluates again.
        evaluation = {
            "checkpoint": store.fingerprint(run.checkpoints / str(progress.step)),
            "unevaluated": False,
            "best": best,
        }
        text = json.dumps(evaluation)
        files.write_atomically(run.workdir.path / EVALUATED, text)


def _read_evaluation(run: Run, step: int) -> dict[str, Any]:
    """Return the evaluation that `record_evaluation` wrote for a checkpoint, or {}."""
    evaluation: dict[str, Any] = {}
    fingerprint = None
    with contextlib.suppress(OSError, TypeError, ValueError):  # It may be damaged.
        text = (run.workdir.path / EVALUATED).read_text(encoding="utf-8")
        evaluation = dict(json.loads(text))
        fingerprint = store.fingerprint(run.checkpoints / str(step))
    is_same = evaluation.pop("checkpoint", "") == fingerprint
    # No process may evaluate alone: if one does not see the file yet, all evaluate.
    return evaluation if processes.gather_from_all(np.array(is_same)).all() else {}


def newest_valid(
    directory: pathlib.Path,
    *,
    fetch_again: store.FetchAgain = store.no_other_copy,
) -> Checkpoint | None:
    """Return the newest checkpoint that is not damaged; set aside newer ones.

    Args:
        directory: Where they lie.
        fetch_again: See `store.restore`.

    Returns:
        None if there are no checkpoints.

    Raises:
        CheckpointError: All are damaged; they stay in place.
        OSError: A checkpoint is complete but cannot be read.
    """
    damaged: dict[int, str] = {}
    checkpoint = read_error = None
    for saved_step in reversed(store.steps(directory)):
        try:
            names = ["params", "optimizer"]
            if store.has_average(directory, saved_step):
                names.append(store.AVERAGE)
            checkpoint = store.restore(
                directory, saved_step, names=names, fetch_again=fetch_again
            )
            break
        except CheckpointError as error:
            damaged[saved_step] = str(error)
        except OSError as error:
            read_error = error  # The other processes must not wait for this one.
            break
    try:
        _check_agreement(directory, checkpoint, is_damaged=bool(damaged or read_error))
    finally:
        if read_error:
            raise read_error
    if checkpoint is None:
        if damaged:
            raise CheckpointError(
                f"all {len(damaged)} checkpoints in {directory} are damaged, and "
                f"nothing was deleted: {'; '.join(damaged.values())}. Restore one, or "
                "name another --workdir"
            )
        return None
    if processes.is_main_process():
        if damaged:
            store.set_aside(directory, list(damaged), suffix="damaged")
        path = directory / str(checkpoint.step)
        if not store.is_sealed(path):  # A kill of an earlier version left it unsealed.
            store.seal(path)
    for reason in damaged.values():
        logger.warning(
            f"{reason}; it was moved aside, and step {checkpoint.step:,} is used"
        )
    return checkpoint


def _check_agreement(
    directory: pathlib.Path, checkpoint: Checkpoint | None, *, is_damaged: bool
) -> None:
    """Refuse to let processes resume from different checkpoints.

    Raises:
        CheckpointError: They would; raised in every process.
    """
    if processes.num_processes() == 1:
        return
    step, fingerprint = (-1 if is_damaged else 0), 0
    if checkpoint is not None:
        step = checkpoint.step
        path = directory / str(step)
        if store.is_sealed(path):
            fingerprint = int(store.fingerprint(path)[:7], 16)
    starts = processes.gather_from_all(np.array([step, fingerprint], np.int32))
    if (starts != starts[0]).any():
        raise CheckpointError(
            f"the processes would resume from the steps {starts[:, 0].tolist()} (-1: "
            "damaged) or from other parameters: all must see the same files, on a "
            "shared file system or in an object store"
        )


def _new_state(run: Run, initial_params: Any) -> TrainState:
    state = step.create_state(run.settings, vocab_size=run.vocabulary.size)
    if initial_params is None:
        return state
    params = jax.tree.map(_fill_rows, state.params, initial_params)
    average = None
    if state.average is not None:
        average = jax.tree.map(jnp.copy, params)
    return state.replace(params=params, average=average)


def _fill_rows(param: jax.Array, initial: np.ndarray) -> jax.Array:
    """Return the initial value; rows of subwords that it lacks keep the random one."""
    if param.shape == initial.shape:
        return jnp.asarray(initial)
    return param.at[: len(initial)].set(initial)


def _check_same_run(
    run: Run, checkpoint: Checkpoint, *, changes: list[compatibility.Change]
) -> None:
    compatibility.refuse_fixed(
        changes,
        step=checkpoint.step,
        num_batches=checkpoint.step + len(checkpoint.record.get("skipped", [])),
        directory=run.checkpoints,
    )
    compatibility.check_fits(
        checkpoint, settings=run.settings, vocabulary=run.vocabulary
    )
    text = checkpoint.record.get("training_text", run.training_text)
    if text != run.training_text:
        raise ValueError(
            f"{run.checkpoints} has a run at step {checkpoint.step:,} that was trained "
            f"on the text {text}, but the data has {run.training_text}: restore it, or "
            "name another --workdir (with --init_from it starts from this one's "
            "parameters)"
        )
