"""Section 5.1: where sentence pairs come from; every source gives the same thing.

A source gives, for each split ("train", "valid", "test"), pairs of lines, and a record
of exactly which text that is.
"""

import functools
import gzip
import hashlib
import io
import itertools
import os
import pathlib
import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from vaswani_jax.core import config, remote
from vaswani_jax.data import tfds
from vaswani_jax.data.cldr import phrase_pairs

Pairs = Iterator[tuple[str, str]]
LETTERS = "abcdefghijklmnopqrstuvwxyz"


def splits(data: config.DataConfig) -> list[str]:
    """The splits this configuration has: always train and valid, test if named."""
    has_test = data.source != "text" or bool(data.test_source)
    return ["train", "valid", *(["test"] if has_test else [])]


def prepare(data: config.DataConfig, *, log: Callable[[str], None]) -> None:
    """Have what `pairs` reads: only corpora of tensorflow-datasets need anything.

    Raises:
        ValueError: It cannot be had.
    """
    if data.source.startswith(tfds.PREFIX):
        tfds.prepare(data, log=log)


def count(data: config.DataConfig, split: str, *, seed: int) -> int:
    """The pairs of a split; where that takes reading them, all of them are checked.

    Raises:
        FileNotFoundError, ValueError: See `pairs`.
    """
    if data.source.startswith(tfds.PREFIX):
        return tfds.count(data, split)
    return sum(1 for _ in pairs(data, split, seed=seed))


def sample(
    data: config.DataConfig, split: str, *, seed: int, wanted: int, total: int
) -> Pairs:
    """`wanted` of the `total` pairs of a split, as evenly as whole numbers can."""
    if total <= wanted:
        yield from pairs(data, split, seed=seed)
        return
    chosen = (-(-index * total // wanted) for index in range(wanted))
    if data.source.startswith(tfds.PREFIX):
        yield from tfds.pairs(data, split, chosen=list(chosen))
        return
    following = next(chosen)
    for index, pair in enumerate(pairs(data, split, seed=seed)):
        if index == following:
            yield pair
            following = next(chosen, total)


def pairs(data: config.DataConfig, split: str, *, seed: int) -> Pairs:
    """The (source, target) lines of a split, in the order of the text.

    Raises:
        FileNotFoundError: A text file is missing.
        ValueError: The sides differ in length (the message has both counts), or a
            line is not UTF-8 (the message has the file and the line).
    """
    if data.source == "text":
        return _text_pairs(*text_paths(data, split))
    if data.source.startswith(tfds.PREFIX):
        return tfds.pairs(data, split, chosen=None)
    return iter(_generated(data, seed)[split])


def text_paths(data: config.DataConfig, split: str) -> tuple[pathlib.Path, ...]:
    """The source and the target file of a split.

    Raises:
        FileNotFoundError: One of them is missing.
    """
    names = {
        key: str(getattr(data, key)) for key in (f"{split}_source", f"{split}_target")
    }
    directory = remote.local_copy(data.text_directory, only=names.values())
    paths = []
    for key, name in names.items():
        path = directory / name
        if not path.is_file():
            raise FileNotFoundError(
                f"config.data.{key}: no file {path} (config.data.text_directory is "
                f"{data.text_directory!r})"
            )
        paths.append(path)
    return tuple(paths)


def text_record(
    data: config.DataConfig, split: str, *, seed: int, known: dict[str, Any]
) -> dict[str, Any]:
    """What identifies the text of a split: digests of files, or of a generator.

    Args:
        data: Where the text is.
        split: Which part of it.
        seed: The seed of generated text.
        known: An earlier record; a file of the same size and modification time is
            not read again.
    """
    if data.source.startswith(tfds.PREFIX):
        return tfds.record(data, split)
    if data.source != "text":
        version = phrase_pairs.cldr_version() if data.source == "cldr" else "1"
        return {"generator": data.source, "version": version, "seed": seed}
    record = {}
    names = ("source", "target")
    for side, path in zip(names, text_paths(data, split), strict=True):
        status = os.stat(path)
        entry = {"bytes": status.st_size, "modified_ns": status.st_mtime_ns}
        earlier = known.get(side, {})
        if all(earlier.get(key) == value for key, value in entry.items()):
            record[side] = earlier
        else:
            record[side] = {**entry, "sha256": _file_digest(path)}
    return record


def lines(path: pathlib.Path) -> Iterator[str]:
    """Lines of a plain or gzipped UTF-8 file, without their ends.

    Only a line feed ends a line (a carriage return before it goes too), so that
    no other character can make the two sides differ in length.

    Raises:
        ValueError: A line is not UTF-8 (the message has the file and the line), or
            a compressed file is damaged.
    """
    with open_bytes(path) as stream:
        try:
            yield from decoded(stream, name=str(path))
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise ValueError(f"{path} is no whole gzip file: {error}") from None


def decoded(stream: Iterable[bytes], *, name: str) -> Iterator[str]:
    """The stream's lines; see `lines`."""
    for number, line in enumerate(stream, start=1):
        try:
            text = line.decode("utf-8")
        except UnicodeDecodeError as error:
            raise ValueError(
                f"{name}, line {number}: not UTF-8 (byte {line[error.start]:#04x} at "
                f"column {error.start + 1}); convert the file to UTF-8"
            ) from None
        if number == 1:
            text = text.removeprefix("\ufeff")
        yield text.removesuffix("\n").removesuffix("\r")


def open_bytes(path: pathlib.Path) -> io.BufferedIOBase:
    """The file, uncompressed if its name ends in .gz."""
    if path.suffix == ".gz":
        return gzip.GzipFile(path, "rb")
    return open(path, "rb")


def _file_digest(path: pathlib.Path) -> str:
    with open(path, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _text_pairs(source: pathlib.Path, target: pathlib.Path) -> Pairs:
    count = 0
    both = itertools.zip_longest(lines(source), lines(target))
    for left, right in both:
        if left is None or right is None:
            more = 1 + sum(1 for _ in both)
            longer = count + more
            counts = (count, longer) if left is None else (longer, count)
            raise ValueError(
                f"the two sides must have the same number of lines: {source} has "
                f"{counts[0]}, {target} has {counts[1]}"
            )
        count += 1
        yield left, right


@functools.lru_cache(maxsize=1)
def _generated(data: config.DataConfig, seed: int) -> dict[str, list[tuple[str, str]]]:
    sizes = {"train": data.num_train, "valid": data.num_valid, "test": data.num_test}
    if data.source == "cldr":
        return phrase_pairs.cldr_pairs(
            source_locale=data.source_locale,
            target_locale=data.target_locale,
            num_train=data.num_train,
            num_valid=data.num_valid,
            num_test=data.num_test,
            seed=seed,
        )
    step = 1 if data.source == "copy" else -1
    generator = np.random.default_rng(seed)
    unique: dict[str, str] = {}
    while len(unique) < sum(sizes.values()):
        length = generator.integers(4, 13)
        words = [LETTERS[i] for i in generator.integers(0, len(LETTERS), length)]
        unique[" ".join(words)] = " ".join(words[::step])
    rest = iter(unique.items())
    return {split: list(itertools.islice(rest, n)) for split, n in sizes.items()}
