"""Compare a checkpoint's record with the settings, the data and the model of a run."""

import dataclasses
import hashlib
import math
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

from vaswani_jax.checkpoints.store import Checkpoint, CheckpointError
from vaswani_jax.core import config
from vaswani_jax.data.vocabulary import Vocabulary

# Names the `digest_of_fit` of a record.
FIT = "fit"
# Settings that a finished run can still apply: a later end, and its mean.
SETTINGS_AFTER_TRAINING = ("training.num_steps", "training.average_checkpoints")


@dataclasses.dataclass(frozen=True)
class Change:
    """A setting whose value differs from the one that a checkpoint records."""

    key: str
    was: Any
    now: Any

    def __str__(self) -> str:
        if describe := config.SETTINGS[self.key].describe_change:
            return f"config.{self.key}: {describe(self.was, self.now)}"
        return f"config.{self.key} is {self.now!r}, was {self.was!r}"


def may_be_same_run(first: Mapping[str, Any], second: Mapping[str, Any]) -> bool:
    """Return whether two checkpoints' records may come from one run.

    Args:
        first: The record of a checkpoint.
        second: That of another one.
    """
    ids = [record.get("run", {}).get("id") for record in (first, second)]
    if all(ids):
        return ids[0] == ids[1]
    # Earlier versions have recorded no id.
    texts = [record.get("training_text") for record in (first, second)]
    configs = [
        config.flatten_record(record.get("config", {})) for record in (first, second)
    ]
    return (not all(texts) or texts[0] == texts[1]) and not any(
        not setting.changeable
        and key in configs[0]
        and key in configs[1]
        and configs[0][key] != configs[1][key]
        for key, setting in config.SETTINGS.items()
    )


def describe_run(record: Mapping[str, Any]) -> str:
    """Describe the run of a checkpoint's record."""
    run = record.get("run", {})
    if run.get("id"):
        return f"run {run['id']} of {run['workdir']}"
    seed = record.get("config", {}).get("seed")
    text = record.get("training_text")
    return f"a run of config.seed={seed} on the training text {text}"


def find_changes(recorded: Mapping[str, Any], settings: config.Config) -> list[Change]:
    """Return the settings that differ from a recorded configuration.

    Settings that the record lacks are ignored.
    """
    old = config.flatten_record(recorded)
    new = config.flatten(config.to_dict(settings))
    return [
        Change(key, old[key], value)
        for key, value in new.items()
        if key in old and old[key] != value
    ]


def decides_updates(key: str) -> bool:
    """Return whether a setting decides the updates, so that a finished run keeps it.

    Those of data are no part of it: `refuse_fixed` has them, and the text is compared.

    >>> decides_updates("model.dropout_rate"), decides_updates("search.beam_size")
    (True, False)
    """
    setting = config.SETTINGS[key]
    return (
        setting.section in ("model", "optimizer", "training")
        and not setting.incidental
        and key not in SETTINGS_AFTER_TRAINING
    )


def refuse_after_training(
    changes: Sequence[Change],
    *,
    settings: config.Config,
    record: Mapping[str, Any],
    step: int,
    run: str,
) -> None:
    """Refuse changes that a run of several seeds cannot apply once it is finished.

    It is finished by its recorded settings, or by the present ones.

    Args:
        changes: Settings that differ from those of the run.
        settings: The present settings.
        record: That of the run's newest checkpoint.
        step: The step of that checkpoint.
        run: The name of the run, for the message.

    Raises:
        ValueError: The run is finished, and a change would make it train on, or
            decides its updates. The message has both values.
    """
    recorded = {change.key: change.was for change in changes}
    num_steps, patience = (
        [getattr(settings.training, name), recorded.get(f"training.{name}", math.inf)]
        for name in ("num_steps", "patience")
    )
    last_step = min(num_steps)
    num_worse = (record.get("best") or {}).get("num_worse", 0)
    ended_early = any(0 < number <= num_worse for number in patience)
    if step < last_step and not ended_early:
        return
    # The rates of a decay depend on its last step.
    has_decay = settings.optimizer.schedule in ("linear", "cosine")
    may_end_later = step <= settings.training.num_steps and not has_decay
    refused_changes = [
        str(change)
        for change in changes
        if decides_updates(change.key)
        or (change.key == "training.num_steps" and not may_end_later)
        # With other scores, patience would begin again.
        or (step < last_step and config.SETTINGS[change.key].affects == "scores")
    ]
    if refused_changes:
        raise ValueError(
            f"{run} is finished, and was trained with other settings: "
            f"{'; '.join(refused_changes)}. Runs of one directory differ in their "
            "seeds alone: restore the settings, or name another --workdir"
        )


def refuse_fixed(
    changes: Sequence[Change],
    *,
    step: int,
    num_batches: int,
    directory: pathlib.Path,
) -> None:
    """Refuse changes of settings that a run must keep.

    Args:
        changes: Settings that differ from those of the checkpoint.
        step: The step of the checkpoint, for the message.
        num_batches: The number of batches that the run has used by then.
        directory: Where the checkpoint lies, for the message.

    Raises:
        ValueError: A run must keep a changed setting. The message has both values.
    """
    fixed = [change for change in changes if not _may_change(change, num_batches)]
    if fixed:
        stages = (
            f" (stages from batch {num_batches:,} on may change)"
            if any(change.key == "data.stages" for change in fixed)
            else ""
        )
        raise ValueError(
            f"{directory} has a run at step {step:,} that cannot resume with: "
            f"{'; '.join(map(str, fixed))}{stages}. Restore them, or name another "
            "--workdir (with --init_from it starts from this one's parameters)"
        )


def _may_change(change: Change, num_batches: int) -> bool:
    setting = config.SETTINGS[change.key]
    if setting.may_replace and not setting.changeable:
        return setting.may_replace(change.was, change.now, num_batches)
    return setting.changeable


def check_fits(
    checkpoint: Checkpoint, *, settings: config.Config, vocabulary: Vocabulary
) -> None:
    """Refuse a checkpoint of another vocabulary or another model.

    Raises:
        CheckpointError: The vocabulary or the model is another. The message has the two
            fingerprints, or the settings that change the model's outputs or the shapes
            of its parameters. If the checkpoint records no such setting, it has the
            parameter whose shape differs.
    """
    fingerprint = checkpoint.record["vocabulary"]
    if fingerprint != vocabulary.fingerprint:
        raise CheckpointError(
            f"the checkpoint was trained with the vocabulary {fingerprint}, but the "
            f"data has {vocabulary.fingerprint}: they belong to different runs; "
            "restore the run's data directory"
        )
    shapes = {
        path: leaf.shape for path, leaf in flatten(checkpoint.items["params"]).items()
    }
    digest = digest_of_fit(settings.model, vocabulary, shapes=shapes)
    if checkpoint.record.get(FIT) == digest:
        return
    # The model is traced for its shapes, and its modules take long to import.
    from vaswani_jax.model import transformer

    other_model = f"the checkpoint of step {checkpoint.step} is of another model"
    changes = [
        change
        for change in find_changes(checkpoint.record.get("config", {}), settings)
        if config.SETTINGS[change.key].section == "model"
    ]
    expected = transformer.param_shapes(settings.model, vocabulary.size)

    def decides(change: Change) -> bool:
        setting = config.SETTINGS[change.key]
        if setting.changeable or setting.affects == "outputs":
            return setting.affects == "outputs"
        recorded_model = dataclasses.replace(
            settings.model, **{setting.name: change.was}
        )
        return transformer.param_shapes(recorded_model, vocabulary.size) != expected

    if deciding := [str(change) for change in changes if decides(change)]:
        raise CheckpointError(
            f"{other_model}: {'; '.join(deciding)}; restore the config it was trained "
            "with"
        )
    for path in sorted(expected.keys() | shapes.keys()):
        if expected.get(path) != shapes.get(path):
            raise CheckpointError(
                f"{other_model}: {path} has shape {shapes.get(path)}, the config gives "
                f"{expected.get(path)}; name another --workdir or the config it was "
                "trained with"
            )


def digest_of_fit(
    model: config.ModelConfig,
    vocabulary: Vocabulary,
    *,
    shapes: Mapping[str, tuple[int, ...]],
) -> str:
    """Return a SHA-256 of a model, its vocabulary and the shapes of its parameters.

    A record that has it as `FIT` says that `check_fits` has compared them.
    """
    parts = (model, vocabulary.fingerprint, sorted(shapes.items()))
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def flatten(tree: Mapping[str, Any]) -> dict[str, Any]:
    """Return the leaves of nested dictionaries by their paths.

    >>> flatten({"encoder": {"layers_0": 1, "layers_1": 2}})
    {'encoder/layers_0': 1, 'encoder/layers_1': 2}
    """
    leaves: dict[str, Any] = {}
    for name, value in tree.items():
        if isinstance(value, Mapping):
            leaves |= {f"{name}/{path}": leaf for path, leaf in flatten(value).items()}
        else:
            leaves[name] = value
    return leaves
