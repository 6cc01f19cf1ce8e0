"""Compare a checkpoint with the settings: what may change when a run resumes."""

import dataclasses
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import flax.traverse_util

from vaswani_jax.checkpoints.store import Checkpoint, CheckpointError
from vaswani_jax.core import config
from vaswani_jax.data.vocabulary import Vocabulary
from vaswani_jax.model import transformer


@dataclasses.dataclass(frozen=True)
class Change:
    """A setting whose value differs from the one that a checkpoint records."""

    key: str
    was: Any
    now: Any

    def __str__(self) -> str:
        return f"config.{self.key} is {self.now!r}, was {self.was!r}"


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


def refuse_fixed(
    changes: Sequence[Change], *, step: int, directory: pathlib.Path
) -> None:
    """Refuse changes of settings that a run must keep.

    Args:
        changes: Settings that differ from those of the checkpoint.
        step: The step of the checkpoint, for the message.
        directory: Where the checkpoint lies, for the message.

    Raises:
        ValueError: A run must keep a changed setting. The message has both values.
    """
    fixed = [
        str(change) for change in changes if not config.SETTINGS[change.key].changeable
    ]
    if fixed:
        raise ValueError(
            f"{directory} has a run at step {step:,} that cannot go on with: "
            f"{'; '.join(fixed)}. Restore them, or name another --workdir (with "
            "--init_from it starts from this one's parameters)"
        )


def check_fits(
    checkpoint: Checkpoint, settings: config.Config, vocabulary: Vocabulary
) -> None:
    """Refuse a checkpoint of another vocabulary or another model.

    Raises:
        CheckpointError: The message has the two fingerprints, or the settings that
            change the model's outputs, or the parameter whose shape differs.
    """
    fingerprint = checkpoint.record["vocabulary"]
    if fingerprint != vocabulary.fingerprint:
        raise CheckpointError(
            f"the checkpoint was trained with the vocabulary {fingerprint}, but the "
            f"data has {vocabulary.fingerprint}: they belong to different runs"
        )
    other_model = f"the checkpoint of step {checkpoint.step} is of another model"
    changes = [
        str(change)
        for change in find_changes(checkpoint.record.get("config", {}), settings)
        if config.SETTINGS[change.key].affects == "outputs"
    ]
    if changes:
        raise CheckpointError(
            f"{other_model}: {'; '.join(changes)}; restore the config it was trained "
            "with"
        )
    expected = transformer.param_shapes(settings.model, vocabulary.size)
    params = flax.traverse_util.flatten_dict(checkpoint.items["params"], sep="/")
    shapes = {path: leaf.shape for path, leaf in params.items()}
    for path in sorted(expected.keys() | shapes.keys()):
        if expected.get(path) != shapes.get(path):
            raise CheckpointError(
                f"{other_model}: {path} has shape {shapes.get(path)}, the config gives "
                f"{expected.get(path)}; name another --workdir or the config it was "
                "trained with"
            )
