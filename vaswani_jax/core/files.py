"""Write files and directories that a crash cannot damage, and check and lock them."""

import contextlib
import errno
import hashlib
import logging
import os
import pathlib
import shutil
import socket
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import IO, Any

try:
    import fcntl
except ImportError:  # Windows has none.
    fcntl = None  # type: ignore[assignment]

Digests = Mapping[str, tuple[int, str]]

# How long a workdir may be locked before it counts as in use.
LOCK_SECONDS = 0.3
# What flock fails with on a file system that has no locks.
NO_LOCKS = (errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOLCK)
logger = logging.getLogger(__name__)
_has_warned = False


def describe_file(path: pathlib.Path, previous: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a file's path, size, modification time and SHA-256.

    Args:
        path: The file.
        previous: An earlier description, or an empty one. It is returned if its path,
            size and modification time are those of the file, which is then not read.
            One without a path fits any.
    """
    status = os.stat(path)
    identity = {
        "path": str(path),
        "bytes": status.st_size,
        "modified_ns": status.st_mtime_ns,
    }
    if identity.items() <= {"path": str(path), **previous}.items():
        return previous
    return {**identity, "sha256": hash_file(path)[1]}


def hash_files(paths: Iterable[pathlib.Path], *, directory: pathlib.Path) -> Digests:
    """Return the size in bytes and the SHA-256 of files, by path within a directory."""
    return {str(path.relative_to(directory)): hash_file(path) for path in sorted(paths)}


def hash_file(path: pathlib.Path) -> tuple[int, str]:
    """Return the size in bytes and the SHA-256 of a file."""
    with open(path, "rb") as stream:
        return path.stat().st_size, hashlib.file_digest(stream, "sha256").hexdigest()


def parse_digests(record: Any) -> Digests:
    """Return digests that were written as JSON.

    Raises:
        TypeError, ValueError: The record holds no digests.
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
        if hash_file(path)[1] != digest:
            return f"{name} has changed"
    return ""


def sync(directory: pathlib.Path) -> None:
    """Flush a directory and its contents to the disk, to survive a power cut."""
    for path in (*directory.rglob("*"), directory, directory.parent):
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def write_atomically(path: pathlib.Path, content: str | bytes) -> pathlib.Path:
    """Write a file; a crash leaves the old file or the new one, never a part.

    Text is written in UTF-8, its line ends unchanged.
    """
    write_together({path: content})
    return path


def write_together(contents: Mapping[pathlib.Path, str | bytes]) -> None:
    """Write files that belong together; if one cannot be written, none is.

    Each file is replaced in one step, so a crash leaves no part of a file.
    """
    unfinished = {path: path.with_name(f"{path.name}.unfinished") for path in contents}
    try:
        for path, content in contents.items():
            with open(unfinished[path], "wb") as file:
                file.write(content.encode() if isinstance(content, str) else content)
                file.flush()
                # After a power cut, a renamed file that was not flushed may be empty.
                os.fsync(file.fileno())
        for path in contents:
            unfinished[path].replace(path)
    except BaseException:
        for path in unfinished.values():
            with contextlib.suppress(OSError):
                path.unlink()
        raise


def sibling(directory: pathlib.Path, purpose: str) -> pathlib.Path:
    """Return the hidden path beside a directory for a purpose, such as "lock".

    That of a symbolic link lies beside the directory that it points to.
    """
    directory = _target(directory)
    return directory.with_name(f".{directory.name}.vaswani_jax_{purpose}")


def _target(directory: pathlib.Path) -> pathlib.Path:
    """Return the directory that a symbolic link points to, or the path itself."""
    return directory.resolve() if directory.is_symlink() else directory


def lock(file: IO[Any], *, wait: bool) -> bool:
    """Lock an open file until it is closed or its process ends.

    Args:
        file: The file. Programs that do not lock it can still use it.
        wait: Whether to wait until the lock is free.

    Returns:
        False if another program has locked it. Always True without flock: on Windows,
        and, with one warning, on a file system that has no locks.
    """
    global _has_warned
    if fcntl is None:
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno not in NO_LOCKS:
            raise
        if not _has_warned:
            _has_warned = True
            logger.warning(
                f"{file.name} cannot be locked ({error.strerror}): this file system "
                "has no locks; start no second program there"
            )
    return True


@contextlib.contextmanager
def replacing(directory: pathlib.Path) -> Iterator[pathlib.Path]:
    """Yield an empty directory to fill, which then replaces `directory`.

    An exception leaves the old directory. A crash or a power cut leaves the old or the
    new one; `recover` puts back an old one that was moved away. A symbolic link stays;
    the directory that it points to is replaced.

    Raises:
        ValueError: The directory is a mount point, which cannot be moved.
    """
    directory = _target(directory)
    if directory.is_mount():
        raise ValueError(
            f"{directory} is a mount point, which no other directory can replace: name "
            "a directory inside it"
        )
    unfinished, old = sibling(directory, "unfinished"), sibling(directory, "old")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(parents=True)
    try:
        yield unfinished
        # After a power cut, files that were not flushed may be empty.
        sync(unfinished)
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
        mark: A file that only a complete directory has; "." if any is complete.
    """
    directory, old = _target(directory), sibling(directory, "old")
    if not directory.exists() and (old / mark).exists():
        os.rename(old, directory)


@contextlib.contextmanager
def locked(directory: pathlib.Path) -> Iterator[None]:
    """Lock a directory while the context lasts; other processes wait."""
    directory.parent.mkdir(parents=True, exist_ok=True)
    with open(sibling(directory, "lock"), "w", encoding="utf-8") as file:
        lock(file, wait=True)
        yield


@contextlib.contextmanager
def held(workdir: pathlib.Path, *, option: str = "--workdir") -> Iterator[None]:
    """Lock a workdir for one program, until it leaves the context or ends.

    Args:
        workdir: The directory, which is made if there is none.
        option: The flag that names it, for the error.

    Raises:
        ValueError: Another program has locked it.
    """
    workdir.mkdir(parents=True, exist_ok=True)
    with open(workdir / "lock", "a+", encoding="utf-8") as file:
        # `is_held` has the lock for a moment.
        end = time.monotonic() + LOCK_SECONDS
        while not (is_locked := lock(file, wait=False)) and time.monotonic() < end:
            time.sleep(LOCK_SECONDS / 10)
        if not is_locked:
            file.seek(0)
            holder = file.read().strip() or "another program"
            raise ValueError(
                f"{option}={workdir} is in use by {holder}: "
                f"wait for it, or name another {option}"
            )
        file.truncate(0)
        file.write(f"process {os.getpid()} on {socket.gethostname()}")
        file.flush()
        yield


def is_held(workdir: pathlib.Path) -> bool:
    """Return whether a program has locked a workdir."""
    if not (workdir / "lock").exists():
        return False
    with open(workdir / "lock", "a", encoding="utf-8") as file:
        return not lock(file, wait=False)


class Directory:
    """A local directory, with the methods of `remote.RemoteDirectory`.

    Attributes:
        path: Its path on this machine.
    """

    def __init__(self, path: pathlib.Path) -> None:
        self.path = path

    @contextlib.contextmanager
    def hold(self) -> Iterator[None]:
        """Lock the directory for this program, pull from the store and push to it.

        Raises:
            ValueError: Another program has locked it, or another run has taken over.
            OSError: The store cannot be read or written.
        """
        with held(self.path):
            yield

    def pull(
        self,
        *,
        skip: Collection[str] = (),
        file_names: Collection[str] = (),
        mark: str = "",
        is_follower: bool = False,
    ) -> pathlib.Path:
        """Download what the store has changed, unless another program holds the lock.

        Args:
            skip: Names of folders not to download.
            file_names: The only files to download, as names, globs or directories; if
                empty, download all.
            mark: A file that the store must have unless it is empty.
            is_follower: Whether a process on another machine writes the run. Files that
                this machine has not sent are then set aside.

        Returns:
            The path on this machine.

        Raises:
            OSError: The store cannot be read, has lost its files, or lacks `mark`.
        """
        return self.path

    def push(self, *, folder: str = "") -> None:
        """Upload what has changed.

        Args:
            folder: The only folder to upload; if empty, upload the whole run.

        Raises:
            OSError: The store cannot be written.
            SupersededError: Another run has begun on the store since, or has sent other
                prepared data. Checked if `folder` is empty or "data".
        """

    def pull_again(self, path: pathlib.Path) -> bool:
        """Download a damaged folder again; return False if the store lacks it.

        Raises:
            OSError: The store cannot be read.
        """
        return False


class SupersededError(ValueError):
    """Another run has taken over a directory on a store."""
