"""Stores that fail, lose files or hold what is not whole."""

import pathlib
import shutil

import fsspec
import pytest

from tests import object_store
from tests.core.machines import RUN, Machine, content, stored, write
from vaswani_jax.core import remote

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


def test_a_bucket_that_is_missing_is_not_made(
    s3: object_store.ObjectStore, machine: Machine
) -> None:
    url = "s3://misspelt-bucket/run"
    write(machine.pull(url), RUN)
    with pytest.raises(remote.RemoteError, match=rf"{url}: .*bucket does not exist"):
        machine.push(url)
    assert not fsspec.filesystem("s3").exists("misspelt-bucket")
