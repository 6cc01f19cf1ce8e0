"""One side of a text in every kind of file, whatever its name asks for."""

import gzip
import json
import lzma
import pathlib
import subprocess

import pyarrow
import pyarrow.parquet
import pytest

from vaswani_jax.data import columns

OTHER_WRITERS = pathlib.Path(__file__).parent / "other_writers"
ENGLISH = ["one", "two words", "", "vier ü\u2028"]
GERMAN = ["eins", "zwei Wörter", "", "four"]


def zstd(content):
    """Return a frame of zstd with one raw block, from the format's specification."""
    block = (1 | len(content) << 3).to_bytes(3, "little")
    return b"\x28\xb5\x2f\xfd\x20" + bytes([len(content)]) + block + content


def lines(texts):
    return "".join(f"{text}\n" for text in texts).encode()


def records():
    return [
        {"id": number, "translation": {"en": english, "de": german}}
        for number, (english, german) in enumerate(zip(ENGLISH, GERMAN, strict=True))
    ]


def table():
    return pyarrow.Table.from_pylist(records())


def write_dataset(directory, shards):
    """Write what `Dataset.save_to_disk` does."""
    directory.mkdir(parents=True)
    names = []
    for number, rows in enumerate(shards):
        names.append({"filename": f"data-{number:05}-of-{len(shards):05}.arrow"})
        path = str(directory / names[-1]["filename"])
        with (
            pyarrow.OSFile(path, "wb") as stream,
            pyarrow.ipc.new_stream(stream, rows.schema) as writer,
        ):
            writer.write_table(rows)
    (directory / "state.json").write_text(json.dumps({"_data_files": names}))


@pytest.fixture
def directory(tmp_path):
    """A directory with the same text in every kind of file."""
    rows = "".join(f"{e}\t{g}\n" for e, g in zip(ENGLISH, GERMAN, strict=True)).encode()
    objects = lines(map(json.dumps, records()))
    contents = {
        "text.de": lines(GERMAN),
        "text.de.gz": gzip.compress(lines(GERMAN)),
        "text.de.xz": lzma.compress(lines(GERMAN)),
        "text.de.zst": zstd(lines(GERMAN)),
        "text.tsv": rows,
        "text.txt.gz": gzip.compress(rows),
        "text.jsonl": objects,
        "text.jsonl.xz": lzma.compress(objects),
        "a#b*.de": lines(GERMAN),
        "parts/2.de": lines(GERMAN[1:2]),
        "parts/10.de.gz": gzip.compress(lines(GERMAN[2:])),
        "parts/1.de.xz": lzma.compress(lines(GERMAN[:1])),
    }
    (tmp_path / "parts").mkdir()
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
    pyarrow.parquet.write_table(table(), tmp_path / "text.parquet", row_group_size=3)
    write_dataset(tmp_path / "saved" / "train", [table()[:1], table()[1:]])
    return tmp_path


NAMES = [
    *("text.de", "text.de.gz", "text.de.xz", "text.de.zst", "a#b*.de", "parts/*.de*"),
    *("text.tsv#2", "text.txt.gz#2", "text.parquet#translation.de"),
    *("text.jsonl#translation.de", "text.jsonl.xz#translation.de"),
    *("saved/train#translation.de", "saved/train/*.arrow#translation.de"),
]


@pytest.mark.parametrize("name", NAMES)
def test_every_kind_of_file_has_the_same_text(directory, name):
    assert list(columns.read(name, directory)) == GERMAN
    elsewhere = pathlib.Path("/nowhere")
    if name != "a#b*.de":
        assert list(columns.read(f"{directory}/{name}", elsewhere)) == GERMAN


@pytest.mark.parametrize(
    ("name", "texts"),
    [
        ("datasets_train#translation.en", ENGLISH),
        ("datasets_train#translation.de", GERMAN),
        ("polars.parquet#translation.de", GERMAN),
        ("polars.arrow#en", ENGLISH),
        ("zstandard.zst", GERMAN),
    ],
)
def test_files_of_other_libraries_are_read(name, texts):
    # Written by datasets 5.2.0 (save_to_disk), polars 2.1.0 and zstandard 0.25.0.
    assert list(columns.read(name, OTHER_WRITERS)) == texts


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("", "no JSON (Expecting value at column 1); every line must be a JSON object"),
        ("[1]", "every line must be a JSON object"),
        ('{"a": {"b": "c"}', "no JSON (Expecting ',' delimiter at column 17)"),
        ("{" + '"a":{' * 200_000, "JSON nested too deep"),
        ('{"a": {"c": "d"}, "e": 1}', "no a.b: the keys are a.c, e"),
        ('{"a": "b"}', "no a.b: the keys are a"),
        ("{}", "no a.b: the keys are none"),
        ('{"a\\n\\u001b[1m": 1}', "no a.b: the keys are 'a\\n\\x1b[1m'"),
        ('{"a": {"b": null}}', "a.b must be a string, got null"),
        ('{"a": {"b": ["c"]}}', "a.b must be a string, got a list"),
        ('{"a": {"b": {"c": "d"}}}', "a.b must be a string, got an object"),
        ('{"a": {"b": true}}', "a.b must be a string, got True"),
        ('{"a": {"b": "\\ud800"}}', "a.b has a lone surrogate"),
    ],
)
def test_a_json_line_without_a_text_is_named_with_the_rule(tmp_path, line, message):
    path = tmp_path / "text.jsonl"
    path.write_text('{"a": {"b": "one"}}\n' + line + "\n")
    texts = columns.read("text.jsonl#a.b", tmp_path)
    assert next(texts) == "one"
    with pytest.raises(ValueError) as caught:
        next(texts)
    assert str(caught.value).startswith(f"{path}, line 2: {message}")


def test_a_huge_number_is_refused_without_advice_to_a_programmer(tmp_path):
    (tmp_path / "t.jsonl").write_text('{"en": "a", "id": ' + "9" * 5000 + "}\n")
    with pytest.raises(
        ValueError, match=r"t\.jsonl, line 1: a number of over"
    ) as caught:
        lines(columns.read("t.jsonl#en", tmp_path))
    assert "sys." not in str(caught.value)


def test_keys_with_dots_and_texts_with_line_breaks_are_read(tmp_path):
    values = [
        {"a.b": "dotted"},
        {"a": {"b": "c\r\nd\n", "b.c": 1}},
        {"a": {"b": "\U0001f389"}},
    ]
    (tmp_path / "text.ndjson").write_bytes(lines(map(json.dumps, values)))
    texts = list(columns.read("text.ndjson#a.b", tmp_path))
    assert texts == ["dotted", "c d ", "\U0001f389"]


@pytest.mark.parametrize("name", ["text.tsv", "text.json", "text.jsonl.gz"])
def test_lines_without_columns_need_no_name_of_one(tmp_path, name):
    content = lines(["one", "[two]", "", '"three": 3'])
    (tmp_path / name).write_bytes(gzip.compress(content) if "gz" in name else content)
    texts = ["one", "[two]", "", '"three": 3']
    assert list(columns.read(name, tmp_path)) == texts


def test_every_line_must_have_the_columns_of_the_first(tmp_path):
    path = tmp_path / "text.tsv"
    path.write_text("one\teins\ntwo\t\tzwei\n")
    with pytest.raises(ValueError) as caught:
        list(columns.read("text.tsv#2", tmp_path))
    assert str(caught.value) == (
        f"{path}, line 2: the number of columns must be that of line 1, 2, got 3 (tabs "
        "separate columns)"
    )


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("none.de", "no file {}/none.de"),
        ("parts/*.fr", "no file {}/parts/*.fr"),
        (
            "parts",
            "no file {}/parts: it is a directory, and Hugging Face's datasets did",
        ),
        (
            "saved#de",
            "no file {}/saved: it is a directory of splits, name one: saved/tr",
        ),
        ("text.de#", "text.de#: a name is FILES or FILES#COLUMN"),
        (
            "text.tsv",
            "{}/text.tsv, line 1: tabs separate columns; name one, such as text.t",
        ),
        (
            "text.de#de",
            "the column of tab-separated lines must be a number from 1, such as",
        ),
        (
            "text.tsv#0",
            "the column of tab-separated lines must be a number from 1, such as",
        ),
        ("text.tsv#3", "{}/text.tsv, line 1: no column 3, the line has 2 (tabs sep"),
        (
            "text.jsonl",
            "{}/text.jsonl, line 1: a JSON object; name one of its keys, such as text",
        ),
        (
            "text.jsonl#de",
            "{}/text.jsonl, line 1: no de: the keys are id, translation.",
        ),
        ("text.jsonl#id", "{}/text.jsonl, line 1: id must be a string, got 0"),
        (
            "text.parquet",
            "as text.parquet#translation.en; it has id, translation.en",
        ),
        ("text.parquet#de", "{}/text.parquet: no column de; it has id, translation.en"),
        (
            "text.parquet#id",
            "{}/text.parquet: column id must be of texts, and is of in",
        ),
        (
            "saved/train#de",
            "data-00000-of-00002.arrow: no column de; it has id, transl",
        ),
        ("-#1", "-#1: standard input can be read once; write it to a file"),
    ],
)
def test_a_name_of_no_text_is_refused_with_the_rule(directory, name, message):
    with pytest.raises((ValueError, FileNotFoundError)) as caught:
        list(columns.read(name, directory))
    assert message.format(directory) in str(caught.value)


def test_splits_are_suggested_by_names_that_can_be_given(directory):
    (directory / "hub").mkdir()
    (directory / "saved").rename(directory / "hub" / "saved")
    with pytest.raises(FileNotFoundError) as caught:
        columns.find("hub/saved/#translation.de", directory)
    suggested = str(caught.value).partition("name one: ")[2]
    assert suggested == "hub/saved/train"
    assert list(columns.read(f"{suggested}#translation.de", directory)) == GERMAN


@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_the_columns_of_pasted_files_are_the_lines_of_the_files(tmp_path, mark):
    for name, words in (("en", ["one", "two"]), ("de", ["eins", "zwei"])):
        content = mark + "".join(f"{word}\r\n" for word in words)
        (tmp_path / name).write_bytes(content.encode())
    pasted = subprocess.run(
        ["paste", tmp_path / "en", tmp_path / "de"], stdout=subprocess.PIPE, check=True
    )
    (tmp_path / "t.tsv").write_bytes(pasted.stdout)
    for column, words in ((1, ["one", "two"]), (2, ["eins", "zwei"])):
        assert list(columns.read(f"t.tsv#{column}", tmp_path)) == words


def test_a_shard_that_is_a_link_to_a_missing_file_is_named(directory):
    parts, annex = directory / "parts", directory / "annex"
    parts.rename(annex)
    parts.mkdir()
    for file in annex.iterdir():
        (parts / file.name).symlink_to(file)
    assert list(columns.read("parts/*.de*", directory)) == GERMAN
    for name in ("10.de.gz", "2.de"):
        (annex / name).unlink()
        with pytest.raises(FileNotFoundError) as caught:
            columns.find("parts/*.de*", directory)
        # The first of them.
        message = f"no file {parts / name}: it is a link to a missing file"
        assert str(caught.value) == message
