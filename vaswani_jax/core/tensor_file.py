"""Write arrays and a record into one safetensors file, and read them verified.

Any program that knows safetensors reads such a file. Beside that format's own rules,
ours has the SHA-256 of each array and of the header, so that damage is found. The
package `safetensors` is not used: its reader for NumPy knows no bfloat16, and it copies
each array once more.
"""

import contextlib
import dataclasses
import hashlib
import json
import math
import os
import pathlib
from collections.abc import Mapping
from typing import IO, Any

import numpy as np

SUFFIX = ".safetensors"
FORMAT = "vaswani_jax"
VERSION = "1"
# The types of arrays, by their names in the format.
TYPES = {"F32": "float32", "BF16": "bfloat16", "U8": "uint8"}
# As NumPy reads them; it has no bfloat16, the upper half of a float32.
STORED: Mapping[str, np.dtype[Any]] = {
    "F32": np.dtype("<f4"),
    "BF16": np.dtype("<u2"),
    "U8": np.dtype("u1"),
}
# Another program's header may be large; reading a damaged length must not be.
MAX_HEADER_BYTES = 100_000_000
LENGTH_BYTES = 8
# Where the arrays begin is a multiple of this.
ALIGNMENT = 64
# Stands for the digest of the header where that digest is computed.
NO_DIGEST = "0" * 64


class TensorFileError(ValueError):
    """A file is damaged, or holds no model of this package."""


@dataclasses.dataclass(frozen=True)
class Entry:
    """The place of an array in a file.

    Attributes:
        type: One of `TYPES`.
        shape: Of the array.
        begin: Its first byte, counted from the end of the header.
        end: The byte after its last one.
    """

    type: str
    shape: tuple[int, ...]
    begin: int
    end: int


@dataclasses.dataclass(frozen=True)
class TensorFile:
    """A file whose header has been verified; `open_file` makes it.

    Attributes:
        path: Of the file.
        metadata: Texts by name.
        entries: The place of each array, by name.
        digests: The SHA-256 of each array, by name.
        data_begin: Where the arrays begin.
    """

    path: pathlib.Path
    metadata: Mapping[str, str]
    entries: Mapping[str, Entry]
    digests: Mapping[str, str]
    data_begin: int

    def json(self, name: str) -> Any:
        """Return the value that a text of the metadata describes.

        Raises:
            TensorFileError: There is no such text, or it is not JSON.
        """
        try:
            return json.loads(self.metadata[name])
        except (KeyError, ValueError) as error:
            raise _damage(self.path, f"its metadata {name!r}: {error!r}") from None

    def read(self, prefix: str) -> dict[str, np.ndarray]:
        """Read and verify the arrays whose names begin with a prefix.

        The prefix is removed from the names. Arrays in bfloat16 become float32.

        Raises:
            TensorFileError: An array is damaged. The message names it.
            OSError: The file cannot be read.
        """
        arrays = {}
        with open(self.path, "rb") as file:
            for name, entry in self.entries.items():
                if not name.startswith(prefix):
                    continue
                file.seek(self.data_begin + entry.begin)
                size = math.prod(entry.shape)
                array = np.fromfile(file, STORED[entry.type], size)
                if hashlib.sha256(array.data).hexdigest() != self.digests.get(name):
                    reason = f"{name} has another SHA-256 than recorded"
                    raise _damage(self.path, reason)
                if entry.type == "BF16":
                    array = (array.astype(np.uint32) << 16).view(np.float32)
                arrays[name.removeprefix(prefix)] = array.reshape(entry.shape)
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
    path: pathlib.Path,
    arrays: Mapping[str, np.ndarray],
    metadata: Mapping[str, str],
) -> None:
    """Write a file; a crash leaves the old file or the new one, never a part.

    Args:
        path: The file.
        arrays: Arrays of float32, bfloat16 or uint8 by name.
        metadata: Texts by name.

    Raises:
        OSError: It cannot be written. No part of it remains.
    """
    types = {type_name: name for name, type_name in TYPES.items()}
    # The widest numbers come first, so that each begins at a multiple of its width.
    names = sorted(arrays, key=lambda name: (-arrays[name].itemsize, name))
    contents = {
        name: np.ascontiguousarray(arrays[name]).reshape(-1).view(np.uint8).data
        for name in names
    }
    entries: dict[str, Any] = {}
    end = 0
    for name in names:
        begin, end = end, end + contents[name].nbytes
        entries[name] = {
            "dtype": types[arrays[name].dtype.name],
            "shape": arrays[name].shape,
            "data_offsets": [begin, end],
        }
    digests = {name: hashlib.sha256(contents[name]).hexdigest() for name in names}
    texts = {
        "format": FORMAT,
        "format_version": VERSION,
        **metadata,
        "sha256": json.dumps(digests),
        "header_sha256": NO_DIGEST,
    }
    header = json.dumps({"__metadata__": texts, **entries}, ensure_ascii=False).encode()
    header += b" " * (-(LENGTH_BYTES + len(header)) % ALIGNMENT)
    digest = hashlib.sha256(header).hexdigest()
    header = header.replace(NO_DIGEST.encode(), digest.encode())
    unfinished = path.with_name(f"{path.name}.unfinished")
    try:
        with open(unfinished, "wb") as file:
            file.write(len(header).to_bytes(LENGTH_BYTES, "little"))
            file.write(header)
            for name in names:
                file.write(contents[name])
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            unfinished.unlink()
        raise


def open_file(path: pathlib.Path) -> TensorFile:
    """Read and verify the header of a file.

    Raises:
        FileNotFoundError: There is no such file.
        TensorFileError: It is damaged, cut off, or of another kind or version.
        OSError: It cannot be read.
    """
    if not path.exists():
        raise FileNotFoundError(f"there is no file {path}")
    with open(path, "rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(0)
        header = _read_header(file, path, size=size)
    try:
        content = dict(json.loads(header))
        metadata = dict(content.pop("__metadata__", {}))
    except (ValueError, TypeError) as error:
        raise _damage(path, f"its header is not JSON: {error}") from None
    if metadata.get("format") != FORMAT:
        raise TensorFileError(
            f"{path} holds no model of vaswani_jax: its metadata must have the format "
            f"{FORMAT!r}, got {metadata.get('format')!r}; `vaswani export "
            "--format=bundle` writes such a file"
        )
    if metadata.get("format_version") != VERSION:
        raise TensorFileError(
            f"{path} has the format version {metadata.get('format_version')!r}, and "
            f"must have {VERSION!r}: read it with the vaswani-jax that wrote it, "
            f"{metadata.get('package_version', 'of an unknown version')}"
        )
    digest = str(metadata.get("header_sha256"))
    blank = header.replace(digest.encode(), NO_DIGEST.encode())
    if hashlib.sha256(blank).hexdigest() != digest:
        raise _damage(path, "its header has another SHA-256 than recorded")
    data_begin = LENGTH_BYTES + len(header)
    try:
        entries = {name: _parse_entry(entry) for name, entry in content.items()}
        digests = dict(json.loads(metadata["sha256"]))
    except (KeyError, TypeError, ValueError) as error:
        raise _damage(path, f"its header: {error!r}") from None
    end = 0
    for name, entry in sorted(entries.items(), key=lambda item: item[1].begin):
        length = math.prod(entry.shape) * STORED[entry.type].itemsize
        if entry.begin != end or entry.end - entry.begin != length:
            raise _damage(path, f"{name} has bytes that do not fit its shape")
        end = entry.end
    if size != data_begin + end:
        raise _damage(path, f"it has {size:,} of {data_begin + end:,} bytes")
    return TensorFile(path, metadata, entries, digests, data_begin)


def _read_header(file: IO[bytes], path: pathlib.Path, *, size: int) -> bytes:
    length = int.from_bytes(file.read(LENGTH_BYTES), "little")
    if size < LENGTH_BYTES or not 2 <= length <= min(size, MAX_HEADER_BYTES):
        raise TensorFileError(
            f"{path} is no safetensors file, or is cut off: it begins with a header's "
            f"length, from 2 to its own {size:,} bytes, got {length:,}"
        )
    header = file.read(length)
    if len(header) < length:
        raise _damage(path, f"it has {size:,} bytes, its header alone {length:,}")
    return header


def _parse_entry(entry: Any) -> Entry:
    kind, shape = entry["dtype"], entry["shape"]
    begin, end = entry["data_offsets"]
    numbers = [*shape, begin, end]
    if kind not in TYPES or any(type(n) is not int or n < 0 for n in numbers):
        raise ValueError(entry)
    return Entry(kind, tuple(shape), begin, end)


def _damage(path: pathlib.Path, reason: str) -> TensorFileError:
    return TensorFileError(f"{path} is damaged: {reason}; copy or export it again")
