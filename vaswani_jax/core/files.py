"""Write files and directories that a crash cannot damage, and check and lock them."""

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


def hash_files(paths: Iterable[pathlib.Path], *, within: pathlib.Path) -> Digests:
    """Return the size in bytes and the SHA-256 of files, by path within a directory."""
    return {str(path.relative_to(within)): _hash_file(path) for path in sorted(paths)}


def _hash_file(path: pathlib.Path) -> tuple[int, str]:
    with open(path, "rb") as stream:
        return path.stat().st_size, hashlib.file_digest(stream, "sha256").hexdigest()


def parse_digests(record: Any) -> Digests:
    """Return digests that were written as JSON.

    Raises:
        TypeError, ValueError: The record is not one of digests.
    """
    return {
        str(name): (int(size), str(digest))
        for name, (size, digest) in dict(record).items()
    }


def describe_difference(digests: Digests, directory: pathlib.Path) -> str:
    """Return what differs between a directory and the digests of its files, or ""."""
    for name, (size, digest) in digests.items():
        path = directory / name
        if not path.is_file():
            return f"{name} is missing"
        if path.stat().st_size != size:
            return f"{name} has {path.stat().st_size:,} of {size:,} bytes"
        if _hash_file(path)[1] != digest:
            return f"{name} is not what was written"
    return ""


def sync(directory: pathlib.Path) -> None:
    """Flush a directory and its contents to the disk, to survive a power cut."""
    for path in (*directory.rglob("*"), directory, directory.parent):
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def write_atomically(path: pathlib.Path, text: str) -> pathlib.Path:
    """Write a text file; a crash leaves the old file or the new one, never a part."""
    unfinished = path.with_name(f"{path.name}.unfinished")
    unfinished.write_text(text, encoding="utf-8", newline="\n")
    return unfinished.replace(path)


def sibling(directory: pathlib.Path, word: str) -> pathlib.Path:
    """Return the hidden path beside a directory that this package uses for a word."""
    return directory.with_name(f".{directory.name}.vaswani_jax_{word}")


@contextlib.contextmanager
def replacing(directory: pathlib.Path) -> Iterator[pathlib.Path]:
    """Yield an empty directory to fill, which then replaces `directory`.

    An exception leaves the old directory; a crash leaves the old or the new one, which
    `recover` puts back.
    """
    unfinished, old = sibling(directory, "unfinished"), sibling(directory, "old")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(parents=True)
    try:
        yield unfinished
    except Exception:
        shutil.rmtree(unfinished, ignore_errors=True)
        raise
    if directory.exists():
        shutil.rmtree(old, ignore_errors=True)
        os.rename(directory, old)
    os.rename(unfinished, directory)
    shutil.rmtree(old, ignore_errors=True)


def recover(directory: pathlib.Path, *, mark: str) -> None:
    """Put back a directory that a killed `replacing` had moved away.

    Args:
        directory: Where it belongs.
        mark: A file that it has if it is whole.
    """
    old = sibling(directory, "old")
    if not directory.exists() and (old / mark).exists():
        os.rename(old, directory)


@contextlib.contextmanager
def locked(directory: pathlib.Path) -> Iterator[None]:
    """Processes that hold the lock of a directory do so one after the other."""
    directory.parent.mkdir(parents=True, exist_ok=True)
    with open(sibling(directory, "lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


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
