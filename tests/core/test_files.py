"""Files and directories are written whole or not at all, and their bytes are known."""

import errno
import fcntl
import hashlib
import json
import os
import pathlib
import threading

import pytest

from tests import interpreter
from vaswani_jax.core import files


def content(directory: pathlib.Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in directory.iterdir()}


def test_digests_name_the_file_that_is_not_what_was_written(tmp_path):
    (tmp_path / "sub").mkdir()
    first, second = tmp_path / "first", tmp_path / "sub" / "second"
    first.write_bytes(b"one")
    second.write_bytes(b"four")
    digests = files.hash_files([second, first], directory=tmp_path)
    assert digests == {
        "first": (3, hashlib.sha256(b"one").hexdigest()),
        "sub/second": (4, hashlib.sha256(b"four").hexdigest()),
    }
    assert files.parse_digests(json.loads(json.dumps(digests))) == digests
    assert files.describe_difference(digests, tmp_path) == ""
    second.write_bytes(b"five")
    assert "sub/second has changed" in files.describe_difference(digests, tmp_path)
    second.write_bytes(b"fo")
    difference = files.describe_difference(digests, tmp_path)
    assert difference == "sub/second has 2 of 4 bytes"
    second.unlink()
    difference = files.describe_difference(digests, tmp_path)
    assert difference == "sub/second is missing"


@pytest.mark.parametrize("record", [3, {"a": 3}, {"a": [3]}, {"a": ["b", "c"]}])
def test_a_record_that_has_no_digests_is_refused(record):
    with pytest.raises((TypeError, ValueError)):
        files.parse_digests(record)


@pytest.mark.parametrize(
    ("new", "expected"),
    [("grün\r\n", b"gr\xc3\xbcn\r\n"), (b"\xff\r\n", b"\xff\r\n")],
)
def test_a_file_is_replaced_at_once(tmp_path, new, expected):
    path = tmp_path / "config.json"
    path.write_text("old")
    assert files.write_atomically(path, new) == path
    assert path.read_bytes() == expected
    assert [entry.name for entry in tmp_path.iterdir()] == ["config.json"]


def test_a_file_that_cannot_take_its_place_leaves_no_part(tmp_path):
    directory = tmp_path / "config.json"
    directory.mkdir()
    with pytest.raises(IsADirectoryError):
        files.write_atomically(directory, "{}")
    assert list(tmp_path.iterdir()) == [directory]
    assert directory.is_dir()


def test_files_are_replaced_together_or_not_at_all(tmp_path):
    first, second = tmp_path / "first", tmp_path / "second"
    files.write_together({first: "1", second: "2"})
    assert content(tmp_path) == {"first": "1", "second": "2"}
    with pytest.raises(UnicodeEncodeError):
        files.write_together({first: "3", second: "\udcff"})
    assert (first.read_text(), second.read_text()) == ("1", "2")


def test_a_directory_is_replaced_when_it_is_finished(tmp_path):
    directory = tmp_path / "data"
    for text in ("first", "second"):
        with files.replacing(directory) as unfinished:
            (unfinished / "file").write_text(text)
            assert content(unfinished) == {"file": text}
        assert content(directory) == {"file": text}
        assert [path.name for path in tmp_path.iterdir()] == ["data"]


def test_the_old_directory_stays_until_the_new_one_would_outlast_a_power_cut(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = tmp_path / "data"
    directory.mkdir()
    on_disk: set[int] = set()
    missing = []
    sync, rename = os.fsync, os.rename

    def record_sync(handle: int) -> None:
        on_disk.add(os.fstat(handle).st_ino)
        sync(handle)

    def check_before_rename(source: pathlib.Path, target: pathlib.Path) -> None:
        missing.append([path for path in new if path.stat().st_ino not in on_disk])
        rename(source, target)

    monkeypatch.setattr(os, "fsync", record_sync)
    monkeypatch.setattr(os, "rename", check_before_rename)
    with files.replacing(directory) as unfinished:
        (unfinished / "sub").mkdir()
        (unfinished / "sub" / "file").write_text("new")
        (unfinished / "manifest.json").write_text("{}")
        new = [unfinished, *unfinished.rglob("*")]
    # Before the old one is moved away; the new one then takes its place.
    assert missing[0] == [] and len(missing) == 2
    assert (directory / "sub" / "file").read_text() == "new"


def test_an_error_leaves_the_directory_as_it_was(tmp_path):
    directory = tmp_path / "data"
    directory.mkdir()
    (directory / "file").write_text("old")
    with pytest.raises(KeyError), files.replacing(directory) as unfinished:
        (unfinished / "file").write_text("half")
        raise KeyError
    assert content(directory) == {"file": "old"}
    assert [path.name for path in tmp_path.iterdir()] == ["data"]


def test_a_directory_that_a_kill_has_moved_away_is_put_back(tmp_path):
    directory = tmp_path / "data"
    old = files.sibling(directory, "old")
    old.mkdir()
    files.recover(directory, mark="manifest.json")
    assert not directory.exists()  # Not whole, as the mark is missing.
    (old / "manifest.json").touch()
    files.recover(directory, mark="manifest.json")
    assert content(directory) == {"manifest.json": ""}
    assert not old.exists()


def test_a_directory_is_held_by_one_at_a_time(tmp_path: pathlib.Path) -> None:
    assert not files.is_held(tmp_path)
    with files.Directory(tmp_path).hold():
        assert files.is_held(tmp_path)
        with (
            pytest.raises(ValueError, match=r"is in use by process \d+ on "),
            files.held(tmp_path),
        ):
            pass
    assert not files.is_held(tmp_path)


def test_a_look_whether_a_directory_is_held_keeps_nobody_from_it(
    tmp_path: pathlib.Path,
) -> None:
    with open(tmp_path / "lock", "w") as looking:
        fcntl.flock(looking, fcntl.LOCK_EX)
        timer = threading.Timer(0.1, fcntl.flock, (looking, fcntl.LOCK_UN))
        timer.start()
        with files.held(tmp_path):
            timer.join()


def test_a_system_without_flock_locks_nothing(tmp_path: pathlib.Path) -> None:
    program = (
        "import pathlib, sys; sys.modules['fcntl'] = None\n"
        "from vaswani_jax.core import files\n"
        "path = pathlib.Path(sys.argv[1])\n"
        "with files.held(path), files.held(path), files.locked(path):\n"
        "    assert not files.is_held(path)\n"
    )
    interpreter.output_of(program, str(tmp_path / "run"))


@pytest.mark.parametrize("number", [errno.ENOSYS, errno.ENOTSUP, errno.ENOLCK])
def test_a_file_system_without_locks_is_warned_of_once(
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    number: int,
) -> None:
    def fail(file: object, operation: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(files, "_has_warned", False)
    monkeypatch.setattr(fcntl, "flock", fail)
    with files.held(tmp_path), files.held(tmp_path), files.locked(tmp_path / "data"):
        assert not files.is_held(tmp_path)
    assert caplog.messages == [
        f"{tmp_path / 'lock'} cannot be locked ({os.strerror(number)}): this file "
        "system has no locks; start no second program there"
    ]


def test_a_lock_that_fails_for_another_reason_is_an_error(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(file: object, operation: int) -> None:
        raise OSError(errno.EIO, "input/output error")

    monkeypatch.setattr(fcntl, "flock", fail)
    with pytest.raises(OSError, match="input/output error"), files.held(tmp_path):
        pass


def test_a_link_stays_a_link_to_the_directory_that_is_replaced(tmp_path):
    (tmp_path / "large/data").mkdir(parents=True)
    link = tmp_path / "data"
    link.symlink_to(tmp_path / "large/data")
    for text in ("first", "second"):
        with files.replacing(link) as unfinished:
            (unfinished / "file").write_text(text)
        assert link.is_symlink() and content(link) == {"file": text}
    assert [path.name for path in (tmp_path / "large").iterdir()] == ["data"]
    # A kill between the two renamings leaves the old one beside the target of the link.
    (tmp_path / "large/data").rename(files.sibling(link, "old"))
    files.recover(link, mark="file")
    assert content(link) == {"file": "second"}


def test_a_mount_point_is_refused_before_anything_is_written(tmp_path, monkeypatch):
    monkeypatch.setattr(pathlib.Path, "is_mount", lambda path: path == tmp_path)
    with (
        pytest.raises(ValueError, match=r"mount point.*: name a directory inside it"),
        files.replacing(tmp_path),
    ):
        pass
    assert not files.sibling(tmp_path, "unfinished").exists()
