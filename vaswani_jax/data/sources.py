"""Sources of sentence pairs: text files, trees, tensorflow-datasets, generators.

Every source gives, for each split ("train", "valid", "test"), pairs of lines, and a
record of exactly which text that is.
"""

import dataclasses
import functools
import hashlib
import itertools
import json
import logging
import pathlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from vaswani_jax.core import config, files, languages, remote
from vaswani_jax.data import columns, tfds, treebank_checks, treebank_pairs
from vaswani_jax.data.cldr.pairs import cldr_pairs, cldr_version
from vaswani_jax.data.columns import Side

Pairs = Iterator[tuple[str, str]]
logger = logging.getLogger(__name__)

LETTERS = "abcdefghijklmnopqrstuvwxyz"


def splits(data: config.DataConfig) -> list[str]:
    """Return the splits of a configuration: train, and valid and test if named."""
    if data.source == "treebank":
        return treebank_pairs.list_splits(data)
    source_by_split = {"valid": data.valid_source, "test": data.test_source}
    is_text = data.source == "text"
    return [
        "train",
        *(split for split in source_by_split if not is_text or source_by_split[split]),
    ]


def prepare(data: config.DataConfig) -> None:
    """Download what `pairs` reads, if it is a corpus of tensorflow-datasets.

    Raises:
        FileNotFoundError: There are no trees where settings say.
        ValueError: The corpus does not exist, or cannot be downloaded or converted, or
            splits share trees.
        ImportError: A package that makes the text is not installed.
    """
    if data.source == "treebank":
        treebank_pairs.check_splits(_local(data))
    if data.source.startswith(tfds.PREFIX):
        tfds.prepare(data)


def count(data: config.DataConfig, split: str, *, seed: int) -> int:
    """Return the number of pairs of a split, after checking every line of a text file.

    Of trees it logs what is unusual, see `treebank_checks.count_pairs`; of several
    files, that their names do not belong together.

    Raises:
        FileNotFoundError, ValueError: The text cannot be used, see `pairs`.
    """
    if data.source.startswith(tfds.PREFIX):
        return tfds.count(data, split)
    if data.source == "treebank":
        return treebank_checks.count_pairs(_local(data), split)
    if warning := describe_unlike_shards(data, split):
        logger.warning(warning)
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
    if data.source.startswith(tfds.PREFIX) and total > size:
        yield from tfds.pairs(data, split, indices=list(_spread_indices(size, total)))
        return
    yield from spread(pairs(data, split, seed=seed), size=size, total=total)


def spread(pairs: Pairs, *, size: int, total: int) -> Pairs:
    """Yield `size` of `total` pairs, spread evenly; all if there are no more."""
    if total <= size:
        yield from pairs
        return
    indices = _spread_indices(size, total)
    next_index = next(indices, total)
    for index, pair in enumerate(pairs):
        if index == next_index:
            yield pair
            next_index = next(indices, total)


def _spread_indices(size: int, total: int) -> Iterator[int]:
    return (-(-number * total // size) for number in range(size))


def pairs(data: config.DataConfig, split: str, *, seed: int) -> Pairs:
    """Yield the (source, target) lines of a split, in the order of the text.

    Raises:
        FileNotFoundError: A text file is missing.
        ValueError: The sides differ in length; the message has both counts. Or a line
            is not UTF-8, or lacks the tag of one of several target languages; the
            message has the file and the line. Or as `columns.read`.
    """
    if data.source == "treebank":
        return treebank_pairs.read_pairs(_local(data), split)
    if data.source == "text":
        return read_sides(data, *_split_sides(data, split))
    if data.source.startswith(tfds.PREFIX):
        return tfds.pairs(data, split, indices=None)
    return iter(_generated(data, seed)[split])


def _split_sides(data: config.DataConfig, split: str) -> tuple[Side, Side]:
    """Return both sides of a split of text files; see `find_sides`."""
    names = {
        key: str(getattr(data, key)) for key in (f"{split}_source", f"{split}_target")
    }
    return find_sides(data, names)


@dataclasses.dataclass(frozen=True)
class Location:
    """The files and the line of a pair, in a text of several files.

    Attributes:
        source: The file of its source.
        target: That of its target.
        line: The number of its line, or record, in them, from 1.
    """

    source: pathlib.Path
    target: pathlib.Path
    line: int


def locate(
    data: config.DataConfig, split: str, numbers: Collection[int]
) -> dict[int, Location]:
    """Return where pairs of a split stand, if each side has several files.

    The files are read up to the last of these pairs.

    Args:
        data: Where the text is.
        split: The part of it.
        numbers: The numbers of the pairs in the text, from 1.

    Returns:
        The locations by the numbers; empty if each side has one file, or none.
    """
    locations: dict[int, Location] = {}
    if data.source != "text" or not numbers:
        return locations
    source, target = _split_sides(data, split)
    if len(source.shards) == 1:
        return locations
    remaining = sorted(set(numbers), reverse=True)
    start = 0
    for shards in zip(source.shards, target.shards, strict=True):
        end = start + sum(1 for _ in columns.read_shard(shards[0], source.column))
        while remaining and remaining[-1] <= end:
            number = remaining.pop()
            locations[number] = Location(*shards, number - start)
        if not remaining:
            break
        start = end
    return locations


def describe_unlike_shards(data: config.DataConfig, split: str) -> str:
    """Return which files are paired although their names differ; "" if none are.

    Raises:
        FileNotFoundError, ValueError: See `find_sides`.
    """
    if data.source != "text":
        return ""
    return columns.describe_unlike_names(*_split_sides(data, split))


def find_sides(data: config.DataConfig, names: Mapping[str, str]) -> tuple[Side, Side]:
    """Return the files of both sides of a text.

    Args:
        data: Where the text is.
        names: FILES[#COLUMN] of the source and of the target, by their settings.

    Raises:
        FileNotFoundError: A file is missing, or its store cannot be read.
        ValueError: A name lacks its column, or the sides differ in their number of
            files.
    """
    directory = _pull(
        data, [part for name in names.values() for part in columns.patterns(name)]
    )
    sides = []
    for key, name in names.items():
        if columns.is_standard_input(name):
            raise FileNotFoundError(
                f"config.data.{key}={name}: `vaswani prepare` alone reads standard "
                "input, once; prepare the data with it first"
            )
        try:
            sides.append(columns.find(name, directory))
        except FileNotFoundError as error:
            advice = f"name it with --config.data.{key}=NAME"
            if (split := key.partition("_")[0]) in ("valid", "test"):
                advice += (
                    f", or do without: --config.data.{split}_source= "
                    f"--config.data.{split}_target="
                )
            raise FileNotFoundError(
                f"config.data.{key}: {error} (config.data.text_directory is "
                f"{data.text_directory!r}); {advice}"
            ) from None
        except ValueError as error:
            raise ValueError(f"config.data.{key}: {error}") from None
    source, target = sides
    if len(source.shards) != len(target.shards):
        raise ValueError(
            f"the two sides must have the same number of files: {source.name} has "
            f"{len(source.shards)}, {target.name} has {len(target.shards)} "
            f"(config.data.text_directory is {data.text_directory!r})"
        )
    return source, target


def read_sides(data: config.DataConfig, source: Side, target: Side) -> Pairs:
    """Yield the pairs of a text, in its order; see `pairs`."""
    has_tags = bool(languages.locales_by_tag(data))
    for shards in zip(source.shards, target.shards, strict=True):
        text = _zip_shards(source, target, shards)
        yield from (_check_tags(text, data, source=shards[0]) if has_tags else text)


def _local(data: config.DataConfig) -> config.DataConfig:
    """Return the settings with a directory of text on this machine."""
    # Pull by pattern: without one, a folder of texts named `data` counts as prepared
    # data.
    directory = _pull(data, ["**/*"])
    return dataclasses.replace(data, text_directory=str(directory))


def _pull(data: config.DataConfig, file_names: Sequence[str]) -> pathlib.Path:
    """Return a directory of text on this machine, with the named files.

    Raises:
        FileNotFoundError: Its store is empty or out of reach: prepared data serves
            without the text, as where a file was deleted.
    """
    try:
        return remote.open_directory(data.text_directory).pull(file_names=file_names)
    except remote.RemoteError as error:
        raise FileNotFoundError(
            f"config.data.text_directory={data.text_directory}: {error}"
        ) from error


def text_record(
    data: config.DataConfig, split: str, *, seed: int, previous: Mapping[str, Any]
) -> dict[str, Any]:
    """Return what identifies the text of a split: its files or its generator.

    Args:
        data: Where the text is.
        split: The part of it.
        seed: Seed of generated text.
        previous: An earlier record, or an empty one. A file that has its path,
            size and modification time is not read again.
    """
    if data.source.startswith(tfds.PREFIX):
        return tfds.record(data, split)
    if data.source == "treebank":
        return treebank_pairs.describe_files(_local(data), split, previous=previous)
    if data.source != "text":
        version = cldr_version() if data.source == "cldr" else "1"
        return {"generator": data.source, "version": version, "seed": seed}
    return describe_sides(*_split_sides(data, split), previous=previous)


def describe_sides(
    source: Side, target: Side, *, previous: Mapping[str, Any]
) -> dict[str, Any]:
    """Return what identifies the text of two sides; see `text_record`."""
    # Both may be columns of one file.
    descriptions: dict[str, Mapping[str, Any]] = {
        file["path"]: file
        for entry in previous.values()
        if isinstance(entry, Mapping)  # The record of generated text has numbers.
        for file in entry.get("files", [])
    }
    record = {}
    for side, name in ((source, "source"), (target, "target")):
        if not side.column and len(side.shards) == 1:
            [path] = side.shards
            record[name] = files.describe_file(path, previous.get(name, {}))
            continue
        for path in side.files:
            previous_description = descriptions.get(str(path), {})
            descriptions[str(path)] = files.describe_file(path, previous_description)
        entries = [descriptions[str(path)] for path in side.files]
        digests = [side.column, *(entry["sha256"] for entry in entries)]
        record[name] = {
            "column": side.column,
            "files": entries,
            "sha256": hashlib.sha256(json.dumps(digests).encode()).hexdigest(),
        }
    return record


def content_identity(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return a record of `text_record` without what changes when a file is copied.

    Of trees, the files of each setting count in their order, by whatever path.
    """
    identity: dict[str, Any] = {}
    for key, entry in record.items():
        digest = entry.get("sha256") if isinstance(entry, dict) else entry
        setting = treebank_pairs.setting_of(key)
        if setting is None:
            identity[key] = digest
        else:
            identity[setting] = (*identity.get(setting, ()), digest)
    return identity


def _zip_shards(
    source: Side, target: Side, shards: tuple[pathlib.Path, pathlib.Path]
) -> Pairs:
    """Yield the pairs of one file of each side.

    Raises:
        ValueError: They differ in length, or as `columns.read`.
    """
    if shards[0] == shards[1]:
        names = (source.column, target.column)
        for source_line, target_line in columns.read_columns(shards[0], names):
            yield source_line, target_line
        return
    num_pairs = 0
    sides = itertools.zip_longest(
        columns.read_shard(shards[0], source.column),
        columns.read_shard(shards[1], target.column),
    )
    for source_line, target_line in sides:
        if source_line is None or target_line is None:
            shorter, longer = num_pairs, num_pairs + 1 + sum(1 for _ in sides)
            counts = (shorter, longer) if source_line is None else (longer, shorter)
            raise ValueError(
                f"the two sides must have the same number of lines: {shards[0]} has "
                f"{counts[0]:,}, {shards[1]} has {counts[1]:,}"
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
