"""Local copies of directories on stores, one of which speaks S3, and its failures."""

import functools
import http.server
import json
import os
import pathlib
import shutil
import threading
from collections.abc import Iterator
from typing import Any

import fsspec
import pytest

from tests import object_store
from tests.core.machines import RUN, Machine, content, stored, write
from vaswani_jax.checkpoints import store as checkpoint_store
from vaswani_jax.core import files, remote


def test_a_path_is_itself(tmp_path: pathlib.Path) -> None:
    directory = remote.open_directory(str(tmp_path / "runs"))
    assert directory.path == tmp_path / "runs"
    directory.pull()
    directory.push()
    assert not directory.pull_again(tmp_path / "runs/checkpoints/1")
    assert not list(tmp_path.iterdir())
    with directory.hold():
        assert [path.name for path in directory.path.iterdir()] == ["lock"]


def test_a_tilde_is_the_home(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert remote.open_directory("~/runs/demo").path == tmp_path / "runs/demo"
    assert remote.open_directory("runs/~a").path == pathlib.Path("runs/~a")


def test_a_file_is_no_workdir(tmp_path: pathlib.Path) -> None:
    (tmp_path / "run").write_text("")
    with pytest.raises(ValueError, match="run must be a directory, and is a file"):
        remote.open_workdir(str(tmp_path / "run"))


@pytest.mark.parametrize("use", ["pull", "hold"])
def test_only_the_user_can_open_the_cache_that_a_local_copy_creates(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, use: str
) -> None:
    """Programs that were compiled are kept in it only if nobody else can write it."""
    monkeypatch.delenv("VASWANI_JAX_MIRRORS", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    directory = remote.open_directory(f"file://{tmp_path}/bucket/run")
    previous_mask = os.umask(0o002)
    try:
        if use == "pull":
            directory.pull()
        else:
            with directory.hold():
                pass
    finally:
        os.umask(previous_mask)
    assert directory.path.parent == tmp_path / "cache/vaswani_jax"
    assert directory.path.parent.stat().st_mode & 0o777 == 0o700


def test_a_file_of_a_store_is_fetched_when_it_has_changed(
    url: str,
    machine: Machine,
    tmp_path: pathlib.Path,
) -> None:
    name = f"{url}/model.safetensors"
    store, path = fsspec.core.url_to_fs(name)
    machine.open(url)  # From here on its copies are in use.
    with pytest.raises(remote.RemoteError, match=f"there is no file {name}"):
        remote.local_file(name)
    if not store.async_impl:
        store.makedirs(url.partition("://")[2], exist_ok=True)
    for day, text in enumerate((b"first", b"other")):
        store.pipe_file(path, text)
        if url.startswith("file://"):
            os.utime(path, (day, day))  # Two writes can have the same time.
        local = remote.local_file(name)
        assert (local.name, local.read_bytes()) == ("model.safetensors", text)
    inode = local.stat().st_ino
    assert remote.local_file(name).stat().st_ino == inode, "it is fetched once"
    local.write_bytes(b"damaged")
    assert remote.local_file(name).read_bytes() == text
    with pytest.raises(ValueError, match="must be a directory, and is a file"):
        remote.open_workdir(name)
    assert remote.local_file(str(tmp_path / "a.b")) == tmp_path / "a.b"


@pytest.mark.parametrize("url", ["memory"], indirect=True)
def test_a_file_is_fetched_each_time_if_its_store_shows_no_changes(
    url: str, machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"{url}/model.safetensors"
    store, path = fsspec.core.url_to_fs(name)
    fields = {"name": path, "size": 5, "type": "file"}
    monkeypatch.setattr(type(store), "info", lambda store, path, **options: fields)
    machine.open(url)
    for text in (b"first", b"other"):
        store.pipe_file(path, text)
        assert remote.local_file(name).read_bytes() == text


@pytest.fixture
def site(tmp_path: pathlib.Path) -> Iterator[tuple[pathlib.Path, str]]:
    """A directory and its URL; the server sends no ETag, and lists names alone."""
    directory = tmp_path / "site"
    directory.mkdir()
    handler = functools.partial(
        http.server.SimpleHTTPRequestHandler, directory=str(directory)
    )
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield directory, f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_changes_that_keep_the_size_are_fetched_from_a_web_server(
    site: tuple[pathlib.Path, str], machine: Machine
) -> None:
    directory, url = site
    machine.open(f"{url}/run")
    for day, text in enumerate(("first", "other"), 1):
        names = ["model.safetensors", "run/config.json", "run/text/a.en"]
        write(directory, dict.fromkeys(names, text))
        for name in names:
            os.utime(directory / name, (day * 86400, day * 86400))
        assert remote.local_file(f"{url}/model.safetensors").read_text() == text
        copy = machine.pull(f"{url}/run", file_names=["text/*.en"])
        assert content(copy)["text/a.en"] == text
        copy = machine.pull(f"{url}/run")
        assert content(copy) == {"config.json": text, "text/a.en": text}
    inode = (copy / "config.json").stat().st_ino
    machine.pull(f"{url}/run")
    assert (copy / "config.json").stat().st_ino == inode, "it is fetched once"


def test_what_one_machine_sends_another_has(
    url: str, machine: Machine, other_machine: Machine
) -> None:
    path = machine.pull(url)
    assert content(path) == {}
    write(path, RUN)
    # Of this machine alone, or not whole.
    write(
        path,
        {
            "lock": "process 1",
            "compiled/program": "x",
            "metrics.unfinished": "1",
            "checkpoints/3.orbax-checkpoint-tmp/params/a": "th",
            "data/.hidden": "h",
        },
    )
    machine.push(url)
    assert stored(url) == RUN
    assert content(other_machine.pull(url)) == RUN


def test_globs_and_directories_are_fetched_and_lost_shards_go(
    url: str, machine: Machine, other_machine: Machine
) -> None:
    texts = {
        "shards/1.en": "one",
        "shards/2.en": "two",
        "shards/old/3.en": "three",
        "data/train.en": "without a manifest",
        "saved/train/state.json": "{}",
        "saved/test/state.json": "{}",
        "[a].en": "its name is no glob",
    }
    write(machine.pull(url), texts)
    machine.push(url)
    names = ["shards/*.en", "saved/train", "data/train.en", "[a].en"]
    copy = content(other_machine.pull(url, file_names=names))
    assert copy == {
        name: text
        for name, text in texts.items()
        if name not in ("shards/old/3.en", "saved/test/state.json")
    }
    assert "shards/old/3.en" in content(other_machine.pull(url, file_names=["**/*.en"]))
    store, root = fsspec.core.url_to_fs(url)
    store.rm_file(f"{root}/shards/2.en")
    copy = content(other_machine.pull(url, file_names=["shards/*.en"]))
    assert "shards/1.en" in copy and "shards/2.en" not in copy


@pytest.mark.parametrize("url", ["memory"], indirect=True)
def test_a_name_may_have_superfluous_parts(
    url: str, machine: Machine, other_machine: Machine
) -> None:
    texts = {"a.en": "one", "shards/1.en": "two", "shards/2.en": "three"}
    texts |= {"saved/state.json": "{}", "b": "not asked for"}
    write(machine.pull(url), texts)
    machine.push(url)
    names = ["./a.en", "shards//1.en", "old/../shards/2.en", "saved/"]
    copy = content(other_machine.pull(url, file_names=names))
    assert copy == {name: text for name, text in texts.items() if name != "b"}
    assert content(other_machine.pull(url, file_names=[""])) == copy, "of no file"


def test_a_run_moves_to_another_machine_and_back(
    url: str, machine: Machine, other_machine: Machine, local_run: pathlib.Path
) -> None:
    second = other_machine.pull(url)
    # It goes on: a newer checkpoint, and the old one goes.
    write(second, {"starts.jsonl": "first\nsecond\n", "metrics.jsonl": "1\n2\n3\n"})
    (second / "checkpoints/2/params/a").unlink()
    (second / "checkpoints/2/files.json").unlink()
    write(second, {"checkpoints/3/files.json": "seal", "checkpoints/3/params/a": "3"})
    other_machine.push(url)
    assert stored(url) == content(second)
    # What the first machine had made in the meantime is of a run that is over.
    write(local_run, {"checkpoints/4/files.json": "4", "metrics.jsonl": "1\n2\nx\n"})
    with pytest.raises(files.SupersededError, match="another run has begun in"):
        machine.push(url)
    assert stored(url) == content(second)
    assert content(machine.pull(url)) == content(second)
    assert checkpoint_store.steps(local_run / "checkpoints") == [3]


def test_a_reader_keeps_no_checkpoint_that_training_has_pruned(
    url: str, machine: Machine, other_machine: Machine, local_run: pathlib.Path
) -> None:
    reader = other_machine.pull(url)
    assert checkpoint_store.steps(reader / "checkpoints") == [2]
    shutil.rmtree(local_run / "checkpoints/2")
    write(
        local_run, {"checkpoints/3/files.json": "seal", "checkpoints/3/params/a": "3"}
    )
    machine.push(url)
    # The same start: the reader is no older run.
    other_machine.pull(url)
    assert checkpoint_store.steps(reader / "checkpoints") == [3]
    # A store that has lost its checkpoints takes none from a reader.
    store, root = fsspec.core.url_to_fs(url)
    store.rm(f"{root}/checkpoints", recursive=True)
    other_machine.pull(url)
    assert checkpoint_store.steps(reader / "checkpoints") == [3]


def averages(texts: dict[str, str]) -> dict[str, str]:
    """Return the files of averages alone."""
    return {name: text for name, text in texts.items() if name[:9] == "averaged/"}


def test_the_copy_of_an_average_goes_with_it(
    url: str, machine: Machine, other_machine: Machine, local_run: pathlib.Path
) -> None:
    def average(step: int) -> dict[str, str]:
        names = ("/files.json", "/params/a", ".safetensors")
        return {f"averaged/{step}{name}": str(step) for name in names}

    write(local_run, average(2))
    machine.push(url, folder="averaged")
    reader = other_machine.pull(url)
    assert averages(content(reader)) == average(2)
    shutil.rmtree(local_run / "averaged")
    write(local_run, average(3))
    machine.push(url, folder="averaged")
    assert averages(stored(url)) == average(3)
    other_machine.pull(url)
    assert averages(content(reader)) == average(3)
    assert averages(content(machine.pull(url))) == average(3)


def test_a_rewritten_average_leaves_no_file_of_the_earlier_one(
    url: str, machine: Machine, other_machine: Machine, local_run: pathlib.Path
) -> None:
    # The names of Orbax's data files are random; a full disk leaves out the copy.
    earlier = {
        "averaged/2/files.json": "a",
        "averaged/2/d/a": "1",
        "averaged/2.safetensors": "1",
    }
    later = {"averaged/2/files.json": "a b", "averaged/2/d/b": "2"}
    write(local_run, earlier)
    machine.push(url, folder="averaged")
    reader = other_machine.pull(url)
    assert averages(stored(url)) == averages(content(reader)) == earlier
    shutil.rmtree(local_run / "averaged")
    write(local_run, later)
    machine.push(url, folder="averaged")
    assert averages(stored(url)) == later
    # A run that still has the earlier one sends none of its files again.
    other_machine.push(url)
    assert averages(stored(url)) == later
    other_machine.pull(url)
    assert averages(content(reader)) == later
    other_machine.push(url)
    assert averages(stored(url)) == averages(content(machine.pull(url))) == later


def test_a_damaged_record_of_the_last_sync_is_named(
    url: str, machine: Machine, local_run: pathlib.Path
) -> None:
    [record] = local_run.parent.glob("*.mirror.json")
    for text in ("", "[]", '{"files": {"a": 1}}'):
        record.write_text(text)
        with pytest.raises(remote.RemoteError, match=f"{record.name} is damaged"):
            machine.pull(url)
    record.unlink()
    assert content(machine.pull(url)) == RUN


def test_what_was_not_sent_is_kept_by_the_machine_that_has_it(
    url: str, machine: Machine, local_run: pathlib.Path
) -> None:
    # A line more in a file of the same name, a new file, and one that is over.
    write(local_run, {"metrics.jsonl": "1\n2\n3\n", "checkpoints/3/files.json": "seal"})
    (local_run / "checkpoints/2/params/a").unlink()
    (local_run / "checkpoints/2/files.json").unlink()
    expected = content(local_run)
    # What is missing here may have been cleared away: it comes back.
    over = {name: text for name, text in RUN.items() if name[:14] == "checkpoints/2/"}
    assert content(machine.pull(url)) == {**expected, **over}
    for name in over:
        (local_run / name).unlink()
    machine.push(url)
    assert stored(url) == expected


def test_what_is_cleared_away_here_stays_there(
    url: str, machine: Machine, local_run: pathlib.Path
) -> None:
    shutil.rmtree(local_run / "checkpoints")
    shutil.rmtree(local_run / "data")
    machine.pull(url)
    machine.push(url)
    assert stored(url) == content(local_run) == RUN


def test_a_reader_does_not_touch_the_local_copy_of_a_living_run(
    url: str, machine: Machine, other_machine: Machine, local_run: pathlib.Path
) -> None:
    with files.held(local_run):
        second = other_machine.pull(url)
        write(second, {"starts.jsonl": "first\nsecond\n"})
        other_machine.push(url)
        # decode, say, while the first run does not know yet.
        assert content(machine.pull(url)) == RUN | {
            "lock": (local_run / "lock").read_text()
        }
        with pytest.raises(files.SupersededError):
            machine.push(url)
    # Once it has ended, the local copy follows the store.
    assert machine.pull(url) == local_run
    assert (local_run / "starts.jsonl").read_text() == "first\nsecond\n"


def test_what_another_run_has_superseded_is_set_aside(
    url: str, machine: Machine, other_machine: Machine, local_run: pathlib.Path
) -> None:
    second = other_machine.pull(url)
    write(second, {"starts.jsonl": "first\nsecond\n"})
    other_machine.push(url)
    unsent = {"evaluations/test.json": "41", "metrics.jsonl": "1\n2\n3\n"}
    write(local_run, unsent)
    machine.pull(url)
    assert content(local_run) == stored(url)
    [aside] = local_run.parent.glob("*.superseded-*")
    assert content(aside) == unsent


def test_a_follower_sets_aside_what_it_has_not_sent(
    url: str, machine: Machine, local_run: pathlib.Path
) -> None:
    """It wrote the run before, and was killed; another process writes it now."""
    unsent = {
        "checkpoints/3/files.json": "seal",
        "checkpoints/3/params/a": "3",
        "metrics.jsonl": "1\n2\n3\n",
    }
    write(local_run, unsent)
    machine.pull(url, is_follower=True)
    assert content(local_run) == stored(url) == RUN
    [aside] = local_run.parent.glob("*.superseded-*")
    assert content(aside) == unsent


@pytest.mark.usefixtures("local_run")
def test_only_what_is_asked_for_is_fetched(url: str, other_machine: Machine) -> None:
    assert content(other_machine.pull(url, file_names=["config.json"])) == {
        "config.json": "{}"
    }
    copy = content(other_machine.pull(url, skip=["checkpoints"]))
    assert copy == {k: v for k, v in RUN.items() if not k.startswith("checkp")}
    # The rest comes when it is asked for, and nothing was lost there.
    assert content(other_machine.pull(url)) == RUN == stored(url)


def test_who_only_reads_sends_only_what_it_has_written(
    url: str, machine: Machine, other_machine: Machine, local_run: pathlib.Path
) -> None:
    reader = other_machine.pull(url, skip=["checkpoints"])
    write(reader, {"evaluations/test.json": "41"})
    # The run goes on in the meantime.
    write(local_run, {"starts.jsonl": "first\nsecond\n", "metrics.jsonl": "1\n2\n3\n"})
    machine.push(url)
    other_machine.push(url, folder="evaluations")
    assert stored(url) == {**content(local_run), "evaluations/test.json": "41"}


URL = "memory://bucket/run"


def test_a_directory_that_is_replaced_has_no_seal_until_it_is_whole(
    url: str,
    machine: Machine,
    other_machine: Machine,
    local_run: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    write(local_run, {"data/train.source": "other", "data/train.target": "new"})
    store, _ = fsspec.core.url_to_fs(url)

    def cut(names: list[str], targets: list[str]) -> None:
        store.put_file(names[0], targets[0])
        raise OSError("cut")

    # fsspec has one object for a store; those of S3 have a `put` of their own.
    monkeypatch.setattr(store, "put", cut)
    with pytest.raises(remote.RemoteError, match="cut"):
        machine.push(url)
    monkeypatch.undo()
    copy = content(other_machine.pull(url))
    assert not [name for name in copy if name.startswith("data")]
    machine.pull(url)
    machine.push(url)
    assert stored(url) == content(local_run)


def test_files_of_earlier_data_go_with_it(
    url: str, machine: Machine, other_machine: Machine, local_run: pathlib.Path
) -> None:
    write(local_run, {"data/source.model": "s", "data/manifest.json": "two sides"})
    machine.push(url)
    other = other_machine.pull(url)  # before the data changes
    shutil.rmtree(local_run / "data")
    write(local_run, {"data/shared.model": "v", "data/manifest.json": "one for both"})
    machine.pull(url)  # as the start after a kill does
    machine.push(url)
    expected = {name: text for name, text in RUN.items() if name[:5] != "data/"} | {
        "data/shared.model": "v",
        "data/manifest.json": "one for both",
    }
    assert stored(url) == expected
    other_machine.pull(url)
    assert content(other) == expected == content(machine.pull(url))


@pytest.mark.parametrize("has_started", [False, True])
def test_of_two_new_runs_the_later_does_not_replace_the_others_data(
    url: str, machine: Machine, other_machine: Machine, has_started: bool
) -> None:
    path, other = machine.pull(url), other_machine.pull(url)
    run = RUN if has_started else {k: v for k, v in RUN.items() if k[:5] == "data/"}
    write(path, run)
    machine.push(url)
    write(other, {"data/manifest.json": "n", "data/vocabulary.model": "v"})
    message = "run has begun in" if has_started else "run has prepared other data in"
    for folder in ("data", ""):
        with pytest.raises(files.SupersededError, match=f"{message} {url} since"):
            other_machine.push(url, folder=folder)
    assert stored(url) == run


def test_shared_data_of_two_machines_is_that_of_the_first(
    url: str, machine: Machine, other_machine: Machine
) -> None:
    mark = "manifest.json"
    path, other = machine.pull(url, mark=mark), other_machine.pull(url, mark=mark)

    def manifest(digest: str, *, time: int, source: str = "s") -> dict[str, str]:
        record = {"settings": {}, "vocabulary": "v", "files": {"train": digest}}
        text = {"train": {"source": {"modified_ns": time, "sha256": source}}}
        return {mark: json.dumps(record | {"text": text})}

    write(path, manifest("a", time=1))
    machine.push(url)
    first = stored(url)
    # Lines that are left out may differ: the token files are equal.
    for other_data in (manifest("b", time=2), manifest("a", time=2, source="t")):
        write(other, other_data)
        with pytest.raises(files.SupersededError, match="prepared other data"):
            other_machine.push(url)
        assert stored(url) == first
    # The same data, of a copy of the text.
    write(other, manifest("a", time=2))
    other_machine.push(url)
    assert stored(url) == manifest("a", time=2)
    # Who has the data of the store may replace it.
    machine.pull(url, mark=mark)
    write(path, manifest("bb", time=3))
    machine.push(url)
    assert stored(url) == manifest("bb", time=3)


def test_data_whose_sending_was_cut_is_sent_again(
    url: str, machine: Machine, local_run: pathlib.Path
) -> None:
    write(local_run, {"data/manifest.json": "longer", "data/train.source": "changed"})
    [record] = local_run.parent.glob("*.mirror.json")
    earlier = record.read_bytes()
    machine.push(url, folder="data")
    record.write_bytes(earlier)  # It was killed before it wrote the record.
    machine.push(url, folder="data")
    assert stored(url) == content(local_run)


@pytest.mark.parametrize("url", ["memory"], indirect=True)
def test_a_pull_that_is_cut_leaves_no_file_of_earlier_data(
    url: str,
    machine: Machine,
    other_machine: Machine,
    local_run: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    other = other_machine.pull(url)
    (local_run / "data/train.source").unlink()
    write(local_run, {"data/train.both": "new", "data/manifest.json": "other"})
    machine.push(url)

    def fail(*arguments: object, **options: object) -> None:
        raise OSError("cut")

    with monkeypatch.context() as patch:
        patch.setattr(type(fsspec.core.url_to_fs(url)[0]), "get", fail)
        with pytest.raises(remote.RemoteError, match="cut"):
            other_machine.pull(url)
    other_machine.pull(url)
    other_machine.push(url)
    assert stored(url) == content(other) == content(local_run)


def test_a_damaged_copy_comes_again_and_is_not_sent(
    url: str, machine: Machine, local_run: pathlib.Path
) -> None:
    write(local_run, {"checkpoints/2/params/a": "tw", "checkpoints/2/params/b": "?"})
    machine.push(url)
    assert stored(url)["checkpoints/2/params/a"] == "two"
    assert machine.open(url).pull_again(local_run / "checkpoints/2")
    assert content(local_run) == RUN
    assert not machine.open(url).pull_again(local_run / "checkpoints/3")


def test_a_place_with_other_files_is_no_place_for_prepared_data(
    url: str, machine: Machine, other_machine: Machine
) -> None:
    path = machine.pull(url, mark="manifest.json")
    write(path, {"train.source": "t", "manifest.json": "m"})
    machine.push(url)
    copy = other_machine.pull(url, mark="manifest.json")
    assert content(copy) == {"train.source": "t", "manifest.json": "m"}
    store, root = fsspec.core.url_to_fs(url)
    store.rm_file(f"{root}/manifest.json")
    # Who has it whole sends it again; who has not cannot tell what it is.
    machine.pull(url, mark="manifest.json")
    shutil.rmtree(copy)
    with pytest.raises(OSError, match=r"is not empty and has no manifest.json"):
        other_machine.pull(url, mark="manifest.json")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("", "must have a name"),
        ("gs:/bucket/run", "two slashes"),
        ("file:///", "names no directory"),
        ("github://a/b", "github://a/b: "),
        ("nowhere://a/b", "nowhere://a/b: .*nowhere"),
    ],
)
def test_a_name_that_means_no_place_is_refused(name: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        remote.open_directory(name)


def test_a_directory_that_is_not_whole_is_not_there(
    url: str, machine: Machine, other_machine: Machine
) -> None:
    path = machine.pull(url)
    cut = {k: v for k, v in RUN.items() if k != "checkpoints/2/files.json"}
    cut = {k: v for k, v in cut.items() if k != "data/manifest.json"}
    write(path, cut)
    machine.push(url)
    copy = content(other_machine.pull(url))
    assert sorted(copy) == ["config.json", "metrics.jsonl", "starts.jsonl"]


def test_a_store_that_lost_all_is_not_taken_for_a_new_run(
    url: str, machine: Machine, local_run: pathlib.Path
) -> None:
    store, root = fsspec.core.url_to_fs(url)
    store.rm(root, recursive=True)
    with pytest.raises(remote.RemoteError, match="is empty, but its local copy"):
        machine.pull(url)
    assert content(local_run) == RUN


def test_a_run_begins_anew_when_its_local_copy_is_removed(
    url: str, machine: Machine, local_run: pathlib.Path
) -> None:
    store, root = fsspec.core.url_to_fs(url)
    store.rm(root, recursive=True)
    shutil.rmtree(local_run)
    assert content(machine.pull(url)) == {}
    write(local_run, RUN)
    machine.push(url)
    assert stored(url) == RUN


def test_names_that_lead_out_of_the_local_copy_are_not_fetched(
    machine: Machine,
) -> None:
    store = fsspec.filesystem("memory")
    try:
        for name in ("/b/run/../../../out", "/b/run//tmp/out", "/b/run/x/../../../y"):
            store.store[name] = store.open("/b/run/kept", "wb")
        store.pipe("/b/run/kept", b"k")
        path = machine.pull("memory://b/run")
        assert content(path) == {"kept": "k"}
        assert [p.name for p in path.parent.iterdir() if p.is_dir()] == [path.name]
    finally:
        store.store.clear()


def test_a_store_that_fails_is_told_with_its_name(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*args: object, **kwargs: object) -> None:
        raise RuntimeError("quota\nexceeded")

    path = machine.pull(URL)
    write(path, RUN)
    store, _ = fsspec.core.url_to_fs(URL)
    monkeypatch.setattr(type(store), "put", fails)
    with pytest.raises(remote.RemoteError, match=r"^memory://bucket/run: quota exceed"):
        machine.push(URL)
    monkeypatch.undo()
    machine.push(URL)
    assert stored(URL) == RUN
    store.store.clear()


@pytest.mark.parametrize("marked", ["", "checkpoints/"])
def test_the_mark_of_a_folder_is_no_file(
    s3: object_store.ObjectStore, machine: Machine, marked: str
) -> None:
    url = f"{s3.make_bucket()}/run"
    store, root = fsspec.core.url_to_fs(url)
    store.pipe_file(f"{root}/{marked}", b"")
    path = machine.pull(url)
    assert not path.exists() or content(path) == {}
    write(path, RUN)
    machine.push(url)
    assert content(machine.pull(url)) == RUN


def test_a_folder_that_cannot_be_listed_is_not_taken_for_an_empty_one(
    tmp_path: pathlib.Path, machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"file://{tmp_path}/bucket/run"
    write(machine.pull(url), RUN)
    machine.push(url)
    store, _ = fsspec.core.url_to_fs(url)
    list_directory = store.ls

    def fail(path: str, **options: Any) -> list[dict[str, Any]]:
        if path.endswith("checkpoints"):
            raise PermissionError("stale file handle")
        return list_directory(path, **options)

    monkeypatch.setattr(store, "ls", fail)
    with pytest.raises(remote.RemoteError, match="stale file handle"):
        machine.pull(url)
    monkeypatch.undo()
    assert content(machine.pull(url)) == RUN


def test_a_bucket_that_is_missing_is_not_made(
    s3: object_store.ObjectStore, machine: Machine
) -> None:
    url = "s3://misspelt-bucket/run"
    write(machine.pull(url), RUN)
    with pytest.raises(remote.RemoteError, match=rf"{url}: .*bucket does not exist"):
        machine.push(url)
    assert not fsspec.filesystem("s3").exists("misspelt-bucket")
