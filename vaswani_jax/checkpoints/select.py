"""Section 6.1: which checkpoint is meant, averages of several, and whether one fits."""

import contextlib
import json
import pathlib
import re

from vaswani_jax.checkpoints import average
from vaswani_jax.checkpoints.store import Checkpoint, CheckpointError, Checkpoints
from vaswani_jax.core import files, remote

# A checkpoint of that name lies in a directory of its own.
FOLDERS = ("averaged", "best")


def select(workdir: pathlib.Path, name: str) -> Checkpoint:
    """The parameters that a name means.

    Args:
        workdir: Of the run.
        name: "newest", "best", "averaged" (what `average_checkpoints` or `main`
            wrote), "average:N" (the mean of the last N, made on the spot), or the
            number of a step.

    Raises:
        CheckpointError: There is no such checkpoint, or it is damaged.
    """
    directory = _place(workdir, _folder(name))
    if not directory.is_dir():
        others = [
            other
            for other, place in (("newest", "checkpoints"), ("best", "best"))
            if (workdir / place).is_dir()
        ]
        hint = f"; there is {' and '.join(others)}" if others else ""
        raise CheckpointError(f"no checkpoint {name!r}: there is no {directory}{hint}")
    found = Checkpoints(directory, keep=1_000_000)
    steps = found.steps()
    if not steps:
        raise CheckpointError(f"no checkpoint {name!r}: {directory} is empty")
    if name in ("newest", "best", "averaged"):
        return found.restore(steps[-1], ["params"])
    kind, _, number = name.rpartition(":")
    is_average = kind == "average" and ":" in name
    if not (is_average or name == number) or not number.isdecimal():
        raise CheckpointError(
            "a checkpoint (--checkpoint, or after the @ of WORKDIR@CHECKPOINT) is "
            f"newest, best, averaged, average:N or a step; got {name!r}"
        )
    if not is_average:
        return found.restore(int(number), ["params"])
    if not 1 <= int(number) <= len(steps):
        raise CheckpointError(
            f"{name} needs {number} checkpoints; {directory} has {len(steps)}: {steps}"
        )
    return average.average_params(found, steps[-int(number) :])


def _place(workdir: pathlib.Path, folder: str) -> pathlib.Path:
    """Where checkpoints lie; a kill may have come while they were replaced."""
    directory = workdir / folder
    before = files.sibling(directory, "old")
    return before if before.is_dir() and not directory.exists() else directory


def _folder(name: str) -> str:
    return name if name in FOLDERS else "checkpoints"


def other_folders(names: str) -> set[str]:
    """The directories of a workdir in which none of some checkpoints lies.

    Args:
        names: Of the checkpoints, with commas between them.
    """
    return {"checkpoints", *FOLDERS} - {_folder(name) for name in names.split(",")}


def describe(workdir: pathlib.Path, name: str, found: Checkpoint) -> str:
    """Which checkpoint is used, in words, and whether there are later ones."""
    of = f" (the mean of {steps})" if (steps := found.record.get("averaged")) else ""
    text = f"checkpoint {name}: step {found.step:,}{of}"
    directory = workdir / "checkpoints"
    newest = (
        Checkpoints(directory, keep=1_000_000).steps() if directory.is_dir() else []
    )
    if name == "averaged" and newest and newest[-1] > found.step:
        text += (
            f"\nnote: training has gone on to step {newest[-1]:,}; average_checkpoints "
            "makes a new mean, --checkpoint=average:N takes one on the spot"
        )
    return text


def split_name(name: str) -> tuple[str, str]:
    """WORKDIR and CHECKPOINT of WORKDIR@CHECKPOINT, or WORKDIR alone.

    >>> split_name("runs/a@best"), split_name("abfs://box@account/runs/a")
    (('runs/a', 'best'), ('abfs://box@account/runs/a', ''))
    """
    folder, _, chosen = name.rpartition("@")
    return (name, "") if "/" in chosen or not folder else (folder, chosen)


def start_from(name: str) -> tuple[Checkpoint, pathlib.Path]:
    """The checkpoint that a new run starts from, and where its vocabulary lies.

    Args:
        name: WORKDIR, WORKDIR@CHECKPOINT ("averaged" by default), or the path of one
            checkpoint: WORKDIR/checkpoints/STEP.

    Raises:
        CheckpointError: There is none, or it is damaged.
        ValueError: The workdir has no configuration.
    """
    folder, chosen = split_name(name)
    one = None
    parts = re.fullmatch(r"(.+)/((?:checkpoints|best|averaged)/\d+)/?", folder)
    if parts:
        folder, one = parts[1], parts[2]
    workdir = remote.here(folder)
    if not (workdir / "config.json").exists():
        raise ValueError(f"--init_from: {workdir} is no workdir of a run")
    if one is None:
        kinds = [kind for kind in FOLDERS if _place(workdir, kind).is_dir()]
        found = select(workdir, chosen or [*kinds, "newest"][0])
    elif (workdir / one).is_dir():
        of_its_kind = Checkpoints((workdir / one).parent, keep=1_000_000)
        found = of_its_kind.restore(int((workdir / one).name), ["params"])
    else:
        raise CheckpointError(f"--init_from: there is no checkpoint {workdir / one}")
    try:
        own = str(
            json.loads((workdir / "config.json").read_text())["data"]["directory"]
        )
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{workdir / 'config.json'} is damaged: {error!r}") from None
    return found, remote.here(own) if own else workdir / "data"


def has_begun(workdir: pathlib.Path) -> bool:
    """Whether a run has a checkpoint to go on from.

    The parameters in `best` are not enough: they may have come before the first.
    """
    directory = workdir / "checkpoints"
    return directory.is_dir() and bool(Checkpoints(directory, keep=1_000_000).steps())


def vocabulary_of(workdir: pathlib.Path) -> str | None:
    """The fingerprint that the checkpoints of a workdir have, if there are any."""
    for name in ("checkpoints", "averaged", "best"):
        if (directory := _place(workdir, name)).is_dir():
            found = Checkpoints(directory, keep=1_000_000)
            for step in reversed(found.steps()):
                with contextlib.suppress(CheckpointError):  # A damaged one tells less.
                    return str(found.restore(step, []).record["vocabulary"])
    return None
