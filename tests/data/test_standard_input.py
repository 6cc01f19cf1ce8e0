"""Standard input as a text of `vaswani prepare`."""

import io
import json
import logging
import pathlib
import sys

import pytest

from tests.data import small_text
from vaswani_jax.core import files
from vaswani_jax.data import prepared, sources, standard_input


@pytest.fixture
def pairs(text):
    """The training pairs of the small text."""
    sides = [small_text.read_lines(text / f"train.{end}") for end in ("en", "de")]
    return list(zip(*sides, strict=True))


def pipe(monkeypatch, lines):
    content = "".join(f"{line}\n" for line in lines).encode()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))


def tokens(directory):
    return {
        path.name: path.read_bytes()
        for path in directory.iterdir()
        if path.name != "manifest.json"
    }


def names(source, target):
    return {"data.train_source": source, "data.train_target": target}


@pytest.mark.parametrize("kind", ["tsv", "jsonl", "one side"])
def test_a_pipe_prepares_the_same_data_as_files(monkeypatch, text, pairs, kind):
    small_text.prepare(text)
    expected = tokens(text.with_name("data"))
    if kind == "tsv":
        pipe(monkeypatch, (f"{source}\t{target}" for source, target in pairs))
        settings = small_text.settings_of(text, **names("-#1", "-#2"))
    elif kind == "jsonl":
        pipe(monkeypatch, (json.dumps({"a": {"b": s}, "c": t}) for s, t in pairs))
        settings = small_text.settings_of(text, **names("-#a.b", "-#c"))
    else:
        pipe(monkeypatch, (target for _, target in pairs))
        settings = small_text.settings_of(text, **names("train.en", "-"))
    directory = text.with_name("piped")
    with standard_input.copy_to_file(settings.data, directory) as data:
        prepared.open_or_prepare(
            small_text.settings_of(text, **names(data.train_source, data.train_target)),
            directory,
            rebuild=False,
        )
    assert tokens(directory) == expected
    assert sorted(path.name for path in text.parent.iterdir() if path.is_dir()) == [
        *("data", "piped", "text")
    ], "the copy is gone"


def test_prepared_data_is_opened_without_standard_input(
    monkeypatch, text, pairs, caplog
):
    settings = small_text.settings_of(text, **names("-#1", "-#2"))
    directory = text.with_name("piped")
    with pytest.raises(FileNotFoundError) as caught:
        prepared.open_or_prepare(settings, directory, rebuild=False)
    assert str(caught.value) == (
        "config.data.train_source=-#1: `vaswani prepare` alone reads standard input, "
        "once; prepare the data with it first"
    )

    def prepare(lines):
        pipe(monkeypatch, lines)
        with standard_input.copy_to_file(settings.data, directory) as data:
            copies = names(data.train_source, data.train_target)
            return prepared.open_or_prepare(
                small_text.settings_of(text, **copies), directory, rebuild=False
            )

    rows = [f"{source}\t{target}" for source, target in pairs]
    prepare(rows)
    contents = small_text.contents(directory)
    prepare(rows)
    with pytest.raises(ValueError, match="the text of 'train' has changed"):
        prepare([*rows[1:], rows[0]])
    prepared.open_or_prepare(settings, directory, rebuild=False)
    assert small_text.contents(directory) == contents
    assert "standard input" in caplog.text
    assert "the prepared 'train' data is used" in caplog.text


@pytest.mark.parametrize(
    ("content", "columns", "message"),
    [
        ("a\tb\nc\n", "12", "standard input, line 2: the number of columns must be"),
        ("a\tb\n", "13", "standard input, line 1: no column 3, the line has 2"),
        ("a\tb\n", "10", "must be a number from 1, such as -#2, got '0'"),
        (
            '{"a": ""}\n{"b": ""}\n',
            "aa",
            "standard input, line 2: no a: the keys are b",
        ),
    ],
)
def test_a_bad_line_of_a_pipe_is_named(monkeypatch, text, content, columns, message):
    pipe(monkeypatch, content.splitlines())
    settings = small_text.settings_of(text, **names(*(f"-#{c}" for c in columns)))
    with (
        pytest.raises(ValueError) as caught,
        standard_input.copy_to_file(settings.data, text.with_name("piped")) as data,
    ):
        sources.count(data, "train", seed=1)
    assert message in str(caught.value)
    assert "standard_input" not in str(caught.value), "the copy is gone"


def test_sides_of_unlike_length_are_named_as_the_user_named_them(monkeypatch, text):
    pipe(monkeypatch, ["one line"])
    settings = small_text.settings_of(text, **names("-", "train.de"))
    with (
        pytest.raises(ValueError, match="of lines: standard input has 1, "),
        standard_input.copy_to_file(settings.data, text.with_name("piped")) as data,
    ):
        sources.count(data, "train", seed=1)


def test_standard_input_is_one_text_of_one_kind(monkeypatch, text):
    pipe(monkeypatch, [])
    for overrides, message in (
        (names("-#1", "-#de"), r"got -#1 and -#de"),
        (
            {**names("-#1", "b"), "data.valid_source": "-#1", "data.valid_target": "c"},
            "the text of one split, got train and valid",
        ),
    ):
        data = small_text.settings_of(text, **overrides).data
        with (
            pytest.raises(ValueError, match=message),
            standard_input.copy_to_file(data, text.with_name("piped")),
        ):
            pass
    monkeypatch.setattr(sys, "stdin", None)
    data = small_text.settings_of(text, **names("-#1", "-#2")).data
    with (
        pytest.raises(FileNotFoundError, match="standard input is closed"),
        standard_input.copy_to_file(data, text.with_name("piped")),
    ):
        pass


def test_standard_input_that_corpora_replace_is_not_read(monkeypatch, text):
    pipe(monkeypatch, ["ba\tko"])
    corpora = [{"name": "a", "source": "train.en", "target": "train.de"}]
    data = small_text.settings_of(
        text, **names("-#1", "-#2"), **{"data.corpora": corpora}
    ).data
    with (
        pytest.raises(ValueError, match="train_source=-#1 is not read with"),
        standard_input.copy_to_file(data, text.with_name("piped")),
    ):
        pass
    assert sys.stdin.read() == "ba\tko\n"


def test_settings_without_standard_input_stay(text, caplog):
    caplog.set_level(logging.INFO)
    data = small_text.settings_of(text).data
    with standard_input.copy_to_file(data, text.with_name("piped")) as copied:
        assert copied is data
    assert not caplog.records


def test_the_copy_of_a_killed_program_is_removed_and_no_other(monkeypatch, text):
    folders = [text.with_name(f".piped.vaswani_jax_input_{n}") for n in "ab"]
    for folder in folders:
        folder.mkdir()
        (folder / "standard_input").write_text("half")
        (folder / "lock").touch()
    pipe(monkeypatch, ["ba"])
    settings = small_text.settings_of(text, **names("-", "train.de"))
    with (
        files.held(folders[1]),
        standard_input.copy_to_file(settings.data, text.with_name("piped")) as data,
    ):
        assert small_text.read_lines(pathlib.Path(data.train_source)) == ["ba"]
        assert not folders[0].exists()
    assert (folders[1] / "standard_input").exists()
