"""A saved checkpoint is restored, and a damaged one is refused."""

import errno
import gc
import logging
import os
import pathlib
import shutil
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import orbax.checkpoint as ocp
import pytest

from tests.checkpoints import damages, trees
from vaswani_jax.checkpoints import orbax_files, store

THREE = {1: 1.0, 2: 2.0, 3: 3.0}
BOTH = ["params", "optimizer"]


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """Checkpoints of three steps, which no test changes."""
    directory = tmp_path_factory.mktemp("three")
    trees.save(directory, THREE)
    return directory


@pytest.fixture
def directory(original: pathlib.Path, tmp_path: pathlib.Path) -> pathlib.Path:
    """A copy of `original`, for one test."""
    return pathlib.Path(shutil.copytree(original, tmp_path, dirs_exist_ok=True))


def test_restored_checkpoint_equals_what_was_saved(directory: pathlib.Path) -> None:
    checkpoint = store.restore(directory, 2, names=["params"])
    jax.tree.map(
        np.testing.assert_array_equal, checkpoint.items["params"], trees.params(2.0)
    )
    assert (checkpoint.step, checkpoint.record) == (2, {"vocabulary": "abc"})
    assert list(checkpoint.items) == ["params"]


def test_reading_makes_no_directory(tmp_path: pathlib.Path) -> None:
    assert store.steps(tmp_path / "checkpoints") == []
    with pytest.raises(store.CheckpointError, match="no checkpoint of step 1 in"):
        store.restore(tmp_path / "checkpoints", 1, names=[])
    assert list(tmp_path.iterdir()) == []


def test_only_the_newest_are_kept(tmp_path: pathlib.Path) -> None:
    trees.save(tmp_path, THREE, keep=2)
    assert store.steps(tmp_path) == [2, 3]


@pytest.mark.parametrize(
    ("irregular_steps", "kept_steps"),
    [([], [3, 4]), ([3], [2, 4]), ([4], [2, 3, 4]), ([2, 4], [1, 3, 4])],
)
def test_a_checkpoint_of_a_signal_is_kept_beside_the_others_while_it_is_the_newest(
    directory: pathlib.Path, irregular_steps: list[int], kept_steps: list[int]
) -> None:
    trees.save(directory, {4: 4.0})
    store.prune(directory, keep=2, irregular_steps=irregular_steps)
    assert store.steps(directory) == kept_steps


def test_saving_a_step_again_leaves_the_first(directory: pathlib.Path) -> None:
    trees.save(directory, {3: 9.0}, vocabulary="xyz")
    assert store.restore(directory, 3, names=[]).record["vocabulary"] == "abc"


def remove(directory: pathlib.Path) -> None:
    for file in damages.data_files(directory):
        file.unlink()


@pytest.mark.parametrize("damage", [damages.truncate, damages.flip, remove])
def test_damaged_checkpoint_is_refused_by_name(
    directory: pathlib.Path, damage: Callable[[pathlib.Path], None]
) -> None:
    assert damages.data_files(directory / "3"), "Orbax keeps the arrays elsewhere"
    damage(directory / "3")
    with pytest.raises(store.CheckpointError, match=r"/3 is damaged"):
        store.restore(directory, 3, names=["params"])
    # The one before it is whole.
    store.restore(directory, 2, names=["params"])


def test_a_checkpoint_without_any_digest_is_damaged(directory: pathlib.Path) -> None:
    (directory / "3" / store.SEAL).unlink()
    with pytest.raises(store.CheckpointError, match=r"/3 is damaged: files.json"):
        store.restore(directory, 3, names=["params"])


def test_an_old_one_goes_when_the_new_one_would_outlast_a_power_cut(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trees.save(tmp_path, {1: 1.0})
    on_disk: set[pathlib.Path] = set()
    missing = []
    sync, delete = os.fsync, store.delete

    def record_sync(handle: int) -> None:
        on_disk.add(pathlib.Path(os.readlink(f"/proc/self/fd/{handle}")))
        sync(handle)

    def check_before_delete(directory: pathlib.Path, step: int) -> None:
        new = {tmp_path, tmp_path / "2", *(tmp_path / "2").rglob("*")}
        missing.append(new - on_disk)
        assert step == 1
        delete(directory, step)

    monkeypatch.setattr(os, "fsync", record_sync)
    monkeypatch.setattr(store, "delete", check_before_delete)
    trees.save(tmp_path, {2: 2.0}, keep=1)
    assert missing == [set()]
    assert store.steps(tmp_path) == [2]


def test_a_checkpoint_has_its_seal_before_it_has_its_name(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seal = store.seal

    def killed_after(path: pathlib.Path) -> None:
        seal(path)
        raise KeyboardInterrupt

    monkeypatch.setattr(store, "seal", killed_after)
    with pytest.raises(KeyboardInterrupt):
        trees.save(tmp_path, {1: 1.0})
    assert store.steps(tmp_path) == []
    assert list(tmp_path.iterdir())
    store.clear_unfinished(tmp_path)
    assert not list(tmp_path.iterdir())


def test_fewer_to_keep_make_room_on_a_full_disk(
    directory: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = store.shutil.disk_usage(directory)
    monkeypatch.setattr(store.shutil, "disk_usage", lambda path: usage._replace(free=0))
    with pytest.raises(store.NotWrittenError, match="lower config"):
        trees.save(directory, {4: 4.0}, keep=1)
    assert store.steps(directory) == [3]
    store.restore(directory, 3, names=BOTH)


def test_a_disk_without_room_for_a_directory_has_none_for_a_checkpoint(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(path: pathlib.Path, *arguments: object, **options: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", str(path))

    with monkeypatch.context() as patch:
        patch.setattr(pathlib.Path, "mkdir", fail)
        with pytest.raises(store.NotWrittenError, match=r"No space left .* free space"):
            trees.save(tmp_path / "checkpoints", {1: 1.0})
    assert list(tmp_path.iterdir()) == []


def test_what_cannot_be_deleted_stays_with_a_warning(
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    delete = store.delete

    def fail_for_the_first(directory: pathlib.Path, step: int) -> None:
        if step == 1:
            raise PermissionError(1, "Operation not permitted")
        delete(directory, step)

    monkeypatch.setattr(store, "delete", fail_for_the_first)
    trees.save(tmp_path, THREE | {4: 4.0, 5: 5.0}, keep=2)
    assert store.steps(tmp_path) == [1, 4, 5]
    assert caplog.records
    for record in caplog.records:
        assert record.levelno == logging.WARNING
        assert f"{tmp_path / '1'} could not be deleted" in record.message


def test_damaged_ones_go_beside_the_directory_that_a_link_names(
    original: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    shutil.copytree(original, tmp_path / "large" / "run")
    link = tmp_path / "checkpoints"
    link.symlink_to(tmp_path / "large" / "run")
    target = store.set_aside(link, [3], suffix="damaged")
    assert target == tmp_path / "large" / "run.damaged"
    assert (target / "3").is_dir() and 3 not in store.steps(link)


def test_a_copy_in_one_file_is_set_aside_under_the_name_of_its_checkpoint(
    tmp_path: pathlib.Path,
) -> None:
    directory, target = tmp_path / "averaged", tmp_path / "averaged.old"
    for path in (directory / "2", directory / "3", target / "3"):
        path.mkdir(parents=True)
    for folder, text in ((directory, "later"), (target, "earlier")):
        (folder / "3.safetensors").write_text(text)
    assert store.set_aside(directory, [2, 3], suffix="old") == target
    names = sorted(path.name for path in target.iterdir())
    assert names == ["2", "3", "3.1", "3.1.safetensors", "3.safetensors"]
    texts = [(target / f"{name}.safetensors").read_text() for name in ("3", "3.1")]
    assert texts == ["earlier", "later"]
    assert list(directory.iterdir()) == []


def test_what_cannot_be_sealed_does_not_stay(
    directory: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full_disk(path: pathlib.Path) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(store, "seal", full_disk)
        with pytest.raises(store.NotWrittenError, match="No space"):
            trees.save(directory, {4: 4.0})
    assert [path.name for path in sorted(directory.iterdir())] == ["1", "2", "3"]
    trees.save(directory, {4: 4.0}, keep=3)
    assert store.steps(directory) == [2, 3, 4]


def test_digests_of_earlier_versions_are_checked(tmp_path: pathlib.Path) -> None:
    items = {"params": trees.params(1.0)}
    for step, digest in ((1, store.digest(items["params"])), (2, "0" * 64)):
        record = {"vocabulary": "abc", "digests": {"params": digest}}
        store.save(tmp_path, store.Checkpoint(step, items, record), keep=9)
    # They are no part of the record, which an average of others would inherit.
    assert store.restore(tmp_path, 1, names=["params"]).record == {"vocabulary": "abc"}
    with pytest.raises(store.CheckpointError, match="digest of 'params'"):
        store.restore(tmp_path, 2, names=["params"])


def test_digest_sees_names_shapes_types_and_values() -> None:
    base = trees.params(1.0)
    other_name = {"dense": {"kernels": base["dense"]["kernel"]}}
    same_bytes = {"dense": {"kernel": base["dense"]["kernel"].reshape(3, 2)}}
    kernel = {"dense": {"kernel": base["dense"]["kernel"]}}
    as_int = {"dense": {"kernel": base["dense"]["kernel"].view(np.int32)}}
    variants = (base, trees.params(1.5), other_name, same_bytes, kernel, as_int)
    assert len({store.digest(variant) for variant in variants}) == len(variants)


def test_fingerprint_is_that_of_copies_alone(tmp_path: pathlib.Path) -> None:
    trees.save(tmp_path, {1: 1.0, 2: 2.0})
    shutil.copytree(tmp_path / "1", tmp_path / "copy")
    first, second, copy = (store.fingerprint(tmp_path / n) for n in ("1", "2", "copy"))
    assert first == copy != second


# Orbax leaves the other items of the failed save unawaited.
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_crash_while_writing_costs_nothing(
    directory: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full_disk(*args: object, **kwargs: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(ocp.JsonCheckpointHandler, "save", full_disk)
    monkeypatch.setattr(ocp.JsonCheckpointHandler, "async_save", full_disk)
    with pytest.raises(Exception, match="No space left"):
        trees.save(directory, {4: 4.0})
    monkeypatch.undo()
    gc.collect()
    assert store.steps(directory) == [1, 2, 3]
    store.restore(directory, 3, names=BOTH)
    trees.save(directory, {4: 4.0}, keep=3)
    assert store.steps(directory) == [2, 3, 4]


@pytest.mark.parametrize("error", [MemoryError(), OSError(24, "Too many open files")])
def test_a_whole_checkpoint_that_cannot_be_read_is_not_damaged(
    directory: pathlib.Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def fail(*args: object, **options: object) -> None:
        raise error

    monkeypatch.setattr(orbax_files, "read", fail)
    with pytest.raises(
        OSError, match=r"/3 is complete but cannot be read \("
    ) as raised:
        store.restore(directory, 3, names=BOTH)
    assert not isinstance(raised.value, store.CheckpointError)


def test_a_seal_that_cannot_be_read_is_not_damaged(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read_text = pathlib.Path.read_text

    def fail(path: pathlib.Path, *args: Any, **options: Any) -> str:
        if path.name == store.SEAL:
            raise OSError(5, "Input/output error", str(path))
        return read_text(path, *args, **options)

    trees.save(tmp_path, THREE)
    monkeypatch.setattr(pathlib.Path, "read_text", fail)
    with pytest.raises(OSError, match="Input/output error") as raised:
        store.restore(tmp_path, 3, names=BOTH)
    assert not isinstance(raised.value, store.CheckpointError)


def test_a_file_system_that_does_not_answer_costs_one_checkpoint(
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def fail(*_: object) -> None:
        raise OSError(errno.ESTALE, "stale file handle")

    for _ in range(2):
        with monkeypatch.context() as patch:
            patch.setattr(store, "steps", fail)
            patch.setattr(store.shutil, "disk_usage", fail)
            with pytest.raises(store.NotWrittenError, match="stale file handle"):
                trees.save(tmp_path, {1: 1.0})
        assert "nothing is deleted" in caplog.text
        # The second time it is there already, and stays.
        trees.save(tmp_path, {1: 1.0})
        assert store.steps(tmp_path) == [1]
        store.check_seal(tmp_path / "1")
