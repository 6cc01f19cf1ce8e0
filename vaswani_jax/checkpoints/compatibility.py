"""Compare a checkpoint with the settings: what may change when a run resumes."""

import dataclasses
import pathlib
from collections.abc import Mapping
from typing import Any

import flax.traverse_util

from vaswani_jax.checkpoints.store import Checkpoint, CheckpointError
from vaswani_jax.core import config
from vaswani_jax.data.vocabulary import Vocabulary
from vaswani_jax.model import transformer


@dataclasses.dataclass(frozen=True)
class Change:
    """A setting that is not what it was when the checkpoint was made."""

    key: str
    was: Any
    now: Any

    def __str__(self) -> str:
        return f"config.{self.key} is {self.now!r}, was {self.was!r}"


def changes(was: Mapping[str, Any], settings: config.Config) -> list[Change]:
    """What differs between a checkpoint's recorded configuration and the settings.

    A key that the record does not have is no difference.
    """
    old = config.flatten_record(was)
    new = config.flatten(config.to_dict(settings))
    return [
        Change(key, old[key], value)
        for key, value in new.items()
        if key in old and old[key] != value
    ]


def refuse_fixed(found: list[Change], *, step: int, directory: pathlib.Path) -> None:
    """Refuse changes of settings that a run must keep.

    Raises:
        ValueError: Names each of them, was and is.
    """
    fixed = [change for change in found if not config.SETTINGS[change.key].changeable]
    if fixed:
        raise ValueError(
            f"{directory} has a run at step {step:,} that cannot go on with: "
            f"{'; '.join(map(str, fixed))}. Restore them, or name another --workdir "
            "(with --init_from it starts from this one's parameters)"
        )


def check_fits(
    found: Checkpoint, settings: config.Config, vocabulary: Vocabulary
) -> None:
    """Refuse a checkpoint of another vocabulary or another model.

    Raises:
        CheckpointError: It has the two fingerprints, or the parameter that differs
            and its two shapes, or the settings that change its outputs.
    """
    if found.record["vocabulary"] != vocabulary.fingerprint:
        raise CheckpointError(
            f"the checkpoint was trained with the vocabulary "
            f"{found.record['vocabulary']}, but the data has {vocabulary.fingerprint}: "
            "they belong to different runs"
        )
    changed = changes(found.record.get("config", {}), settings)
    others = [
        str(change)
        for change in changed
        if config.SETTINGS[change.key].affects == "outputs"
    ]
    if others:
        raise CheckpointError(
            f"the checkpoint of step {found.step} is of another model: "
            f"{'; '.join(others)}; restore the config it was trained with"
        )
    want = transformer.param_shapes(settings.model, vocabulary.size)
    params = flax.traverse_util.flatten_dict(found.items["params"], sep="/")
    have = {path: leaf.shape for path, leaf in params.items()}
    for path in sorted(want.keys() | have.keys()):
        if want.get(path) != have.get(path):
            raise CheckpointError(
                f"the checkpoint of step {found.step} is of another model: {path} has "
                f"shape {have.get(path)}, the config gives {want.get(path)}; name "
                "another --workdir or the config it was trained with"
            )
