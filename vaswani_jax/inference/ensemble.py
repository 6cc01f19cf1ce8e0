"""Section 6.1 averages parameters; an ensemble averages what several models say."""

import dataclasses
import json
import pathlib
from collections.abc import Callable, Sequence
from typing import Any

from vaswani_jax.checkpoints import compatibility, select
from vaswani_jax.checkpoints.store import CheckpointError
from vaswani_jax.core import config, remote, rules
from vaswani_jax.data import vocabulary


@dataclasses.dataclass(frozen=True)
class Ensemble:
    """Models that decode together; parameters are replicated over the devices."""

    models: Sequence[config.ModelConfig]
    params: Sequence[Any]
    subwords: vocabulary.Vocabulary


@dataclasses.dataclass(frozen=True)
class Member:
    """A model of an ensemble, with its parameters as NumPy arrays."""

    model: config.ModelConfig
    params: Any


def members(
    settings: config.Config,
    workdir: pathlib.Path,
    names: str,
    others: Sequence[str],
    subwords: vocabulary.Vocabulary,
    *,
    log: Callable[[str], None],
) -> list[Member]:
    """The models that decode together.

    Args:
        settings: Of the run in `workdir`.
        workdir: Of that run.
        names: Checkpoints of that run, with commas between them.
        others: Other runs as WORKDIR or WORKDIR@CHECKPOINT, "averaged" by default.
        subwords: The vocabulary, which must be theirs, too.
        log: Is told what is used.

    Raises:
        CheckpointError: One is missing, damaged, or of another vocabulary.
        ValueError: A workdir has no configuration of a model.
    """
    wanted = [(workdir, settings, name) for name in names.split(",")]
    for other in others:
        folder, name = select.split_name(other)
        place = remote.here(folder, skip=select.other_folders(name or "averaged"))
        own = dataclasses.replace(settings, model=_model_of(place))
        try:
            rules.check_positions(own)
        except ValueError as error:
            raise ValueError(f"--ensemble={other}: {error}") from None
        wanted.append((place, own, name or "averaged"))
    found = []
    for place, own, name in wanted:
        one = select.select(place, name)
        try:
            compatibility.check_fits(one, own, subwords)
        except CheckpointError as error:
            raise CheckpointError(f"{place}: {error}") from None
        log(select.describe(place, name, one))
        found.append(Member(own.model, one.items["params"]))
    return found


def _model_of(workdir: pathlib.Path) -> config.ModelConfig:
    path = workdir / "config.json"
    try:
        found = config.flatten_record({"model": json.loads(path.read_text())["model"]})
        values = {key.removeprefix("model."): value for key, value in found.items()}
        return config.ModelConfig(**values)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{path} describes no model: {error}") from None
