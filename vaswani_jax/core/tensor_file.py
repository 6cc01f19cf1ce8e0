"""Write arrays and a record into one safetensors file, and read them verified.

The package `safetensors` writes and reads the format. The metadata have one text: a
record in JSON, with the SHA-256 of each array, behind the SHA-256 of the record. One,
because the package writes several in a random order: the same model makes the same
bytes.
"""

import contextlib
import dataclasses
import hashlib
import json
import os
import pathlib
from collections.abc import Iterator, Mapping
from typing import Any

import ml_dtypes  # noqa: F401  NumPy knows bfloat16 by it.
import numpy as np
import safetensors.numpy

from vaswani_jax.core import files

SUFFIX = ".safetensors"
# Names the text of the metadata.
FORMAT = "vaswani_jax"
VERSION = "1"


class TensorFileError(ValueError):
    """A file is damaged, or holds no model of this package."""


@dataclasses.dataclass(frozen=True)
class TensorFile:
    """A file whose record has been verified; `open_file` makes it.

    Attributes:
        path: The path of the file.
        record: Values by name.
        digests: The SHA-256 of each array by name.
    """

    path: pathlib.Path
    record: Mapping[str, Any]
    digests: Mapping[str, str]

    def value(self, name: str) -> Any:
        """Return a value of the record.

        Raises:
            TensorFileError: There is no such value.
        """
        if name not in self.record:
            raise _damage(self.path, f"its record has no {name!r}")
        return self.record[name]

    def read(self, prefix: str) -> dict[str, np.ndarray]:
        """Read and verify the arrays whose names begin with a prefix.

        The prefix is removed from the names. Arrays in bfloat16 become float32.

        Raises:
            TensorFileError: An array is damaged. The message names it.
            OSError: The file cannot be read.
        """
        arrays = {}
        with _opened(self.path) as file:
            for name, digest in self.digests.items():
                if not name.startswith(prefix):
                    continue
                array = file.get_tensor(name)
                if _digest(array) != digest:
                    reason = f"{name} has another SHA-256 than recorded"
                    raise _damage(self.path, reason)
                if array.dtype.name == "bfloat16":
                    array = array.astype(np.float32)
                arrays[name.removeprefix(prefix)] = array
        return arrays


def is_tensor_file(name: str | os.PathLike[str]) -> bool:
    """Return whether a name ends as that of such a file, and is no directory.

    The file need not exist.

    >>> is_tensor_file("s3://bucket/demo.safetensors"), is_tensor_file("runs/demo")
    (True, False)
    """
    name = os.fspath(name)
    return name.endswith(SUFFIX) and not os.path.isdir(name)


def write(
    path: pathlib.Path, arrays: Mapping[str, np.ndarray], record: Mapping[str, Any]
) -> None:
    """Write a file; a crash leaves the old file or the new one, never a part.

    Args:
        path: The file.
        arrays: Arrays of float32, bfloat16 or uint8 by name.
        record: Values for JSON by name.

    Raises:
        OSError: It cannot be written. No part of it remains.
    """
    # The package writes the memory behind an array.
    arrays = {name: np.asarray(array, order="C") for name, array in arrays.items()}
    digests = {name: _digest(array) for name, array in sorted(arrays.items())}
    text = json.dumps({"format_version": VERSION, **record, "sha256": digests})
    digest = hashlib.sha256(text.encode()).hexdigest()
    content = safetensors.numpy.save(arrays, {FORMAT: f"{digest} {text}"})
    files.write_atomically(path, content)


def open_file(path: pathlib.Path) -> TensorFile:
    """Read and verify the record of a file.

    Raises:
        FileNotFoundError: There is no such file.
        TensorFileError: It is damaged, cut off, or of another kind or version.
        OSError: It cannot be read.
    """
    if not path.exists():
        raise FileNotFoundError(f"there is no file {path}")
    with _opened(path) as file:
        names, metadata = set(file.keys()), file.metadata() or {}
    if FORMAT not in metadata:
        raise TensorFileError(
            f"{path} holds no model of vaswani_jax: its metadata must have the text "
            f"{FORMAT!r}, got {sorted(metadata)}; `vaswani export --format=bundle` "
            "writes such a file"
        )
    digest, _, text = metadata[FORMAT].partition(" ")
    if hashlib.sha256(text.encode()).hexdigest() != digest:
        raise _damage(path, "its record has another SHA-256 than recorded")
    try:
        record = dict(json.loads(text))
        version, digests = record["format_version"], dict(record["sha256"])
    except (KeyError, TypeError, ValueError) as error:
        raise _damage(path, f"its record: {error!r}") from None
    if version != VERSION:
        raise TensorFileError(
            f"{path} has the format version {version!r}, and must have {VERSION!r}: "
            "read it with the vaswani-jax that wrote it, "
            f"{record.get('package_version', 'of an unknown version')}"
        )
    if names != digests.keys():
        name = min(names ^ digests.keys())
        raise _damage(path, f"{name!r} is in its header or its record alone")
    return TensorFile(path, record, digests)


@contextlib.contextmanager
def _opened(path: pathlib.Path) -> Iterator[Any]:
    """Open a file; an error of the package becomes one that names the file."""
    try:
        # Unlike a mapped file, one that another program cuts off ends no process.
        with safetensors.safe_open(path, framework="np", backend="pread") as file:
            yield file
    except (safetensors.SafetensorError, AttributeError) as error:
        # AttributeError: the file has a type that NumPy lacks.
        reason = str(error).removeprefix("Error while deserializing header: ")
        raise TensorFileError(
            f"{path} is no safetensors file, or is cut off or damaged: it has "
            f"{path.stat().st_size:,} bytes: {reason}; copy or export it again"
        ) from None


def _digest(array: np.ndarray) -> str:
    """Return the SHA-256 of the type, the shape and the bytes of an array."""
    digest = hashlib.sha256(f"{array.dtype.name} {array.shape}".encode())
    digest.update(array.reshape(-1).view(np.uint8).data)
    return digest.hexdigest()


def _damage(path: pathlib.Path, reason: str) -> TensorFileError:
    return TensorFileError(f"{path} is damaged: {reason}; copy or export it again")
