"""Section 5.2's runs where machines come and go: directories on object stores.

A run locks, renames and maps files, which no object store can. A directory that fsspec
names by a URL (gs://, s3://, ...) therefore has a mirror on this machine, in the
user's cache or where VASWANI_JAX_MIRRORS says. `here` brings the mirror up to date,
`send` the store. A mirror that has been sent can be deleted, whole.
"""

import hashlib
import json
import os
import pathlib
import re
from collections.abc import Collection

from vaswani_jax.core.mirror import Mirror, RemoteError, SupersededError, record_of

__all__ = ["RemoteError", "SupersededError"]


def is_remote(name: str) -> bool:
    """Whether a name is a URL of a store, not a path on this machine."""
    return "://" in name


def place(name: str) -> pathlib.Path:
    """Where a directory is or will be on this machine; nothing is fetched.

    Raises:
        ValueError: The name is empty, or a URL that cannot be one.
    """
    if not name:
        raise ValueError("a directory must have a name, got ''")
    if re.match(r"[a-z][a-z0-9+.-]+:/[^/]", name):
        raise ValueError(f"{name}: a URL has two slashes after its colon")
    if not is_remote(name):
        return pathlib.Path(name)
    if not name.partition("://")[2].strip("/"):
        raise ValueError(f"{name} names no directory")
    url = name.rstrip("/")
    cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    mirrors = os.environ.get("VASWANI_JAX_MIRRORS") or f"{cache}/vaswani_jax"
    readable = re.sub(r"[^A-Za-z0-9]+", "_", url)[-60:].strip("_")
    found = f"{readable}_{hashlib.sha256(url.encode()).hexdigest()[:8]}"
    path = pathlib.Path(mirrors).expanduser().absolute() / found
    mirror = Mirror(url, path)
    if not record_of(path).exists():
        with mirror.alone():
            pass
    return path


def here(
    name: str,
    *,
    skip: Collection[str] = (),
    only: Collection[str] = (),
    mark: str = "",
) -> pathlib.Path:
    """A directory as this machine has it: its own, or the mirror, brought up to date.

    A mirror that a run of this machine has is left to that run.

    Args:
        name: A path, or a URL that fsspec understands.
        skip: Directories right in it that are not asked for.
        only: The only files that are asked for, if any are named.
        mark: A file that the store must have, unless it is empty.

    Raises:
        ValueError: fsspec does not know the URL, or needs a package for it; or there
            are other files and no `mark`.
        RemoteError: The store cannot be read, or has lost what the mirror has.
    """
    path = place(name)
    _fetch(path, skip, only, mark, held=False)
    return path


def fetch(path: pathlib.Path) -> None:
    """Bring the mirror that a path is up to date, for who holds it.

    Raises:
        RemoteError: See `here`.
    """
    _fetch(path, (), (), "", held=True)


def refresh(path: pathlib.Path) -> None:
    """Bring the mirror that a path is up to date, unless a run here has it.

    Raises:
        RemoteError: See `here`.
    """
    _fetch(path, (), (), "", held=False)


def _fetch(
    path: pathlib.Path,
    skip: Collection[str],
    only: Collection[str],
    mark: str,
    *,
    held: bool,
) -> None:
    if url := _url_of(path):
        mirror = Mirror(url, path)
        with mirror.alone():
            if held or not mirror.is_held():
                mirror.fetch(skip, only, mark)


def fetch_again(path: pathlib.Path) -> bool:
    """Replace a directory in a mirror by the store's; whether it has it.

    Raises:
        RemoteError: See `here`.
    """
    for whole in path.absolute().parents:
        if url := _url_of(whole):
            mirror = Mirror(url, whole)
            with mirror.alone():
                return mirror.fetch_again(f"{path.absolute().relative_to(whole)}/")
    return False


def send(path: pathlib.Path, *, within: str = "") -> None:
    """Bring the store up to date with the mirror that a path is; or do nothing.

    Args:
        path: A directory, of a mirror or not.
        within: The only directory in it to send; all of it is the run's own to send.

    Raises:
        RemoteError: It cannot be written.
        SupersededError: Another run has begun there since the mirror was fetched.
    """
    if url := _url_of(path):
        mirror = Mirror(url, path)
        with mirror.alone():
            mirror.send(within and f"{within}/")


def _url_of(path: pathlib.Path) -> str | None:
    record = record_of(path)
    return str(json.loads(record.read_text())["url"]) if record.exists() else None
