"""Sentences as token ids in memory-mapped files.

A corpus may be larger than memory: only the pages that a batch touches are read.
"""

import contextlib
import pathlib
from collections.abc import Iterator, Sequence
from typing import IO, NamedTuple

import numpy as np
from jaxtyping import Int, Integer

OFFSET_TYPE = np.dtype("<i8")
# Of ids below 65,536, and of larger ones.
ID_TYPES = (np.dtype("<u2"), np.dtype("<i4"))
CHUNK = 1 << 20


class TokenFile:
    """The sentences of one side: a flat file of ids and one of offsets into it."""

    def __init__(
        self,
        path: pathlib.Path,
        *,
        offsets: Int[np.ndarray, "E"],
        ids: Integer[np.ndarray, "T"],
    ) -> None:
        self._path = path
        self._offsets = offsets
        self._ids = ids

    @classmethod
    def open(cls, path: pathlib.Path) -> "TokenFile":
        """Map the files whose names begin with a path.

        Raises:
            FileNotFoundError: A file is missing.
            ValueError: A file is damaged.
        """
        offsets = _map(_with_ending(path, "offsets"), OFFSET_TYPE)
        for dtype in ID_TYPES:
            ids_path = _with_ending(path, dtype.name)
            if ids_path.exists():
                ids = _map(ids_path, dtype)
                break
        else:
            raise FileNotFoundError(f"no token ids beside {path}")
        end = offsets[-1] if len(offsets) else "no token"
        if end != len(ids):
            raise ValueError(
                f"{path} is damaged: its offsets end at {end}, but it "
                f"has {len(ids)} tokens; prepare the data again"
            )
        return cls(path, offsets=offsets, ids=ids)

    def __len__(self) -> int:
        return len(self._offsets) - 1

    def num_tokens(self) -> int:
        """Return the number of tokens of all sentences."""
        return len(self._ids)

    def tokens_in(self, part: slice) -> int:
        """Return the number of tokens of a part of the sentences."""
        return int(self._offsets[part.stop] - self._offsets[part.start])

    def lengths(self) -> Int[np.ndarray, "N"]:
        """Return the number of tokens of each sentence.

        Raises:
            ValueError: The offsets are damaged.
        """
        lengths = np.empty(len(self), np.int32)
        # In parts, so that tens of millions of sentences need no 64-bit copies.
        for start in range(0, len(self), CHUNK):
            ends = self._offsets[start : start + CHUNK + 1]
            steps = np.diff(ends)
            if (steps < 0).any() or ends[-1] > len(self._ids):
                raise ValueError(
                    f"{self._path} is damaged: its offsets are out of order; prepare "
                    "the data again"
                )
            lengths[start : start + CHUNK] = steps
        return lengths

    def joined(
        self, sentences: Int[np.ndarray, "B"]
    ) -> tuple[Int[np.ndarray, "T"], Int[np.ndarray, "B"]]:
        """Return the ids of sentences one after the other, and their lengths."""
        starts = self._offsets[sentences]
        lengths = self._offsets[sentences + 1] - starts
        joined_starts = np.cumsum(lengths) - lengths
        positions = np.repeat(starts - joined_starts, lengths)
        positions += np.arange(lengths.sum())
        return self._ids[positions].astype(np.int32), lengths.astype(np.int32)

    def id_lists(self, sentences: Int[np.ndarray, "B"]) -> Iterator[list[int]]:
        """Yield the ids of each sentence."""
        ids, lengths = self.joined(sentences)
        for end, length in zip(np.cumsum(lengths), lengths, strict=True):
            yield ids[end - length : end].tolist()

    def rows(
        self, sentences: Int[np.ndarray, "B"], *, length: int
    ) -> tuple[Int[np.ndarray, "B L"], Int[np.ndarray, "B"]]:
        """Return sentences as rows with zeros after each, and their lengths.

        A sentence that is longer than `length`, as in damaged files, is cut.
        """
        starts = self._offsets[sentences]
        lengths = self._offsets[sentences + 1] - starts
        columns = np.arange(length)
        is_token = columns < lengths[:, None]
        positions = np.where(is_token, starts[:, None] + columns, 0)
        ids = np.zeros(positions.shape, np.int32)
        ids[is_token] = self._ids[positions[is_token]]
        return ids, lengths.astype(np.int32)


class TokenPairs(NamedTuple):
    """The two sides of a split, aligned by sentence."""

    source: TokenFile
    target: TokenFile


def longer_sides(pairs: TokenPairs) -> Int[np.ndarray, "N"]:
    """Return the number of tokens of the longer side of each pair."""
    lengths = pairs.source.lengths()
    return np.maximum(lengths, pairs.target.lengths(), out=lengths)


def histogram(lengths: Int[np.ndarray, "N"]) -> Int[np.ndarray, "L"]:
    """Return the number of sentences of each length; the index is the length."""
    counts = np.zeros(int(lengths.max()) + 1, np.int64)
    for start in range(0, len(lengths), CHUNK):
        counts += np.bincount(lengths[start : start + CHUNK], minlength=len(counts))
    return counts


def shuffled(count: int, seed: list[int]) -> Int[np.ndarray, "N"]:
    """Return 0 to count - 1 in an order that depends on the seed alone."""
    order = np.arange(count, dtype=np.int32 if count < 2**31 else np.int64)
    np.random.default_rng(seed).shuffle(order)
    return order


def indices_of(value: int, values: Int[np.ndarray, "N"]) -> Int[np.ndarray, "M"]:
    """Return where a value stands, in 32 bits if they suffice."""
    indices = np.flatnonzero(values == value)
    return indices.astype(np.int32) if len(values) < 2**31 else indices


class TokenWriter:
    """A `TokenFile` to write, a few sentences at a time; see `open_writer`."""

    def __init__(self, *, offsets: IO[bytes], ids: IO[bytes], dtype: np.dtype) -> None:
        self._offsets = offsets
        self._ids = ids
        self._dtype = dtype
        self._end = 0

    def write(self, sentences: Sequence[Sequence[int]]) -> None:
        """Append sentences to the files."""
        ends = self._end + np.cumsum([len(ids) for ids in sentences], dtype=OFFSET_TYPE)
        self._offsets.write(ends.astype(OFFSET_TYPE).tobytes())
        for ids in sentences:
            self._ids.write(np.asarray(ids, self._dtype).tobytes())
        if len(ends):
            self._end = int(ends[-1])


@contextlib.contextmanager
def open_writer(path: pathlib.Path, *, vocab_size: int) -> Iterator[TokenWriter]:
    """Create the files of a `TokenFile`, and close them at the end.

    Args:
        path: What their names begin with.
        vocab_size: With at most 65,536 subwords an id takes two bytes, else four.
    """
    dtype = ID_TYPES[vocab_size > 2**16]
    with (
        open(_with_ending(path, "offsets"), "wb") as offsets,
        open(_with_ending(path, dtype.name), "wb") as ids,
    ):
        offsets.write(np.zeros(1, OFFSET_TYPE).tobytes())
        yield TokenWriter(offsets=offsets, ids=ids, dtype=dtype)


def _with_ending(path: pathlib.Path, ending: str) -> pathlib.Path:
    return path.with_name(f"{path.name}.{ending}")


def _map(path: pathlib.Path, dtype: np.dtype) -> np.ndarray:
    size = path.stat().st_size
    if size % dtype.itemsize:
        raise ValueError(
            f"{path} is damaged: {size} bytes are no multiple of {dtype.itemsize}; "
            "prepare the data again"
        )
    if size == 0:  # An empty file cannot be mapped.
        return np.zeros(0, dtype)
    return np.memmap(path, dtype, mode="r")
