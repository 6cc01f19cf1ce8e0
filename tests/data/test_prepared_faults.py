"""Prepared data that is damaged, or was not finished: nothing silent, nothing lost."""

import errno
import json
import os
import shutil

import pytest

from tests.data import small_text
from vaswani_jax.core import files as files_
from vaswani_jax.data import manifest, prepare, text_files, token_files, vocabulary
from vaswani_jax.data import prepared as prepared_


def test_another_vocabulary_is_refused(text):
    prepared = small_text.prepare(text)
    other = vocabulary.learn_vocabulary(
        small_text.read_lines(text / "train.en"),
        small_text.settings_of(text, **{"data.vocab_size": 39}).data,
    )
    other.save(prepared.directory)
    message = small_text.refusal(text)
    assert other.fingerprint in message
    assert prepared.vocabulary.fingerprint in message


def test_a_damaged_manifest_is_refused_and_rebuilt(text):
    path = small_text.prepare(text).directory / "manifest.json"
    path.write_text(path.read_text()[:-30])
    assert str(path) in small_text.refusal(text)
    assert small_text.prepare(text, rebuild=True).counts["train"]["kept"] == 115


@pytest.mark.parametrize("files", [5, ["train.source"], {"train.source": 5}])
def test_a_manifest_whose_digests_are_no_digests_is_refused(text, files):
    path = small_text.prepare(text).directory / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"files": files}))
    assert f"{path} is damaged" in small_text.refusal(text)


def full_disk(*args, **kwargs):
    raise OSError(errno.ENOSPC, "No space left on device")


CRASHES = pytest.mark.parametrize(
    ("owner", "name"),
    [
        (prepare, "learn_vocabulary"),
        (vocabulary.Vocabulary, "save"),
        (text_files, "write_lines"),
        (token_files.TokenWriter, "write"),
        (manifest.json, "dumps"),
        (files_.os, "rename"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)


@CRASHES
def test_a_crash_leaves_the_earlier_data_and_the_next_call_succeeds(
    text, owner, name, monkeypatch
):
    before = small_text.contents(small_text.prepare(text).directory)
    with monkeypatch.context() as patch, pytest.raises(OSError, match="No space"):
        patch.setattr(owner, name, full_disk)
        small_text.prepare(text, rebuild=True, **{"data.vocab_size": 41})
    assert small_text.contents(text.with_name("data")) == before
    assert small_text.prepare(text).vocabulary.size == 40
    assert (
        small_text.prepare(
            text, rebuild=True, **{"data.vocab_size": 41}
        ).vocabulary.size
        == 41
    )
    there = sorted(entry.name for entry in text.parent.iterdir())
    assert there == [".data.vaswani_jax_lock", "data", "text"]


@CRASHES
def test_a_first_call_that_crashed_is_followed_by_one_that_succeeds(
    text, owner, name, monkeypatch
):
    with monkeypatch.context() as patch, pytest.raises(OSError, match="No space"):
        patch.setattr(owner, name, full_disk)
        small_text.prepare(text)
    with pytest.raises(FileNotFoundError):
        prepared_.open_prepared(text.with_name("data"))
    assert small_text.prepare(text).counts["train"]["kept"] == 115
    there = sorted(entry.name for entry in text.parent.iterdir())
    assert there == [".data.vaswani_jax_lock", "data", "text"]


def test_what_a_killed_call_left_behind_does_not_get_into_the_data(text):
    expected = set(small_text.contents(small_text.prepare(text).directory))
    shutil.rmtree(text.with_name("data"))
    unfinished = text.with_name(".data.vaswani_jax_unfinished")
    unfinished.mkdir()
    (unfinished / "train.source.int32").write_bytes(b"stale")
    prepared = small_text.prepare(text)
    assert set(small_text.contents(prepared.directory)) == expected
    assert len(prepared.corpus("train").source) == 115


def test_a_kill_between_the_two_renames_loses_no_data(text, monkeypatch):
    before = small_text.contents(small_text.prepare(text).directory)
    rename, calls = os.rename, []

    def dies_at_the_second(old, new):
        calls.append(new)
        if len(calls) == 2:
            raise KeyboardInterrupt
        rename(old, new)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(files_.os, "rename", dies_at_the_second)
        small_text.prepare(text, rebuild=True)
    # Nothing could be prepared again: the text is gone.
    shutil.rmtree(text)
    prepared = small_text.prepare(text)
    assert {
        path: old for path, (old, _) in small_text.contents(prepared.directory).items()
    } == {path: old for path, (old, _) in before.items()}


@pytest.mark.parametrize(
    ("name", "read"),
    [
        ("train.source.uint16", lambda data: data.corpus("train")),
        ("train.target.offsets", lambda data: data.corpus("train")),
        ("test.target.txt", lambda data: data.text("test")),
    ],
)
@pytest.mark.parametrize("damage", ["flipped", "missing"])
def test_a_damaged_file_is_named_before_it_is_used(text, name, read, damage):
    prepared = small_text.prepare(text)
    file = prepared.directory / name
    if damage == "missing":
        file.unlink()
    else:
        data = bytearray(file.read_bytes())
        data[len(data) // 2] ^= 1
        file.write_bytes(bytes(data))
    with pytest.raises(ValueError, match=rf"{prepared.directory} is damaged: {name}"):
        read(prepared)
    read(small_text.prepare(text, rebuild=True))


def test_rebuilding_removes_no_file_of_anybody_else(text):
    directory = small_text.prepare(text).directory
    (directory / "thesis.tex").write_text("mine")
    before = small_text.contents(directory)
    with pytest.raises(ValueError, match=r"no prepared data \(thesis\.tex\)"):
        small_text.prepare(text, rebuild=True)
    assert small_text.contents(directory) == before


def test_a_manifest_of_anybody_else_is_left_alone(text):
    foreign = text.with_name("data")
    foreign.mkdir()
    (foreign / "manifest.json").write_text('{"name": "app"}')
    (foreign / "index.html").write_text("mine")
    before = small_text.contents(foreign)
    with pytest.raises(ValueError, match=r"index\.html"):
        small_text.prepare(text, rebuild=True)
    assert small_text.contents(foreign) == before


def test_a_link_to_a_directory_stays_one(text, tmp_path):
    large = tmp_path / "large"
    large.mkdir()
    text.with_name("data").symlink_to(large)
    for rebuild in (False, False, True):
        small_text.prepare(text, rebuild=rebuild)
        assert text.with_name("data").is_symlink()
        assert (large / "manifest.json").exists()


def test_prepared_data_that_cannot_be_written_can_be_read(text, monkeypatch):
    before = small_text.prepare(text)

    def refuse(*args, **kwargs):
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(files_, "locked", refuse)
    assert small_text.prepare(text).counts == before.counts
    with pytest.raises(OSError, match="Read-only"):
        small_text.prepare(text, rebuild=True)
    shutil.rmtree(before.directory)
    with pytest.raises(OSError, match="Read-only"):
        small_text.prepare(text)
