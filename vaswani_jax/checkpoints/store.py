"""Save and restore checkpoints with Orbax; SHA-256 digests reveal damage.

DIRECTORY/STEP is a checkpoint: the parameters, the optimizer's state and the moving
average (unless it is only for decoding), a JSON record of the run, and the digest of
each file in `SEAL`. It is written under another name and renamed once it is sealed, so
that a crash leaves all of it or nothing.

Orbax's `CheckpointManager` would delete older checkpoints before the new one is sealed
and on the disk, and fail if a deletion does. Hence `save` renames and `prune` deletes.

Orbax takes long to import: a process imports it when it writes or reads a checkpoint.
"""

import contextlib
import dataclasses
import errno
import hashlib
import itertools
import json
import logging
import pathlib
import shutil
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import jax
import numpy as np

from vaswani_jax.core import errors, files, parallel, tensor_file

RECORD = "record"
# The exponential moving average of the parameters, in runs that have one.
AVERAGE = "average"
SEAL = "files.json"
# Orbax appends this to the name of what it writes.
UNFINISHED = ".orbax-checkpoint-tmp"

logger = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True)
class Checkpoint:
    """The state of a run after a step.

    Attributes:
        step: Number of updates made.
        items: Trees of NumPy arrays by name: "params", "optimizer", `AVERAGE`.
        record: Values that JSON can hold, saved with the trees.
    """

    step: int
    items: Mapping[str, Any]
    record: dict[str, Any]


class CheckpointError(ValueError):
    """A checkpoint is missing, damaged, or not of this run."""


class NotWrittenError(CheckpointError):
    """A checkpoint could not be written, perhaps for lack of space."""


# Replaces the checkpoint at a path by another copy; returns False if there is none.
FetchAgain = Callable[[pathlib.Path], bool]


def no_other_copy(path: pathlib.Path) -> bool:
    """Return False: this machine has the only copy of a checkpoint."""
    return False


def steps(directory: pathlib.Path) -> list[int]:
    """Return the steps of the checkpoints in a directory, oldest first."""
    if not directory.is_dir():
        return []
    return sorted(
        int(path.name)
        for path in directory.iterdir()
        if path.name.isdecimal() and path.is_dir()
    )


def save(
    directory: pathlib.Path,
    checkpoint: Checkpoint,
    *,
    keep: int,
    irregular_steps: Collection[int] = (),
) -> None:
    """Write a checkpoint unless its step has one, and delete old ones.

    Args:
        directory: Where the checkpoints lie; created if missing.
        checkpoint: What to write.
        keep: See `prune`.
        irregular_steps: See `prune`.

    Raises:
        NotWrittenError: It could not be written. No part of it remains.
    """
    directory = directory.absolute()
    leaves = jax.tree.leaves(checkpoint.items)
    num_bytes = sum(np.asarray(leaf).nbytes for leaf in leaves)
    # A run may resume on a full disk with a smaller `keep`.
    prune(directory, keep=keep, irregular_steps=irregular_steps)
    is_begun = False
    try:
        if checkpoint.step in steps(directory):
            return
        directory.mkdir(parents=True, exist_ok=True)
        if shutil.disk_usage(directory).free < num_bytes:
            raise OSError(errno.ENOSPC, "no space left")
        is_begun = True
        _write(directory, checkpoint)
    except Exception as error:  # Orbax and TensorStore raise many kinds.
        path = directory / str(checkpoint.step)
        with contextlib.suppress(OSError):  # The file system may not answer.
            clear_unfinished(directory)
        if is_begun:  # Else it is whole, from an earlier start.
            shutil.rmtree(path, ignore_errors=True)
        raise NotWrittenError(
            f"checkpoint {path} was not written: {errors.one_line(error)}. It needs "
            f"{num_bytes / 2**20:,.0f} MiB{_describe_free_space(directory)}: free "
            "space, or lower config.training.keep_checkpoints"
        ) from error
    # From here on the new one survives a power cut.
    prune(directory, keep=keep, irregular_steps=irregular_steps)


def _describe_free_space(directory: pathlib.Path) -> str:
    try:
        folder = next(p for p in (directory, *directory.parents) if p.is_dir())
        free = shutil.disk_usage(folder).free
    except OSError:  # The file system may not answer.
        return ""
    return f", {free / 2**20:,.0f} MiB are free on that file system"


def _write(directory: pathlib.Path, checkpoint: Checkpoint) -> None:
    from vaswani_jax.checkpoints import orbax_files

    unfinished = directory / f"{checkpoint.step}{UNFINISHED}"
    shutil.rmtree(unfinished, ignore_errors=True)
    records = {RECORD: checkpoint.record}
    orbax_files.write(unfinished, trees=checkpoint.items, records=records)
    seal(unfinished)
    path = unfinished.rename(directory / str(checkpoint.step))
    files.sync(path)


def prune(
    directory: pathlib.Path, *, keep: int, irregular_steps: Collection[int] = ()
) -> None:
    """Delete old checkpoints; one that cannot be deleted stays, with a warning.

    Args:
        directory: Where they lie.
        keep: How many of the newest stay.
        irregular_steps: Steps at which a signal asked for a checkpoint, or at which
            the run had ended. These do not count towards `keep`, and stay only while
            they are the newest: a run that was stopped or prolonged keeps the same
            checkpoints as one that was not.
    """
    try:
        all_steps = steps(directory)
    except OSError as error:
        logger.warning(f"{directory} cannot be read, so nothing is deleted: {error}")
        return
    regular = [step for step in all_steps if step not in irregular_steps]
    for step in all_steps[:-1]:
        if step in regular[-keep:]:
            continue
        try:
            delete(directory, step)
        except OSError as error:
            logger.warning(
                f"checkpoint {directory / str(step)} could not be deleted: {error}"
            )


def delete(directory: pathlib.Path, step: int) -> None:
    """Delete a checkpoint."""
    shutil.rmtree(directory / str(step))


def clear_unfinished(directory: pathlib.Path) -> None:
    """Delete what a killed run was writing; only the resumed run may call this."""
    for path in directory.glob(f"*{UNFINISHED}*"):
        shutil.rmtree(path, ignore_errors=True)


def set_aside(
    directory: pathlib.Path, checkpoint_steps: Sequence[int], *, suffix: str
) -> pathlib.Path:
    """Move checkpoints to DIRECTORY.SUFFIX, and return that path.

    The copy of a checkpoint in one file, STEP.safetensors, goes with it.
    """
    directory = directory.resolve()  # A link may lead to another file system.
    target = directory.with_name(f"{directory.name}.{suffix}")
    target.mkdir(exist_ok=True)
    for step in checkpoint_steps:
        numbered = (f"{step}.{n}" for n in itertools.count(1))
        names = itertools.chain([str(step)], numbered)
        name = next(name for name in names if not (target / name).exists())
        copy = directory / f"{step}{tensor_file.SUFFIX}"
        if copy.exists():  # It goes first: after a kill, the next start moves the rest.
            copy.replace(target / f"{name}{tensor_file.SUFFIX}")
        (directory / str(step)).rename(target / name)
    return target


def has_average(directory: pathlib.Path, step: int) -> bool:
    """Return whether a checkpoint has a moving average of the parameters."""
    return (directory / str(step) / AVERAGE).is_dir()


def restore_for_decoding(
    directory: pathlib.Path, step: int, *, fetch_again: FetchAgain = no_other_copy
) -> Checkpoint:
    """Read the parameters that a checkpoint is decoded with, as its `params`.

    They are the moving average, if it has one.

    Args:
        directory: See `restore`.
        step: See `restore`.
        fetch_again: See `restore`.

    Raises:
        CheckpointError, OSError: As `restore`.
    """
    name = AVERAGE if has_average(directory, step) else "params"
    checkpoint = restore(directory, step, names=[name], fetch_again=fetch_again)
    return dataclasses.replace(checkpoint, items={"params": checkpoint.items[name]})


def restore(
    directory: pathlib.Path,
    step: int,
    *,
    names: Sequence[str],
    fetch_again: FetchAgain = no_other_copy,
) -> Checkpoint:
    """Read a checkpoint and verify it.

    Args:
        directory: Where the checkpoints lie.
        step: The step of the one to read.
        names: The items to read beside the record.
        fetch_again: Replaces a damaged checkpoint by another copy, which is then read.

    Raises:
        CheckpointError: It is missing or damaged, and there is no other copy.
        OSError: It is complete but cannot be read.
    """
    try:
        return _restore(directory, step, names=names)
    except CheckpointError:
        if not fetch_again(directory / str(step)):
            raise
        return _restore(directory, step, names=names)


def _restore(directory: pathlib.Path, step: int, *, names: Sequence[str]) -> Checkpoint:
    directory = directory.absolute()
    path = directory / str(step)
    all_steps = steps(directory)
    if step not in all_steps:
        raise CheckpointError(
            f"no checkpoint of step {step} in {directory} (there are "
            f"{all_steps or 'none'})"
        )
    is_complete = is_sealed(path)
    if is_complete:
        check_seal(path)
    from vaswani_jax.checkpoints import orbax_files

    try:
        contents = orbax_files.read(path, trees=names, records=[RECORD])
        record = dict(contents[RECORD])
        items = {name: jax.tree.map(np.asarray, contents[name]) for name in names}
    except Exception as error:  # Orbax and TensorStore raise many kinds.
        parallel.check_platform()  # Without a device nothing can be read.
        lacks_resources = isinstance(error, (MemoryError, OSError))
        if is_complete and lacks_resources and not isinstance(error, FileNotFoundError):
            raise OSError(
                f"{path} is complete but cannot be read ({errors.first_line(error)}): "
                "free memory or file handles, and try again"
            ) from error
        raise _damage_error(path, errors.first_line(error)) from error
    # Earlier versions recorded digests of the items, and sealed after the renaming.
    digests = record.pop("digests", None)
    if digests is None and not is_sealed(path):
        raise _damage_error(path, f"{SEAL} is missing")
    for name, tree in items.items():
        if digests is not None and digest(tree) != digests[name]:
            raise _damage_error(path, f"the digest of {name!r} does not match")
    return Checkpoint(step, items, record)


def read_record(directory: pathlib.Path, step: int) -> dict[str, Any]:
    """Return the record of a checkpoint, without verifying it; {} if it has none."""
    path = directory / str(step) / RECORD / "metadata"  # Orbax names it so.
    try:
        return dict(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, TypeError, ValueError):
        return {}


def seal(path: pathlib.Path) -> None:
    """Record the size and the digest of each file of a checkpoint.

    Orbax would notice most damage, but not name the file.
    """
    contents = files.hash_files(
        (file for file in path.rglob("*") if file.is_file()), directory=path
    )
    files.write_atomically(path / SEAL, json.dumps(contents, indent=0))


def is_sealed(path: pathlib.Path) -> bool:
    """Return whether a checkpoint has its seal."""
    return (path / SEAL).exists()


def check_seal(path: pathlib.Path) -> None:
    """Compare the files of a checkpoint with its seal.

    Raises:
        CheckpointError: A file is missing, cut off or changed; the message names it.
        OSError: A file cannot be read.
    """
    try:
        contents = files.parse_digests(
            json.loads((path / SEAL).read_text(encoding="utf-8"))
        )
    except (FileNotFoundError, TypeError, ValueError) as error:
        raise _damage_error(path, f"{SEAL}: {error}") from None
    if reason := files.describe_difference(contents, path):
        raise _damage_error(path, reason)


def fingerprint(path: pathlib.Path) -> str:
    """Return a SHA-256 of everything in a sealed checkpoint."""
    return hashlib.sha256((path / SEAL).read_bytes()).hexdigest()


def digest(tree: Any) -> str:
    """Return the SHA-256 of the names, types, shapes and bytes of a tree's arrays."""
    total = hashlib.sha256()
    leaves = jax.tree_util.tree_leaves_with_path(tree)
    leaves_by_name = sorted((jax.tree_util.keystr(path), leaf) for path, leaf in leaves)
    for name, leaf in leaves_by_name:
        array = np.ascontiguousarray(leaf)
        total.update(f"{name} {array.dtype} {array.shape}\n".encode())
        total.update(array.tobytes())
    return total.hexdigest()


def _damage_error(path: pathlib.Path, reason: str) -> CheckpointError:
    return CheckpointError(f"checkpoint {path} is damaged: {reason}")
