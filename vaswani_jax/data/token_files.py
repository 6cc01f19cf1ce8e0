"""Section 5.1: sentences as token ids in memory-mapped files.

A corpus larger than memory trains: only the pages that a batch touches are read.
"""

import pathlib
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Int

OFFSET_TYPE = np.dtype("<i8")
CHUNK = 1 << 20


class TokenFile:
    """Sentences of one side: a flat file of ids and one of offsets into it."""

    def __init__(self, path: pathlib.Path) -> None:
        self._path = path
        self._offsets = _mapped(_beside(path, "offsets"), OFFSET_TYPE)
        for kind in (np.dtype("<u2"), np.dtype("<i4")):
            ids = _beside(path, kind.name)
            if ids.exists():
                self._ids = _mapped(ids, kind)
                break
        else:
            raise FileNotFoundError(f"no token ids beside {path}")
        end = self._offsets[-1] if len(self._offsets) else "no token"
        if end != len(self._ids):
            raise ValueError(
                f"{path} is damaged: its offsets end at {end}, but it "
                f"has {len(self._ids)} tokens; prepare the data again"
            )

    def __len__(self) -> int:
        return len(self._offsets) - 1

    def num_tokens(self) -> int:
        """Tokens of all sentences."""
        return len(self._ids)

    def lengths(self) -> Int[np.ndarray, "N"]:
        """Tokens of each sentence."""
        found = np.empty(len(self), np.int32)
        # In parts, so that tens of millions of sentences need no 64-bit copies.
        for start in range(0, len(self), CHUNK):
            ends = self._offsets[start : start + CHUNK + 1]
            steps = np.diff(ends)
            if (steps < 0).any() or ends[-1] > len(self._ids):
                raise ValueError(
                    f"{self._path} is damaged: its offsets are out of order; prepare "
                    "the data again"
                )
            found[start : start + CHUNK] = steps
        return found

    def joined(
        self, sentences: Int[np.ndarray, "B"]
    ) -> tuple[Int[np.ndarray, "T"], Int[np.ndarray, "B"]]:
        """The ids of some sentences, one after the other, and their lengths."""
        starts = self._offsets[sentences]
        lengths = self._offsets[sentences + 1] - starts
        before = np.cumsum(lengths) - lengths
        places = np.repeat(starts - before, lengths) + np.arange(lengths.sum())
        return self._ids[places].astype(np.int32), lengths.astype(np.int32)

    def rows(
        self, sentences: Int[np.ndarray, "B"], *, length: int
    ) -> tuple[Int[np.ndarray, "B L"], Int[np.ndarray, "B"]]:
        """The sentences side by side, zeros after each, and their lengths.

        Of a sentence that is longer than `length`, as in damaged files, the first ids.
        """
        starts = self._offsets[sentences]
        lengths = self._offsets[sentences + 1] - starts
        columns = np.arange(length)
        real = columns < lengths[:, None]
        positions = np.where(real, starts[:, None] + columns, 0)
        ids = np.zeros(positions.shape, np.int32)
        ids[real] = self._ids[positions[real]]
        return ids, lengths.astype(np.int32)


class Corpus(NamedTuple):
    """The two sides of a split, aligned by sentence."""

    source: TokenFile
    target: TokenFile


def longer_sides(corpus: Corpus) -> Int[np.ndarray, "N"]:
    """Tokens of the longer side of each pair."""
    lengths = corpus.source.lengths()
    return np.maximum(lengths, corpus.target.lengths(), out=lengths)


def histogram(lengths: Int[np.ndarray, "N"]) -> Int[np.ndarray, "L"]:
    """How many sentences have each length; the index is the length."""
    counts = np.zeros(int(lengths.max()) + 1, np.int64)
    for start in range(0, len(lengths), CHUNK):
        counts += np.bincount(lengths[start : start + CHUNK], minlength=len(counts))
    return counts


def shuffled(count: int, seed: list[int]) -> Int[np.ndarray, "N"]:
    """0 to count - 1 in an order that depends on the seed alone."""
    order = np.arange(count, dtype=np.int32 if count < 2**31 else np.int64)
    np.random.default_rng(seed).shuffle(order)
    return order


def positions(corpus: Corpus) -> int:
    """Tokens of both sides, each sentence with its end mark."""
    return sum(side.num_tokens() + len(side) for side in corpus)


class TokenWriter:
    """Writes a `TokenFile` as sentences come."""

    def __init__(self, path: pathlib.Path, *, vocab_size: int) -> None:
        self._kind = np.dtype("<u2" if vocab_size <= 2**16 else "<i4")
        self._ids = open(_beside(path, self._kind.name), "wb")  # noqa: SIM115
        self._offsets = open(_beside(path, "offsets"), "wb")  # noqa: SIM115
        self._end = 0
        self._offsets.write(np.zeros(1, OFFSET_TYPE).tobytes())

    def write(self, sentences: Sequence[Sequence[int]]) -> None:
        """Append sentences."""
        ends = self._end + np.cumsum([len(ids) for ids in sentences], dtype=OFFSET_TYPE)
        self._offsets.write(ends.astype(OFFSET_TYPE).tobytes())
        for ids in sentences:
            self._ids.write(np.asarray(ids, self._kind).tobytes())
        if len(ends):
            self._end = int(ends[-1])

    def close(self) -> None:
        """Finish the files."""
        self._ids.close()
        self._offsets.close()


def _beside(path: pathlib.Path, ending: str) -> pathlib.Path:
    return path.with_name(f"{path.name}.{ending}")


def _mapped(path: pathlib.Path, kind: np.dtype) -> np.ndarray:
    size = path.stat().st_size
    if size % kind.itemsize:
        raise ValueError(
            f"{path} is damaged: {size} bytes are no multiple of {kind.itemsize}; "
            "prepare the data again"
        )
    if size == 0:
        return np.zeros(0, kind)
    return np.memmap(path, kind, mode="r")
