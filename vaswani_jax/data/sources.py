"""Sources of sentence pairs: text files, trees, tensorflow-datasets, generators.

Every source gives, for each split ("train", "valid", "test"), pairs of lines, and a
record of exactly which text that is.
"""

import dataclasses
import functools
import itertools
import pathlib
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from vaswani_jax.core import config, files, languages, remote
from vaswani_jax.data import text_files, tfds, treebank_checks, treebank_pairs
from vaswani_jax.data.cldr.pairs import cldr_pairs, cldr_version

Pairs = Iterator[tuple[str, str]]
LETTERS = "abcdefghijklmnopqrstuvwxyz"


def splits(data: config.DataConfig) -> list[str]:
    """Return the splits of a configuration: train, and valid and test if named."""
    if data.source == "treebank":
        return treebank_pairs.splits(data)
    named = {"valid": data.valid_source, "test": data.test_source}
    is_text = data.source == "text"
    return ["train", *(split for split in named if not is_text or named[split])]


def prepare(data: config.DataConfig) -> None:
    """Download what `pairs` reads, if it is a corpus of tensorflow-datasets.

    Raises:
        FileNotFoundError: There are no trees where settings say.
        ValueError: The corpus does not exist, or cannot be downloaded or converted, or
            splits share trees.
    """
    if data.source == "treebank":
        treebank_pairs.check_splits(_local(data))
    if data.source.startswith(tfds.PREFIX):
        tfds.prepare(data)


def count(data: config.DataConfig, split: str, *, seed: int) -> int:
    """Return the number of pairs of a split, after checking every line of a text file.

    Of trees it logs what is unusual, see `treebank_checks.count_pairs`.

    Raises:
        FileNotFoundError, ValueError: The text cannot be used, see `pairs`.
    """
    if data.source.startswith(tfds.PREFIX):
        return tfds.count(data, split)
    if data.source == "treebank":
        return treebank_checks.count_pairs(_local(data), split)
    return sum(1 for _ in pairs(data, split, seed=seed))


def sample(
    data: config.DataConfig, split: str, *, seed: int, size: int, total: int
) -> Pairs:
    """Yield pairs spread evenly over a split, as evenly as whole numbers can be.

    Args:
        data: Where the text is.
        split: The part of it.
        seed: Seed of generated text.
        size: Number of pairs to yield.
        total: Number of pairs of the split.
    """
    if total <= size:
        yield from pairs(data, split, seed=seed)
        return
    indices = (-(-number * total // size) for number in range(size))
    if data.source.startswith(tfds.PREFIX):
        yield from tfds.pairs(data, split, indices=list(indices))
        return
    next_index = next(indices)
    for index, pair in enumerate(pairs(data, split, seed=seed)):
        if index == next_index:
            yield pair
            next_index = next(indices, total)


def pairs(data: config.DataConfig, split: str, *, seed: int) -> Pairs:
    """Yield the (source, target) lines of a split, in the order of the text.

    Raises:
        FileNotFoundError: A text file is missing.
        ValueError: The sides differ in length (the message has both counts), or a
            line is not UTF-8 or lacks the tag of one of several target languages (the
            message has the file and the line).
    """
    if data.source == "treebank":
        return treebank_pairs.pairs(_local(data), split)
    if data.source == "text":
        source, target = text_paths(data, split)
        text = _text_pairs(source, target)
        if languages.locales_by_tag(data):
            return _check_tags(text, data, source=source)
        return text
    if data.source.startswith(tfds.PREFIX):
        return tfds.pairs(data, split, indices=None)
    return iter(_generated(data, seed)[split])


def text_paths(data: config.DataConfig, split: str) -> tuple[pathlib.Path, ...]:
    """Return the source and the target file of a split.

    Raises:
        FileNotFoundError: A file is missing.
    """
    names = {
        key: str(getattr(data, key)) for key in (f"{split}_source", f"{split}_target")
    }
    directory = remote.open_directory(data.text_directory).pull(
        file_names=names.values()
    )
    paths = []
    for key, name in names.items():
        path = directory / name
        if not path.is_file():
            advice = f"name it with --config.data.{key}=NAME"
            if split != "train":
                advice += (
                    f", or do without: --config.data.{split}_source= "
                    f"--config.data.{split}_target="
                )
            raise FileNotFoundError(
                f"config.data.{key}: no file {path} (config.data.text_directory is "
                f"{data.text_directory!r}); {advice}"
            )
        paths.append(path)
    return tuple(paths)


def _local(data: config.DataConfig) -> config.DataConfig:
    """Return the settings with a directory of text on this machine."""
    directory = remote.open_directory(data.text_directory).pull()
    return dataclasses.replace(data, text_directory=str(directory))


def text_record(
    data: config.DataConfig, split: str, *, seed: int, previous: Mapping[str, Any]
) -> dict[str, Any]:
    """Return what identifies the text of a split: its files or its generator.

    Args:
        data: Where the text is.
        split: The part of it.
        seed: Seed of generated text.
        previous: An earlier record, or an empty one. A file that has its size and
            modification time is not read again.
    """
    if data.source.startswith(tfds.PREFIX):
        return tfds.record(data, split)
    if data.source == "treebank":
        return treebank_pairs.record(_local(data), split, previous=previous)
    if data.source != "text":
        version = cldr_version() if data.source == "cldr" else "1"
        return {"generator": data.source, "version": version, "seed": seed}
    record = {}
    names = ("source", "target")
    for side, path in zip(names, text_paths(data, split), strict=True):
        record[side] = files.describe_file(path, previous.get(side, {}))
    return record


def content_identity(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return a record of `text_record` without what changes when a file is copied."""
    return {
        key: entry.get("sha256") if isinstance(entry, dict) else entry
        for key, entry in record.items()
    }


def _text_pairs(source: pathlib.Path, target: pathlib.Path) -> Pairs:
    num_pairs = 0
    sides = itertools.zip_longest(
        text_files.read_lines(source), text_files.read_lines(target)
    )
    for source_line, target_line in sides:
        if source_line is None or target_line is None:
            shorter, longer = num_pairs, num_pairs + 1 + sum(1 for _ in sides)
            counts = (shorter, longer) if source_line is None else (longer, shorter)
            raise ValueError(
                f"the two sides must have the same number of lines: {source} has "
                f"{counts[0]}, {target} has {counts[1]}"
            )
        num_pairs += 1
        yield source_line, target_line


def _check_tags(text: Pairs, data: config.DataConfig, *, source: pathlib.Path) -> Pairs:
    """Yield pairs after checking that their sources name a target language."""
    for number, pair in enumerate(text, start=1):
        try:
            languages.check_tags(pair[:1], data, first_line=number)
        except ValueError as error:
            raise ValueError(f"{source}, {error}") from None
        yield pair


@functools.lru_cache(maxsize=1)
def _generated(data: config.DataConfig, seed: int) -> dict[str, list[tuple[str, str]]]:
    sizes = {"train": data.num_train, "valid": data.num_valid, "test": data.num_test}
    if data.source == "cldr":
        return cldr_pairs(data, seed=seed)
    step = 1 if data.source == "copy" else -1
    generator = np.random.default_rng(seed)
    unique: dict[str, str] = {}
    while len(unique) < sum(sizes.values()):
        length = generator.integers(4, 13)
        words = [LETTERS[i] for i in generator.integers(0, len(LETTERS), length)]
        unique[" ".join(words)] = " ".join(words[::step])
    remaining = iter(unique.items())
    return {
        split: list(itertools.islice(remaining, size)) for split, size in sizes.items()
    }
