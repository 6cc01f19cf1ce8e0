"""Files as they were written: the size and the SHA-256 of each."""

import contextlib
import fcntl
import hashlib
import os
import pathlib
import shutil
import socket
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

Digests = Mapping[str, tuple[int, str]]


def of(files: Iterable[pathlib.Path], *, within: pathlib.Path) -> Digests:
    """Size in bytes and SHA-256 of files, by their path within a directory."""
    return {str(file.relative_to(within)): _of(file) for file in sorted(files)}


def parsed(record: Any) -> Digests:
    """Digests as they were before they were written as JSON.

    Raises:
        TypeError, ValueError: The record is something else.
    """
    return {
        str(name): (int(size), str(digest))
        for name, (size, digest) in dict(record).items()
    }


def difference(found: Digests, directory: pathlib.Path) -> str:
    """What the first file that is no longer so has become; "" if all are."""
    for name, (size, digest) in found.items():
        file = directory / name
        if not file.is_file():
            return f"{name} is missing"
        if file.stat().st_size != size:
            return f"{name} has {file.stat().st_size:,} of {size:,} bytes"
        if _of(file)[1] != digest:
            return f"{name} is not what was written"
    return ""


def sync(directory: pathlib.Path) -> None:
    """Wait until a directory and all that is in it would outlast a power cut."""
    for path in (*directory.rglob("*"), directory, directory.parent):
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _of(file: pathlib.Path) -> tuple[int, str]:
    with open(file, "rb") as stream:
        return file.stat().st_size, hashlib.file_digest(stream, "sha256").hexdigest()


def beside(directory: pathlib.Path, word: str) -> pathlib.Path:
    """A hidden neighbour, a name that no one else has given to a directory."""
    return directory.with_name(f".{directory.name}.vaswani_jax_{word}")


@contextlib.contextmanager
def locked(directory: pathlib.Path) -> Iterator[None]:
    """Processes that hold the lock of a directory do so one after the other."""
    directory.parent.mkdir(parents=True, exist_ok=True)
    with open(beside(directory, "lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def start(directory: pathlib.Path) -> pathlib.Path:
    """An empty directory to fill, for `finish` to put in the place of `directory`."""
    unfinished = beside(directory, "unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(parents=True)
    return unfinished


def finish(directory: pathlib.Path, unfinished: pathlib.Path) -> None:
    """Put the finished directory in place; a crash leaves the old or the new one."""
    old = beside(directory, "old")
    if directory.exists():
        shutil.rmtree(old, ignore_errors=True)
        os.rename(directory, old)
    os.rename(unfinished, directory)
    shutil.rmtree(old, ignore_errors=True)


def recover(directory: pathlib.Path, *, mark: str) -> None:
    """Put back what `finish` moved away when it was killed; `mark` is a file in it."""
    old = beside(directory, "old")
    if not directory.exists() and (old / mark).exists():
        os.rename(old, directory)


@contextlib.contextmanager
def held(workdir: pathlib.Path) -> Iterator[None]:
    """A workdir for one program alone: the lock goes when the program ends, as it may.

    Raises:
        ValueError: Another program has it.
    """
    workdir.mkdir(parents=True, exist_ok=True)
    with open(workdir / "lock", "a+") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.seek(0)
            raise ValueError(
                f"--workdir={workdir} is in use by {lock.read().strip() or 'another'}: "
                "wait for it, or name another --workdir"
            ) from None
        lock.truncate(0)
        lock.write(f"process {os.getpid()} on {socket.gethostname()}")
        lock.flush()
        yield
