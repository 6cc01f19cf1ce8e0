"""Checkpoints: what is written comes back, and damage is told."""

import errno
import gc
import os
import pathlib

import jax
import numpy as np
import orbax.checkpoint as ocp
import pytest

from tests.checkpoints import damages
from vaswani_jax.checkpoints import average, select, store


def tree(value: float) -> dict[str, dict[str, np.ndarray]]:
    kernel = np.linspace(value, value + 1, 6, dtype=np.float32).reshape(2, 3)
    return {"dense": {"kernel": kernel, "bias": np.float32([value])}}


def filled(directory: pathlib.Path, *, keep: int = 3) -> store.Checkpoints:
    found = store.Checkpoints(directory, keep=keep)
    for step in (1, 2, 3):
        items = {"params": tree(float(step)), "optimizer": {"count": np.int32(step)}}
        found.save(step, items, {"vocabulary": "abc"})
    return found


def test_restored_checkpoint_equals_what_was_saved(tmp_path: pathlib.Path) -> None:
    filled(tmp_path).close()
    found = store.Checkpoints(tmp_path, keep=3).restore(2, ["params"])
    jax.tree.map(np.testing.assert_array_equal, found.items["params"], tree(2.0))
    assert found.record["vocabulary"] == "abc"
    assert list(found.items) == ["params"]


def test_only_the_newest_are_kept(tmp_path: pathlib.Path) -> None:
    assert filled(tmp_path, keep=2).steps() == [2, 3]


def test_saving_a_step_again_leaves_the_first(tmp_path: pathlib.Path) -> None:
    found = filled(tmp_path)
    found.save(3, {"params": tree(9.0)}, {"vocabulary": "xyz"})
    assert found.restore(3, ["params"]).record["vocabulary"] == "abc"


# Reads that are in flight when the first one fails end in exceptions nobody awaits.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("damage", ["truncate", "flip", "remove"])
def test_damaged_checkpoint_is_refused_by_name(
    tmp_path: pathlib.Path, damage: str
) -> None:
    filled(tmp_path).close()
    folder = tmp_path / "3" / "params"
    stored = [p for p in folder.rglob("*") if p.is_file() and p.parent.name == "d"]
    assert stored, "Orbax keeps the arrays elsewhere"
    for path in stored:
        content = path.read_bytes()
        if damage == "truncate":
            path.write_bytes(content[: len(content) // 2])
        elif damage == "flip":
            path.write_bytes(bytes(255 - byte for byte in content))
        else:
            path.unlink()
    with pytest.raises(store.CheckpointError, match=r"/3 is damaged"):
        store.Checkpoints(tmp_path, keep=3).restore(3, ["params"])
    # The one before it is whole.
    store.Checkpoints(tmp_path, keep=3).restore(2, ["params"])


def test_an_old_one_goes_when_the_new_one_would_outlast_a_power_cut(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = store.Checkpoints(tmp_path, keep=1)
    found.save(1, {"params": tree(1.0)}, {})
    on_disk: set[pathlib.Path] = set()
    missing = []
    sync, delete = os.fsync, ocp.CheckpointManager.delete

    def synced(handle: int) -> None:
        on_disk.add(pathlib.Path(os.readlink(f"/proc/self/fd/{handle}")))
        sync(handle)

    def deleted(self: ocp.CheckpointManager, step: int) -> None:
        new = {tmp_path, tmp_path / "2", *(tmp_path / "2").rglob("*")}
        missing.append(new - on_disk)
        assert step == 1
        delete(self, step)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(ocp.CheckpointManager, "delete", deleted)
    found.save(2, {"params": tree(2.0)}, {})
    assert missing == [set()]
    assert found.steps() == [2]


def test_fewer_to_keep_make_room_on_a_full_disk(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(tmp_path, keep=3)
    found = store.Checkpoints(tmp_path, keep=1)
    usage = store.shutil.disk_usage(tmp_path)
    monkeypatch.setattr(store.shutil, "disk_usage", lambda path: usage._replace(free=0))
    with pytest.raises(store.NotWrittenError, match="lower config"):
        found.save(4, {"params": tree(4.0)}, {})
    assert found.steps() == [3]
    found.restore(3, ["params", "optimizer"])


def test_what_cannot_be_deleted_is_told_and_ends_nothing(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    found = store.Checkpoints(tmp_path, keep=2, warn=told.append)
    delete = ocp.CheckpointManager.delete

    def held(self: ocp.CheckpointManager, step: int) -> None:
        if step == 1:
            raise PermissionError(1, "Operation not permitted")
        delete(self, step)

    monkeypatch.setattr(ocp.CheckpointManager, "delete", held)
    for step in range(1, 6):
        found.save(step, {"params": tree(float(step))}, {})
    assert found.steps() == [1, 4, 5]
    assert all(f"{tmp_path / '1'} could not be deleted" in text for text in told)
    assert told


def test_damaged_ones_go_beside_the_directory_that_a_link_names(
    tmp_path: pathlib.Path,
) -> None:
    filled(tmp_path / "large" / "run", keep=3)
    (tmp_path / "checkpoints").symlink_to(tmp_path / "large" / "run")
    found = store.Checkpoints(tmp_path / "checkpoints", keep=3)
    aside = found.set_aside([3], word="damaged")
    assert aside == tmp_path / "large" / "run.damaged"
    assert (aside / "3").is_dir() and 3 not in found.steps()


def test_what_cannot_be_sealed_does_not_stay(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = filled(tmp_path)

    def full(path: pathlib.Path) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(store, "seal", full)
        with pytest.raises(store.NotWrittenError, match="No space"):
            found.save(4, {"params": tree(4.0)}, {})
    assert found.steps() == [1, 2, 3]
    found.save(4, {"params": tree(4.0)}, {})
    assert found.steps() == [2, 3, 4]


def test_a_damaged_one_is_left_out_of_the_last_ones(tmp_path: pathlib.Path) -> None:
    found = filled(tmp_path)
    damages.flip(tmp_path / "2")
    told: list[str] = []
    assert average.last_good(found, 2, log=told.append) == [1, 3]
    assert f"checkpoint {tmp_path / '2'} is damaged" in told[0]
    assert "left out of the average" in told[0]
    for number in ("1", "3"):
        damages.flip(tmp_path / number)
    with pytest.raises(store.CheckpointError, match="can be averaged"):
        average.last_good(found, 2, log=told.append)


def test_values_other_than_those_saved_do_not_match_the_digest(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = store.Checkpoints(tmp_path, keep=3)
    with monkeypatch.context() as patch:
        patch.setattr(store, "digest", lambda tree: "0" * 64)
        found.save(1, {"params": tree(1.0)}, {"vocabulary": "abc"})
    with pytest.raises(store.CheckpointError, match="digest of 'params'"):
        found.restore(1, ["params"])


def test_digest_sees_names_shapes_types_and_values() -> None:
    base = tree(1.0)
    other_name = {"dense": {"kernels": base["dense"]["kernel"]}}
    same_bytes = {"dense": {"kernel": base["dense"]["kernel"].reshape(3, 2)}}
    kernel = {"dense": {"kernel": base["dense"]["kernel"]}}
    as_int = {"dense": {"kernel": base["dense"]["kernel"].view(np.int32)}}
    variants = (base, tree(1.5), other_name, same_bytes, kernel, as_int)
    assert len({store.digest(variant) for variant in variants}) == len(variants)


# Orbax leaves the other items of the failed save unawaited.
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_crash_while_writing_costs_nothing(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = filled(tmp_path)

    def full_disk(*args: object, **kwargs: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(ocp.JsonCheckpointHandler, "save", full_disk)
    monkeypatch.setattr(ocp.JsonCheckpointHandler, "async_save", full_disk)
    with pytest.raises(Exception, match="No space left"):
        found.save(4, {"params": tree(4.0)}, {"vocabulary": "abc"})
    monkeypatch.undo()
    gc.collect()
    again = store.Checkpoints(tmp_path, keep=3)
    assert again.steps() == [1, 2, 3]
    again.restore(3, ["params", "optimizer"])
    again.save(4, {"params": tree(4.0)}, {"vocabulary": "abc"})
    assert again.steps() == [2, 3, 4]


def test_average_is_the_mean_of_the_parameters(tmp_path: pathlib.Path) -> None:
    mean = average.average_params(filled(tmp_path), [1, 2, 3])
    jax.tree.map(
        lambda got, want: np.testing.assert_allclose(got, want, rtol=1e-6),
        mean.items["params"],
        tree(2.0),
    )
    assert mean.record["averaged"] == [1, 2, 3]


def test_checkpoints_of_two_vocabularies_are_not_averaged(
    tmp_path: pathlib.Path,
) -> None:
    found = filled(tmp_path)
    found.save(4, {"params": tree(4.0)}, {"vocabulary": "xyz"})
    with pytest.raises(store.CheckpointError, match=r"xyz.*abc"):
        average.average_params(found, [3, 4])


def test_names_select_checkpoints(tmp_path: pathlib.Path) -> None:
    found = filled(tmp_path / "checkpoints")
    average.save_average(tmp_path, average.average_params(found, [1, 3]))

    def bias(name: str) -> float:
        params = select.select(tmp_path, name).items["params"]
        return float(params["dense"]["bias"][0])

    names = ("newest", "2", "average:2", "averaged")
    assert [bias(name) for name in names] == [3.0, 2.0, 2.5, 2.0]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("7", "no checkpoint of step 7"),
        ("average:4", "needs 4 checkpoints"),
        ("average:0", "needs 0 checkpoints"),
        ("latest", "newest, best, averaged"),
        ("best", "there is no"),
    ],
)
def test_wrong_names_are_refused(
    tmp_path: pathlib.Path, name: str, message: str
) -> None:
    filled(tmp_path / "checkpoints")
    with pytest.raises(store.CheckpointError, match=message):
        select.select(tmp_path, name)
