"""Files as they were written: the size and the SHA-256 of each."""

import hashlib
import os
import pathlib
from collections.abc import Iterable, Mapping
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
