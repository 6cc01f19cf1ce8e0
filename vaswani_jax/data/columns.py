"""Read one side of a text, named FILES[#COLUMN].

FILES is a file, a glob of shards, or a directory that Hugging Face's datasets saved. A
column is a number (TSV), or the path of a key (JSON lines, Parquet, datasets).
"""

import dataclasses
import glob
import itertools
import os
import pathlib
import re
from collections.abc import Iterator, Sequence
from typing import Any

from vaswani_jax.data import arrow_files, json_objects, text_files

JSON_ENDINGS = (".jsonl", ".ndjson", ".json")
COLUMN_NUMBER = re.compile("[1-9][0-9]*")
WILDCARD = re.compile(r"[*?[]")


@dataclasses.dataclass(frozen=True)
class Side:
    """The files of one side of a text.

    Attributes:
        name: The name in the settings, FILES[#COLUMN].
        column: The column; "" for whole lines.
        shards: The files, or the directory that datasets saved, in their order.
    """

    name: str
    column: str
    shards: tuple[pathlib.Path, ...]

    @property
    def files(self) -> list[pathlib.Path]:
        """The files, among them those of a directory that datasets saved.

        Raises:
            ValueError: The directory is damaged.
        """
        return [file for shard in self.shards for file in arrow_files.shards(shard)]

    def read(self) -> Iterator[str]:
        """Yield all texts, each without line feeds; see `read`."""
        for shard in self.shards:
            yield from read_shard(shard, self.column)


def read(name: str, directory: pathlib.Path) -> Iterator[str]:
    """Yield the texts of one side, without line feeds; few are in memory at a time.

    Args:
        name: FILES[#COLUMN], as `train.en.gz`, `shards/*.en.zst`, `news.tsv#2`,
            `news.jsonl#translation.en`, `news.parquet#en`, `wmt/train#translation.en`.
        directory: Where relative names begin.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: A file is damaged, has no such column, or has a line or record that
            is no text. The message has the file, the line or record, and the rule.
    """
    return find(name, directory).read()


def split_name(name: str) -> tuple[str, str]:
    """Return FILES and COLUMN of a name; the column is "" if it has none.

    >>> split_name("news.jsonl#translation.en"), split_name("train.en")
    (('news.jsonl', 'translation.en'), ('train.en', ''))

    Raises:
        ValueError: Nothing stands before or after the #.
    """
    if "#" not in name:
        return name, ""
    files, _, column = name.rpartition("#")
    if not files or not column:
        raise ValueError(f"{name}: a name is FILES or FILES#COLUMN, such as news.tsv#2")
    return files, column


def patterns(name: str) -> tuple[str, ...]:
    """Return the names, globs or directories that a name may mean.

    >>> patterns("shards/*.jsonl#en")
    ('shards/*.jsonl#en', 'shards/*.jsonl')
    """
    return tuple(dict.fromkeys((name, name.rpartition("#")[0] or name)))


def find_one_file(name: str) -> pathlib.Path | None:
    """Return the file that FILE or FILE#COLUMN names; None if there is none."""
    paths = map(pathlib.Path, patterns(name))
    return next((path for path in paths if path.is_file()), None)


def is_standard_input(name: str) -> bool:
    """Return whether a name is -, or a column of it.

    >>> is_standard_input("-#2"), is_standard_input("-a#2")
    (True, False)
    """
    return name == "-" or name.startswith("-#")


def find(name: str, directory: pathlib.Path) -> Side:
    """Return the files that a name means; see `read`.

    Raises:
        FileNotFoundError: There is no such file, or a shard is a link to a missing one.
        ValueError: The file has no such column, or needs the name of one, or the name
            is that of standard input.
    """
    if "\0" in name:
        raise FileNotFoundError(f"no file {name!r}")
    if (directory / name).is_file():  # The name of a file may have a # or a *.
        return _check_columns(Side(name, "", (directory / name,)))
    if is_standard_input(name):
        raise ValueError(f"{name}: standard input can be read once; write it to a file")
    file_names, column = split_name(name)
    path = directory / file_names
    if path.is_dir() and arrow_files.is_dataset(path):
        return _check_columns(Side(name, column, (path,)))
    if path.is_file():
        return _check_columns(Side(name, column, (path,)))
    shards: tuple[pathlib.Path, ...] = ()
    if WILDCARD.search(file_names):
        pattern = os.path.join(glob.escape(str(directory)), file_names)
        matches = map(pathlib.Path, glob.glob(pattern, recursive=True))
        paths = sorted(matches, key=_natural_order)
        text_files.check_links(paths)
        shards = tuple(filter(pathlib.Path.is_file, paths))
    if not shards:
        hint = arrow_files.suggest_names(path, file_names)
        raise FileNotFoundError(f"no file {path}{hint}")
    return _check_columns(Side(name, column, shards))


def describe_unlike_names(source: Side, target: Side) -> str:
    """Return which shards are paired although their names differ; "" if none are.

    Of the names of a side, only the part in which they differ counts, numbers by value:
    s5.en goes with de/s05.de. A single file has no such part.
    """
    names = [_varying_parts(list(map(str, s.shards))) for s in (source, target)]
    pairs = zip(*names, strict=True)
    unlike = [number for number, pair in enumerate(pairs) if len(set(pair)) > 1]
    if not unlike or source.shards == target.shards:
        return ""
    first, second = (side.shards[unlike[0]] for side in (source, target))
    return (
        f"files are paired in their order, but {len(unlike):,} of "
        f"{len(source.shards):,} pairs have unlike names, such as {first} with "
        f"{second}: one may be missing or superfluous"
    )


def _varying_parts(names: Sequence[str]) -> list[str]:
    """Return the part of each name in which all differ; it cuts no number in two.

    >>> _varying_parts(["s10.en", "s011.en"])
    ['10', '11']
    """
    if len(names) < 2:
        return [""] * len(names)
    begin = _common_beginning(names).rstrip("0123456789")
    reversed_end = _common_beginning([name[::-1] for name in names])
    end_length = len(reversed_end.rstrip("0123456789"))
    return [
        re.sub("[0-9]+", lambda digits: str(int(digits[0])), name)
        for name in (name[len(begin) : len(name) - end_length] for name in names)
    ]


def _common_beginning(names: Sequence[str]) -> str:
    characters = zip(*names, strict=False)
    common = itertools.takewhile(lambda column: len(set(column)) == 1, characters)
    return "".join(column[0] for column in common)


def _natural_order(path: pathlib.Path) -> tuple[list[str | int], str]:
    """Return a key that sorts part2 before part10."""
    parts = re.split(r"(\d+)", str(path))
    return [int(part) if part.isdecimal() else part for part in parts], str(path)


def _check_columns(side: Side) -> Side:
    """Refuse a column that the kind of a file cannot have, or a missing one.

    Only the first of several files is searched for the column.
    """
    for number, shard in enumerate(side.shards):
        kind = _kind(shard)
        if kind in ("text", "tsv"):
            if side.column and not COLUMN_NUMBER.fullmatch(side.column):
                raise ValueError(
                    f"{shard}: the column of tab-separated lines must be a number from "
                    f"1, such as {shard.name}#2, got {side.column!r}"
                )
        elif kind == "json":
            continue
        elif not side.column:
            raise ValueError(
                f"{shard}: name a column, such as {shard.name}#translation.en; it has "
                f"{arrow_files.describe_columns(shard)}"
            )
        elif number == 0:
            arrow_files.check_column(shard, side.column)
    return side


def _kind(path: pathlib.Path) -> str:
    """Return the kind of a file: text, tsv, json, parquet, arrow, dataset."""
    if path.is_dir():
        return "dataset"
    if path.suffix in (".parquet", ".arrow"):
        return path.suffix[1:]
    uncompressed = (
        path.with_suffix("") if path.suffix in text_files.COMPRESSIONS else path
    )
    if uncompressed.suffix in JSON_ENDINGS:
        return "json"
    return "tsv" if uncompressed.suffix == ".tsv" else "text"


def read_shard(path: pathlib.Path, column: str) -> Iterator[str]:
    """Yield the texts of one file of `Side.shards`; see `read`.

    Raises:
        ValueError: As `read`.
    """
    kind = _kind(path)
    if kind in ("parquet", "arrow", "dataset"):
        return arrow_files.read(path, column)
    if column:
        return (text for [text] in read_columns(path, [column]))
    lines = text_files.read_lines(path)
    return lines if kind == "text" else _read_whole_lines(lines, path, kind=kind)


def read_columns(path: pathlib.Path, names: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Yield the texts of several columns of one file, which is read once if possible.

    Raises:
        ValueError: As `read`.
    """
    kind = _kind(path)
    if kind not in ("parquet", "arrow", "dataset") and all(names):
        if kind == "json":
            return _read_json(path, names)
        return _read_tsv(path, list(map(int, names)))
    return zip(*(read_shard(path, name) for name in names), strict=True)


def _read_whole_lines(
    lines: Iterator[str], path: pathlib.Path, *, kind: str
) -> Iterator[str]:
    """Yield whole lines of a file whose name promises columns.

    Raises:
        ValueError: A line has columns, or is a JSON object.
    """
    for number, line in enumerate(lines, start=1):
        if kind == "tsv" and "\t" in line:
            raise ValueError(
                f"{path}, line {number}: tabs separate columns; name one, such as "
                f"{path.name}#1"
            )
        if kind == "json" and line.startswith("{"):
            raise ValueError(
                f"{path}, line {number}: a JSON object; name one of its keys, such as "
                f"{path.name}#translation.en"
            )
        yield line


def _read_tsv(path: pathlib.Path, columns: Sequence[int]) -> Iterator[tuple[str, ...]]:
    num_columns = 0
    for number, line in enumerate(text_files.read_lines(path), start=1):
        fields = line.split("\t")
        if number == 1:
            # Each of the files that `paste` joins may begin with a byte-order mark.
            fields = [field.removeprefix("\ufeff") for field in fields]
        num_columns = num_columns or len(fields)
        if max(columns) > num_columns:
            raise ValueError(
                f"{path}, line {number}: no column {max(columns)}, the line has "
                f"{num_columns} (tabs separate columns)"
            )
        if len(fields) != num_columns:
            raise ValueError(
                f"{path}, line {number}: the number of columns must be that of line "
                f"1, {num_columns}, got {len(fields)} (tabs separate columns)"
            )
        # `paste` leaves the carriage returns of CRLF files within the line.
        yield tuple([fields[column - 1].removesuffix("\r") for column in columns])


def _read_json(path: pathlib.Path, names: Sequence[str]) -> Iterator[tuple[str, ...]]:
    for number, line in enumerate(text_files.read_lines(path), start=1):
        try:
            record = json_objects.parse(line)
            texts = [look_up(record, name) for name in names]
            if "\\u" in line:
                _check_characters(texts, names)
        except ValueError as error:
            raise ValueError(f"{path}, line {number}: {error}") from None
        yield tuple([arrow_files.one_line(text) for text in texts])


def _check_characters(texts: Sequence[str], names: Sequence[str]) -> None:
    """Refuse lone surrogates, which JSON can spell but UTF-8 cannot.

    Raises:
        ValueError: The message has the column.
    """
    for text, name in zip(texts, names, strict=True):
        try:
            text.encode()
        except UnicodeEncodeError:
            raise ValueError(
                f"{name} has a lone surrogate, which is not a character"
            ) from None


def look_up(record: dict[str, Any], column: str) -> str:
    """Return the text at a dotted path of a record.

    >>> look_up({"translation": {"en": "one", "de": "eins"}}, "translation.de")
    'eins'

    Raises:
        ValueError: There is no such key, or its value is no text.
    """
    value: Any = record
    remainder = column
    while remainder:
        if not isinstance(value, dict):
            raise ValueError(f"no {column}: the keys are {describe_keys(record)}")
        if remainder in value:  # A key may have a dot.
            value, remainder = value[remainder], ""
            continue
        key, _, remainder = remainder.partition(".")
        if key not in value or not remainder:
            raise ValueError(f"no {column}: the keys are {describe_keys(record)}")
        value = value[key]
    if not isinstance(value, str):
        kind = {dict: "an object", list: "a list", type(None): "null"}.get(
            type(value), repr(value)
        )
        raise ValueError(f"{column} must be a string, got {kind}")
    return value


def describe_keys(record: dict[str, Any], *, limit: int = 8) -> str:
    """Return the paths of a record's values, a few of them.

    >>> describe_keys({"id": 1, "translation": {"en": "one", "de": "eins"}})
    'id, translation.en, translation.de'
    """
    names: list[str] = []
    for key, value in record.items():
        inner = value if isinstance(value, dict) else {}
        names += [f"{key}.{name}" for name in inner] or [key]
    shown_names = ", ".join(map(arrow_files.quote, names[:limit]))
    return shown_names + (", ..." if len(names) > limit else "") if names else "none"
