"""Read text from Parquet files, and from what Hugging Face's datasets saved.

`Dataset.save_to_disk` writes streams of Arrow: pyarrow reads them without that library.
"""

import contextlib
import dataclasses
import os
import pathlib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from vaswani_jax.data import json_objects

if TYPE_CHECKING:
    import pyarrow

# The file that `Dataset.save_to_disk` writes with the data.
DATASET_STATE = "state.json"
# The end mark of a stream of Arrow. Without it, the last rows may be missing.
END_OF_STREAM = b"\xff\xff\xff\xff\0\0\0\0"
# The first bytes of Arrow's other format, which is no stream.
FILE_MARK = b"ARROW1"
BATCH_ROWS = 1024
BUFFER_BYTES = 1 << 18


def one_line(text: str) -> str:
    """Return a text of a record as a line: its line breaks become spaces.

    >>> one_line("one\\r\\ntwo")
    'one two'
    """
    if "\n" in text:
        text = text.replace("\r\n", " ").replace("\n", " ")
    return text.removesuffix("\r")


def quote(name: str) -> str:
    """Return a name as errors print it: with escapes if it breaks or hides a line.

    >>> quote("en"), quote("e\\n")
    ('en', "'e\\\\n'")
    """
    return name if name.isprintable() else repr(name)


def is_dataset(directory: pathlib.Path) -> bool:
    """Return whether a directory holds one split that datasets saved."""
    return (directory / DATASET_STATE).is_file()


def suggest_names(path: pathlib.Path, name: str) -> str:
    """Return a hint that lists the names to use instead of `name`, or ""."""
    splits = sorted(file.parent.name for file in path.glob(f"*/{DATASET_STATE}"))
    if splits:
        choices = ", ".join(f"{name.rstrip('/')}/{split}" for split in splits)
        return f": it is a directory of splits, name one: {choices}"
    if path.is_dir():
        return ": it is a directory, and Hugging Face's datasets did not save it"
    return ""


def describe_columns(path: pathlib.Path) -> str:
    """Return the columns of a file or of a saved data set.

    Raises:
        ValueError: It is damaged.
    """
    for shard in shards(path):
        with _naming(shard):
            return _describe(_schema(shard))
    return "no file"


def check_column(path: pathlib.Path, column: str) -> None:
    """Refuse a column that the first file does not have, or that is no text.

    Raises:
        ValueError: The message has the file, and the columns that it has.
    """
    for shard in shards(path)[:1]:
        with _naming(shard):
            _find_column(_schema(shard), column, path=shard)


def read(path: pathlib.Path, column: str) -> Iterator[str]:
    """Yield the texts of a column, few at a time in memory; see `columns.read`.

    Args:
        path: A Parquet file, a stream of Arrow, or a directory that datasets saved.
        column: The name of the column; of a field of a column, as translation.en.

    Raises:
        ValueError: A file is damaged, has no such column, or has a record that is no
            text.
    """
    for shard in shards(path):
        yield from _read_shard(shard, column)


def shards(path: pathlib.Path) -> list[pathlib.Path]:
    """Return the files of a saved data set, in their order; of a file, itself.

    Raises:
        ValueError: The data set is damaged, or has indices instead of all its rows.
    """
    if not path.is_dir():
        return [path]
    state_file = path / DATASET_STATE
    state = json_objects.read(state_file)
    try:
        names = [entry["filename"] for entry in state["_data_files"]]
        is_named = all(isinstance(name, str) for name in names)
    except (TypeError, KeyError):
        is_named = False
    if not is_named:
        raise ValueError(
            f"{state_file}: _data_files must be a list of objects with a filename, as "
            "Dataset.save_to_disk writes it"
        )
    if state.get("_indices_files") or state.get("_indices_data_files"):
        raise ValueError(
            f"{path} selects rows by an index: save it again, with "
            "dataset.flatten_indices().save_to_disk(...)"
        )
    if any(pathlib.PurePath(name).name != name for name in names):
        raise ValueError(
            f"{state_file}: _data_files must be names of files in this directory, got "
            f"{', '.join(names)[:80]}"
        )
    return [path / name for name in names]


def _read_shard(path: pathlib.Path, column: str) -> Iterator[str]:
    with _naming(path) as progress:
        names = _find_column(_schema(path), column, path=path)
        for batch in _batches(path, names):
            array = _select(batch, names)
            first = progress.num_records + 1
            yield from _texts(array, f"{path}, record", column, first=first)
            progress.num_records += len(array)


@dataclasses.dataclass
class _Progress:
    """The part of a file that is read.

    Attributes:
        num_records: The number of records that are read.
    """

    num_records: int = 0


@contextlib.contextmanager
def _naming(path: pathlib.Path) -> Iterator[_Progress]:
    """Name in the errors of pyarrow the file, and how far it could be read.

    Raises:
        ValueError: The file is damaged.
    """
    import pyarrow

    kind = "Parquet file" if path.suffix == ".parquet" else "stream of Arrow"
    progress = _Progress()
    try:
        yield progress
    except (pyarrow.ArrowException, UnicodeDecodeError, OSError) as error:
        # The errors of the disk have a number; those of Parquet's decoder have none.
        if isinstance(error, OSError) and error.errno is not None:
            raise
        reason = quote(" ".join(str(error).split()))
        number = progress.num_records
        place = f"{path}, after record {number}" if number else f"{path}"
        raise ValueError(f"{place}: not a complete {kind} ({reason})") from None


def _schema(path: pathlib.Path) -> "pyarrow.Schema":
    """Return the columns of a file and their types.

    Raises:
        ValueError: It is an Arrow file, not a stream of Arrow.
    """
    import pyarrow
    import pyarrow.parquet

    if path.suffix == ".parquet":
        return pyarrow.parquet.read_schema(path)
    with pyarrow.OSFile(str(path)) as stream:
        if stream.read(len(FILE_MARK)) == FILE_MARK:
            raise ValueError(
                f"{path} must be a stream of Arrow, got an Arrow file (Feather); write "
                "it with polars' write_ipc_stream, with pyarrow.ipc.new_stream, or as "
                "Parquet"
            )
        stream.seek(0)
        return pyarrow.ipc.open_stream(stream).schema


def _batches(
    path: pathlib.Path, names: Sequence[str]
) -> Iterator["pyarrow.RecordBatch"]:
    """Yield the rows of a file, with one column alone, a few at a time.

    Args:
        path: The file.
        names: The name of the column, and those of the fields in it.
    """
    import pyarrow
    import pyarrow.parquet

    if path.suffix == ".parquet":
        # Without these options, the whole column of a row group is in memory.
        with pyarrow.parquet.ParquetFile(
            path, buffer_size=BUFFER_BYTES, pre_buffer=False
        ) as file:
            yield from file.iter_batches(BATCH_ROWS, columns=[".".join(names)])
        return
    with open(path, "rb") as file:
        file.seek(-min(len(END_OF_STREAM), path.stat().st_size), os.SEEK_END)
        if file.read() != END_OF_STREAM:
            raise pyarrow.ArrowInvalid("it has no end mark")
    index = _schema(path).get_field_index(names[0])
    options = pyarrow.ipc.IpcReadOptions(included_fields=[index])
    with pyarrow.OSFile(str(path)) as stream:
        yield from pyarrow.ipc.open_stream(stream, options=options)


def _find_column(
    schema: "pyarrow.Schema", column: str, *, path: pathlib.Path
) -> list[str]:
    """Return the name of a column and those of the fields in it.

    Raises:
        ValueError: There is no such column, or it is no text.
    """
    import pyarrow

    names: list[str] = []
    kind: Any = pyarrow.struct(list(schema))
    remainder = column
    while remainder:
        # A name may have a dot.
        name, _, remainder = (
            (remainder, "", "") if _has(kind, remainder) else remainder.partition(".")
        )
        if not _has(kind, name):
            raise ValueError(f"{path}: no column {column}; it has {_describe(schema)}")
        names.append(name)
        kind = kind.field(name).type
    values = kind.value_type if pyarrow.types.is_dictionary(kind) else kind
    if values not in (pyarrow.string(), pyarrow.large_string(), pyarrow.string_view()):
        raise ValueError(f"{path}: column {column} must be of texts, and is of {kind}")
    return names


def _has(kind: "pyarrow.DataType", name: str) -> bool:
    """Return whether a type is a struct with exactly one field of a name."""
    import pyarrow

    return pyarrow.types.is_struct(kind) and kind.get_field_index(name) >= 0


def _describe(schema: "pyarrow.Schema") -> str:
    """Return the names of columns, and of the fields in them."""
    import pyarrow

    names: list[str] = []
    for field in schema:
        is_struct = pyarrow.types.is_struct(field.type) and field.type.num_fields
        fields = list(field.type) if is_struct else []
        names += [f"{field.name}.{inner.name}" for inner in fields] or [field.name]
    return ", ".join(map(quote, names)) or "no column"


def _select(batch: "pyarrow.RecordBatch", names: Sequence[str]) -> "pyarrow.Array":
    import pyarrow.compute

    array = batch.column(names[0])
    # Without this check, damaged offsets are read as addresses.
    array.validate()
    for name in names[1:]:
        array = pyarrow.compute.struct_field(array, name)
    if pyarrow.types.is_dictionary(array.type):
        array.validate(full=True)
        array = array.dictionary_decode()
    return array


def _texts(
    array: "pyarrow.Array", place: str, column: str, *, first: int
) -> Iterator[str]:
    """Yield texts, each on one line.

    Args:
        array: The texts.
        place: The file, for errors.
        column: The name of the column, for errors.
        first: The number of the first record.

    Raises:
        ValueError: A record has no text, or one that is not UTF-8.
    """
    import pyarrow

    is_large = array.type == pyarrow.large_string()
    values = array.cast(pyarrow.large_binary() if is_large else pyarrow.binary())
    values.validate(full=True)
    for number, value in enumerate(values, start=first):
        content = value.as_py()
        if content is None:
            raise ValueError(f"{place} {number}: {column} must be a string, got null")
        try:
            text = content.decode()
        except UnicodeDecodeError as error:
            raise ValueError(
                f"{place} {number}: {column} is not UTF-8 (byte "
                f"{content[error.start]:#04x} at byte {error.start + 1})"
            ) from None
        yield one_line(text)
