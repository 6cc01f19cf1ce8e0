"""Section 6.1: checkpoints by Orbax, each with a digest of what it holds.

A checkpoint is written beside the others and renamed when it is whole: a crash during
writing costs nothing. It has the parameters, the optimizer's state (unless it is only
for decoding) and a record: digests, vocabulary, configuration, metrics.
"""

import contextlib
import dataclasses
import errno
import hashlib
import io
import itertools
import json
import logging
import pathlib
import shutil
import time
from collections.abc import Callable, Mapping
from typing import Any

import jax
import numpy as np
import orbax.checkpoint as ocp

from vaswani_jax.core import files as files_

RECORD = "record"
SEAL = "files.json"
# What Orbax appends to the name of what it is writing.
UNFINISHED = ".orbax-checkpoint-tmp"


@dataclasses.dataclass(frozen=True)
class Checkpoint:
    """What was restored."""

    step: int
    items: dict[str, Any]
    record: dict[str, Any]


class CheckpointError(ValueError):
    """A checkpoint is missing, damaged, or not of this run."""


class NotWrittenError(CheckpointError):
    """A checkpoint could not be written, for want of space perhaps."""


class Checkpoints:
    """The checkpoints in a directory, of which the newest `keep` stay.

    Those of the steps in `extra` (a signal asked for them) are kept beside these, and
    only until there is a newer one: a run that was stopped keeps what others keep.
    """

    def __init__(
        self,
        directory: pathlib.Path,
        *,
        keep: int,
        warn: Callable[[str], None] = lambda text: None,
    ) -> None:
        logging.getLogger("absl").setLevel(logging.ERROR)
        self.directory = directory.absolute()
        self._keep = keep
        self._warn = warn
        self.extra: list[int] = []
        self.directory.mkdir(parents=True, exist_ok=True)
        # Each process by itself: who writes is decided by the callers.
        here = jax.process_index()
        options = ocp.CheckpointManagerOptions(
            create=False,
            enable_async_checkpointing=False,
            multiprocessing_options=ocp.options.MultiprocessingOptions(
                primary_host=here,
                active_processes={here},
                barrier_sync_key_prefix=str(here),
            ),
        )
        self._manager = ocp.CheckpointManager(self.directory, options=options)

    def steps(self) -> list[int]:
        """Steps of the whole checkpoints, oldest first."""
        return sorted(self._manager.all_steps(read=True))

    def save(self, step: int, items: Mapping[str, Any], record: dict[str, Any]) -> None:
        """Write a checkpoint; one of the same step, if there, stays as it is.

        Args:
            step: Updates made.
            items: Trees of NumPy arrays by name.
            record: What to keep beside them, as JSON.

        Raises:
            NotWrittenError: It could not be; nothing of it stays, the others do.
        """
        if step in self._manager.all_steps(read=True):
            return
        needed = sum(np.asarray(leaf).nbytes for leaf in jax.tree.leaves(items))
        # Of a run that kept more: they may have the room that this one needs.
        self.make_room()
        try:
            if shutil.disk_usage(self.directory).free < needed:
                raise OSError(errno.ENOSPC, "no space left")
            self._write(step, items, record)
        except Exception as error:  # Orbax and TensorStore raise many kinds.
            self.clear_unfinished()
            shutil.rmtree(self.directory / str(step), ignore_errors=True)
            self._manager.reload()
            free = shutil.disk_usage(self.directory).free
            reason = " ".join(str(error).split())[:300]
            raise NotWrittenError(
                f"checkpoint {self.directory / str(step)} was not written: {reason}. "
                f"It needs {needed / 2**20:,.0f} MiB, {free / 2**20:,.0f} MiB are free "
                "on that file system: free some, or lower "
                "config.training.keep_checkpoints"
            ) from error
        # Only now, when a power cut could no longer take the new one.
        self.make_room()

    def _write(
        self, step: int, items: Mapping[str, Any], record: dict[str, Any]
    ) -> None:
        found = {name: digest(tree) for name, tree in items.items()}
        arguments: dict[str, Any] = {
            name: ocp.args.StandardSave(tree) for name, tree in items.items()
        }
        arguments[RECORD] = ocp.args.JsonSave({**record, "digests": found})
        composite = ocp.args.Composite(**arguments)
        if not self._manager.save(step, args=composite, force=True):
            raise CheckpointError(f"step {step} was not written to {self.directory}")
        self._manager.wait_until_finished()
        seal(self.directory / str(step))

    def make_room(self) -> None:
        """Delete what is no longer kept; what cannot be deleted is told and stays."""
        steps = self.steps()
        extra = {step for step in steps if step in self.extra}
        kept = [step for step in steps if step not in extra][-self._keep :]
        kept += steps[-1:]
        for step in steps:
            if step in kept:
                continue
            try:
                self._manager.delete(step)
            except OSError as error:
                self._warn(
                    f"warning: checkpoint {self.directory / str(step)} could not be "
                    f"deleted: {error}"
                )
                self._manager.reload()

    def clear_unfinished(self) -> None:
        """Remove what was being written when a run was killed; for who holds it."""
        for part in self.directory.glob(f"*{UNFINISHED}*"):
            shutil.rmtree(part, ignore_errors=True)

    def set_aside(self, steps: list[int], *, word: str) -> pathlib.Path:
        """Move checkpoints out of the way, to a directory beside this one."""
        here = self.directory.resolve()  # A link may lead to another file system.
        aside = here.with_name(f"{here.name}.{word}")
        aside.mkdir(exist_ok=True)
        for step in steps:
            names = (f"{step}" + f".{n}" * (n > 0) for n in itertools.count())
            free = next(name for name in names if not (aside / name).exists())
            (here / str(step)).rename(aside / free)
        self._manager.reload()
        return aside

    def delete(self, steps: list[int]) -> None:
        """Remove checkpoints."""
        for step in steps:
            self._manager.delete(step)

    def restore(self, step: int, names: list[str]) -> Checkpoint:
        """Read a checkpoint's items as trees of NumPy arrays, and check them.

        Raises:
            CheckpointError: It is missing or damaged.
        """
        path = self.directory / str(step)
        if step not in self._manager.all_steps(read=True):
            raise CheckpointError(
                f"no checkpoint of step {step} in {self.directory} (there are "
                f"{self.steps() or 'none'})"
            )
        check_seal(path)
        arguments: dict[str, Any] = {name: ocp.args.StandardRestore() for name in names}
        arguments[RECORD] = ocp.args.JsonRestore()
        composite = ocp.args.Composite(**arguments)
        try:
            with contextlib.redirect_stderr(io.StringIO()):
                found = self._manager.restore(step, args=composite)
            record = dict(found[RECORD])
            items = {name: jax.tree.map(np.asarray, found[name]) for name in names}
        except Exception as error:  # Orbax and TensorStore raise many kinds.
            reason = str(error).splitlines()[0][:300] if str(error) else repr(error)
            # Reads still in flight print tracebacks of their own when they end.
            with contextlib.redirect_stderr(io.StringIO()):
                time.sleep(1)
            raise _damaged(path, reason) from error
        for name, tree in items.items():
            if digest(tree) != record["digests"][name]:
                raise _damaged(path, f"the digest of {name!r} does not match")
        return Checkpoint(step, items, record)

    def close(self) -> None:
        """Let go of the directory."""
        self._manager.close()


def seal(path: pathlib.Path) -> None:
    """Write down the size and the digest of each file of a checkpoint, to last.

    Orbax would notice most damage, but not say where, and other reads that it has
    begun would go on and fail.
    """
    files = (file for file in path.rglob("*") if file.is_file())
    digests = files_.hash_files(files, within=path)
    files_.write_atomically(path / SEAL, json.dumps(digests, indent=0))
    files_.sync(path)


def is_sealed(path: pathlib.Path) -> bool:
    """Whether a checkpoint has its seal; a kill may have come before it."""
    return (path / SEAL).exists()


def check_seal(path: pathlib.Path) -> None:
    """Compare a checkpoint's files with what `seal` wrote down.

    One that has no seal (a kill came first) is checked when it is read alone.

    Raises:
        CheckpointError: A file is missing, cut off or changed; it is named.
    """
    try:
        sealed = files_.parse_digests(json.loads((path / SEAL).read_text()))
    except FileNotFoundError:
        return
    except (TypeError, ValueError) as error:
        raise _damaged(path, f"{SEAL}: {error}") from None
    if reason := files_.describe_difference(sealed, path):
        raise _damaged(path, reason)


def digest(tree: Any) -> str:
    """SHA-256 over the names, types, shapes and bytes of the arrays of a tree."""
    total = hashlib.sha256()
    leaves = jax.tree_util.tree_leaves_with_path(tree)
    named = sorted((jax.tree_util.keystr(path), leaf) for path, leaf in leaves)
    for name, leaf in named:
        array = np.ascontiguousarray(leaf)
        total.update(f"{name} {array.dtype} {array.shape}\n".encode())
        total.update(array.tobytes())
    return total.hexdigest()


def _damaged(path: pathlib.Path, reason: str) -> CheckpointError:
    return CheckpointError(f"checkpoint {path} is damaged: {reason}")
