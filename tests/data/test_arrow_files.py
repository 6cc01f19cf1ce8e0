"""Text of Parquet files and of data sets that Hugging Face's datasets saved."""

import json

import pyarrow
import pyarrow.parquet
import pytest

from vaswani_jax.data import arrow_files

TEXTS = ["one", "zwei Wörter", "", "two", "one"]


def write(path, array):
    """Write a table of one column, "text", as Parquet or as a stream of Arrow."""
    table = pyarrow.table({"text": array})
    if path.suffix == ".parquet":
        pyarrow.parquet.write_table(table, path, row_group_size=2)
    else:
        with (
            pyarrow.OSFile(str(path), "wb") as stream,
            pyarrow.ipc.new_stream(stream, table.schema) as writer,
        ):
            writer.write_table(table, max_chunksize=2)
    return path


@pytest.mark.parametrize("ending", ["parquet", "arrow"])
@pytest.mark.parametrize(
    "kind",
    [
        *(pyarrow.string(), pyarrow.large_string(), pyarrow.string_view()),
        pyarrow.dictionary(pyarrow.int8(), pyarrow.string()),
    ],
    ids=str,
)
def test_every_type_of_text_is_read(tmp_path, ending, kind):
    path = write(tmp_path / f"text.{ending}", pyarrow.array(TEXTS).cast(kind))
    assert list(arrow_files.read(path, "text")) == TEXTS


@pytest.mark.parametrize("ending", ["parquet", "arrow"])
def test_line_breaks_within_a_text_become_spaces(tmp_path, ending):
    path = write(tmp_path / f"text.{ending}", pyarrow.array(["a\nb\r\n\nc", "d\r"]))
    assert list(arrow_files.read(path, "text")) == ["a b  c", "d"]


@pytest.mark.parametrize("ending", ["parquet", "arrow"])
def test_a_record_that_is_no_text_is_named(tmp_path, ending):
    path = write(tmp_path / f"text.{ending}", pyarrow.array([*TEXTS, None]))
    with pytest.raises(ValueError) as caught:
        list(arrow_files.read(path, "text"))
    assert str(caught.value) == f"{path}, record 6: text must be a string, got null"
    latin = pyarrow.array([b"eins", b"zwei", "grün".encode("latin-1")])
    write(path, latin.view(pyarrow.string()))
    with pytest.raises(ValueError) as caught:
        list(arrow_files.read(path, "text"))
    assert str(caught.value) == (
        f"{path}, record 3: text is not UTF-8 (byte 0xfc at byte 3)"
    )


def test_names_with_dots_and_fields_within_fields_are_found(tmp_path):
    path = tmp_path / "text.parquet"
    nested = [{"text": {"en": "deep", "en.US": "dotted"}} for _ in TEXTS]
    table = pyarrow.table({"a.b": TEXTS, "a": nested})
    pyarrow.parquet.write_table(table, path)
    assert list(arrow_files.read(path, "a.b")) == TEXTS
    assert set(arrow_files.read(path, "a.text.en")) == {"deep"}
    assert set(arrow_files.read(path, "a.text.en.US")) == {"dotted"}


@pytest.mark.parametrize("ending", ["parquet", "arrow"])
def test_a_large_file_is_never_whole_in_memory(tmp_path, ending):
    # 20 MB in one row group, the way that some writers leave it.
    texts = [f"{number:>1000}" for number in range(20_000)]
    table = pyarrow.table({"text": texts})
    path = tmp_path / f"text.{ending}"
    if ending == "parquet":
        pyarrow.parquet.write_table(
            table, path, row_group_size=len(texts), compression=None
        )
    else:
        with (
            pyarrow.OSFile(str(path), "wb") as stream,
            pyarrow.ipc.new_stream(stream, table.schema) as writer,
        ):
            writer.write_table(table, max_chunksize=1000)
    del table
    before = pyarrow.total_allocated_bytes()
    largest = 0
    for number, text in enumerate(arrow_files.read(path, "text")):
        assert int(text) == number
        if number % 500 == 0:
            largest = max(largest, pyarrow.total_allocated_bytes() - before)
    assert largest < 8e6


@pytest.mark.parametrize("ending", ["parquet", "arrow"])
def test_a_damaged_file_is_named_wherever_it_is_cut_or_changed(tmp_path, ending):
    path = write(tmp_path / f"text.{ending}", pyarrow.array(TEXTS))
    whole = path.read_bytes()
    for position in range(0, len(whole), 9):
        changed = bytes([whole[position] ^ 0xFF])
        for content in (
            whole[:position],
            whole[:position] + changed + whole[position + 1 :],
        ):
            path.write_bytes(content)
            try:
                texts = list(arrow_files.read(path, "text"))
            except ValueError as error:
                assert str(error).startswith(f"{path}"), error
                assert "\n" not in str(error)
            else:
                # Arrow has no checksums: a changed letter is a letter.
                assert all(isinstance(text, str) for text in texts)


@pytest.mark.parametrize("ending", ["parquet", "arrow"])
def test_a_damaged_file_is_named_with_the_last_record_that_was_read(tmp_path, ending):
    texts = [f"{number:>100}" for number in range(9999)]
    path = tmp_path / f"text.{ending}"
    table = pyarrow.table({"text": texts})
    if ending == "parquet":
        pyarrow.parquet.write_table(
            table, path, row_group_size=2000, use_dictionary=False
        )
    else:
        options = pyarrow.ipc.IpcWriteOptions(compression="zstd")
        with (
            pyarrow.OSFile(str(path), "wb") as stream,
            pyarrow.ipc.new_stream(stream, table.schema, options=options) as writer,
        ):
            writer.write_table(table, max_chunksize=2000)
    content = bytearray(path.read_bytes())
    middle = len(content) // 2
    content[middle : middle + 2000] = bytes(2000)
    path.write_bytes(content)
    read = []
    with pytest.raises(ValueError) as caught:
        read.extend(arrow_files.read(path, "text"))
    assert 0 < len(read) < len(texts) and read == texts[: len(read)]
    message = f"{path}, after record {len(read)}: not a complete "
    assert str(caught.value).startswith(message)


def test_a_stream_that_was_cut_between_its_batches_is_refused(tmp_path):
    path = write(tmp_path / "short.arrow", pyarrow.array(TEXTS[:2]))
    path.write_bytes(path.read_bytes()[:-8])
    with pytest.raises(
        ValueError, match=r"short\.arrow: not a complete stream of Arrow \(it has no"
    ):
        list(arrow_files.read(path, "text"))


@pytest.mark.parametrize(
    ("state", "message"),
    [
        (
            "{\n 1",
            "state.json, line 2: no JSON (Expecting property name enclosed in double "
            "quotes at column 2)",
        ),
        ("[]", "state.json must be a JSON object, got '[]'"),
        ("{}", "state.json: _data_files must be a list of objects with a filename"),
        ('{"_data_files": [{}]}', "state.json: _data_files must be a list of objects"),
        (
            '{"_data_files": [{"filename": "../a.arrow"}]}',
            "_data_files must be names of files in this directory, got ../a.arrow",
        ),
        ('{"_data_files": [], "_indices_files": [{}]}', "flatten_indices()"),
    ],
)
def test_a_data_set_that_is_not_whole_is_refused(tmp_path, state, message):
    (tmp_path / "state.json").write_text(state)
    with pytest.raises(ValueError) as caught:
        list(arrow_files.read(tmp_path, "text"))
    assert message in str(caught.value) and str(tmp_path) in str(caught.value)


def test_a_data_set_without_one_of_its_files_is_refused(tmp_path):
    names = ["data-00000-of-00002.arrow", "data-00001-of-00002.arrow"]
    state = {"_data_files": [{"filename": name} for name in names]}
    (tmp_path / "state.json").write_text(json.dumps(state))
    write(tmp_path / names[0], pyarrow.array(TEXTS))
    with pytest.raises(FileNotFoundError, match=names[1]):
        list(arrow_files.read(tmp_path, "text"))


def test_a_file_of_arrows_other_format_is_refused_with_what_to_write(tmp_path):
    path = tmp_path / "text.arrow"
    table = pyarrow.table({"text": TEXTS})
    with (
        pyarrow.OSFile(str(path), "wb") as file,
        pyarrow.ipc.new_file(file, table.schema) as writer,
    ):
        writer.write_table(table)
    for use in (
        lambda: list(arrow_files.read(path, "text")),
        lambda: arrow_files.check_column(path, "text"),
        lambda: arrow_files.describe_columns(path),
    ):
        with pytest.raises(ValueError) as caught:
            use()
        assert str(caught.value) == (
            f"{path} must be a stream of Arrow, got an Arrow file (Feather); write it "
            "with polars' write_ipc_stream, with pyarrow.ipc.new_stream, or as Parquet"
        )
