"""Check any text files: their texts, or an error with the place in them or the rule.

`tests.bad_input` and its callers bring the files: shards, columns of every kind,
compressed, damaged, from standard input, as corpora.
"""

import gzip
import io
import json
import lzma
import pathlib
import re
import shutil
import sys
from collections.abc import Mapping, Sequence
from unittest import mock

import numpy as np
import pyarrow
import pyarrow.parquet

from tests import settings
from vaswani_jax.data import columns, prepared, sources, standard_input

EXPECTED = (ValueError, OSError)
# What an error about a text says beside its name: the place, or the rule.
PLACE = re.compile(r", (after )?(line|record) [0-9]+: [^ ]")
RULE = re.compile(
    "must be|must have|not a complete|no column|name a column|a name is FILES|no file|"
    "has no line|standard input has lines"
)
# Columns of `table_bytes` by kind, and others.
TABLE_COLUMNS = {
    "tsv": ("1", "2"),
    **dict.fromkeys(("jsonl", "parquet", "arrow", "saved"), ("a.b", "d")),
}
COLUMNS = ["1", "2", "0", "a", "a.b", "c", "c.", ".", "", "#", "\0"]
VOCABULARY = {
    "data.user_symbols": "<one>,<two>",
    "data.byte_fallback": True,
    "data.vocab_size": 280,
}


class TextChecks:
    """A directory for files of text, with a vocabulary for two corpora."""

    def __init__(self, directory: pathlib.Path) -> None:
        self.directory = directory
        directory.mkdir(exist_ok=True)
        data = settings.small_settings(**VOCABULARY).data
        settings.learn_vocabulary(["a b c d e", "one two"] * 9, data).save(directory)

    def columns(self, name: str, shards: Sequence[bytes], *, column: str) -> None:
        """Files with columns, to the texts of one after the other.

        Args:
            name: The end of their names; .saved is a directory, with all shards.
            shards: Their contents.
            column: The column.
        """
        directory = self.directory / "columns"
        shutil.rmtree(directory, ignore_errors=True)
        names = [f"{number}.{name}" for number in range(len(shards))]
        pattern = f"*.{name}"
        if name.endswith(".saved"):
            names = [f"{name}/{number}.arrow" for number in range(len(shards))]
            state = {"_data_files": [{"filename": file[-7:]} for file in names]}
            self._file(f"columns/{name}/state.json", json.dumps(state).encode())
            pattern = name
        for file, data in zip(names, shards, strict=True):
            self._file(f"columns/{file}", data)
        texts: list[str] = []
        try:
            for text in columns.read(f"{pattern}#{column}", directory):
                assert "\n" not in text
                text.encode()
                texts.append(text)
        except EXPECTED as error:
            check_message(error, name)
            return
        separately = [list(columns.read(f"{n}#{column}", directory)) for n in names]
        assert texts == [text for each in separately for text in each]

    def standard_input(self, data: bytes, *, columns_of_sides: Sequence[str]) -> None:
        """Bytes of a pipe, to as many pairs as a file of them has.

        Args:
            data: What the pipe gives.
            columns_of_sides: Those of the source and the target; "" for lines.
        """
        names = [f"-#{column}" if column else "-" for column in columns_of_sides]
        text = settings.small_settings(
            **{
                "data.source": "text",
                "data.text_directory": str(self.directory),
                "data.train_source": names[0],
                "data.train_target": names[1],
            }
        ).data
        workplace = self.directory / "piped" / "data"
        try:
            with (
                mock.patch.object(sys, "stdin", io.TextIOWrapper(io.BytesIO(data))),
                standard_input.copy_to_file(text, workplace) as copied,
            ):
                pairs = list(sources.pairs(copied, "train", seed=1))
        except EXPECTED as error:
            check_message(error, "standard input", *names)
            assert "standard_input" not in str(error), error
        else:
            [column, _] = columns_of_sides
            kind = (".tsv" if column.isdecimal() else ".jsonl") if column else ""
            file = self._file(f"piped/copy{kind}", data)
            for side, name in enumerate(names):
                lines = columns.read(f"{file}{name[1:]}", self.directory)
                assert [pair[side] for pair in pairs] == list(lines)
        assert not workplace.parent.exists() or not any(
            entry.is_dir() for entry in workplace.parent.iterdir()
        )

    def mix(
        self, corpora: Mapping[str, Sequence[bytes]], *, ending: str, stages: str
    ) -> None:
        """Corpora of shards with two columns, to token files in their order.

        Args:
            corpora: The shards of each, by its name: "one" or "two".
            ending: The kind of the shards: tsv, jsonl, parquet or arrow.
            stages: Value of data.stages.
        """
        directory = self.directory / "mix"
        shutil.rmtree(directory, ignore_errors=True)
        for name, shards in corpora.items():
            for number, data in enumerate(shards):
                self._file(f"mix/{name}.{number}.{ending}", data)
        sides = [f"#{column}" for column in TABLE_COLUMNS[ending]]
        tables = [
            {
                "name": name,
                "source": f"{name}.*.{ending}{sides[0]}",
                "target": f"{name}.*.{ending}{sides[1]}",
                "tag": f"<{name}>",
            }
            for name in corpora
        ]
        text_settings = settings.small_settings(
            **{
                "data.source": "text",
                "data.text_directory": str(directory),
                "data.vocabulary": str(self.directory / "vocabulary.model"),
                "data.corpora": tables,
                "data.stages": stages,
                **VOCABULARY,
                **{f"data.valid_{side}": "" for side in ("source", "target")},
            }
        )
        try:
            data = prepared.open_or_prepare(
                text_settings, directory / "data", rebuild=True
            )
        except EXPECTED as error:
            message = str(error)
            assert any(f"corpus {name!r}" in message for name in corpora), message
            if f".{ending}" in message:
                check_message(error, *corpora)
            return
        sizes = data.manifest.corpus_sizes
        for table in tables:
            num_read = sum(1 for _ in columns.read(table["source"], directory))
            counts = data.manifest.corpora[table["name"]]
            assert sum(counts.values()) == num_read
        source = data.token_pairs("train").source
        rows, _ = source.rows(np.arange(len(source)), length=3)
        tags = [f"<{name}>" for name in corpora for _ in range(sizes[name])]
        for ids, tag in zip(rows, tags, strict=True):
            assert data.vocabulary.decode(ids.tolist()).startswith(tag)

    def name(self, name: str) -> None:
        """A name of text, to lines, or to an error that has the name."""
        try:
            side = columns.find(name, self.directory)
        except EXPECTED as error:
            words = (name, repr(name), self.directory.name)
            assert any(word in str(error) for word in words), error
        else:
            assert side.shards

    def _file(self, name: str, data: bytes) -> pathlib.Path:
        path = self.directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        return path


def check_message(error: BaseException, *names: str) -> None:
    """Check that an error names the text, and the place in it or the rule."""
    message = str(error)
    assert any(name in message for name in names), message
    assert PLACE.search(message) or RULE.search(message), message
    assert message.isprintable(), message


def compress_zstd(data: bytes) -> bytes:
    """A file of zstd."""
    return bytes(pyarrow.compress(data, codec="zstd", asbytes=True))


COMPRESSORS = {".gz": gzip.compress, ".xz": lzma.compress, ".zst": compress_zstd}


def table_bytes(texts: Sequence[str], kind: str) -> bytes:
    """A file of a kind with the texts in the columns of `TABLE_COLUMNS`."""
    if kind == "tsv":
        return "".join(f"{text}\t{text[:9]}\n" for text in texts).encode()
    records = [
        {"a": {"b": text}, "c": len(text), "1": text, "d": text} for text in texts
    ]
    if kind == "jsonl":
        return "".join(f"{json.dumps(record)}\n" for record in records).encode()
    table = pyarrow.Table.from_pylist(records or [{"a": {"b": "x"}, "d": "x"}])
    stream = io.BytesIO()
    if kind == "parquet":
        pyarrow.parquet.write_table(table, stream, compression="snappy")
    else:
        with pyarrow.ipc.new_stream(stream, table.schema) as writer:
            writer.write_table(table)
    return stream.getvalue()
