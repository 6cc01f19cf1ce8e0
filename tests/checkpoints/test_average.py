"""An average of checkpoints is their mean, and replaces the one before."""

import logging
import pathlib
import shutil
import threading

import pytest

from tests.checkpoints import damages, trees
from vaswani_jax.checkpoints import average, select, store
from vaswani_jax.core import files


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """A workdir with checkpoints, and an average of value 2.5 of two of them."""
    workdir = tmp_path_factory.mktemp("run")
    trees.save(workdir / "checkpoints", trees.VALUES)
    save_average(workdir, [8, 128])
    return workdir


@pytest.fixture
def workdir(original: pathlib.Path, tmp_path: pathlib.Path) -> pathlib.Path:
    """A copy of `original`, for one test."""
    return pathlib.Path(shutil.copytree(original, tmp_path, dirs_exist_ok=True))


def save_average(workdir: pathlib.Path, steps: list[int]) -> pathlib.Path:
    mean = average.average_params(workdir / "checkpoints", steps)
    return average.save_average(workdir, mean)


def saved_value(workdir: pathlib.Path) -> float:
    return trees.value_of(select.select(workdir, "averaged"))


def test_average_is_summed_in_float64(tmp_path: pathlib.Path) -> None:
    """In float32, 2^24 + 1 is 2^24."""
    trees.save(tmp_path, {1: 2.0**24, 2: 1.0, 3: 1.0, 4: 0.0})
    mean = average.average_params(tmp_path, [3, 1, 4, 2])
    assert trees.value_of(mean) == 2.0**22 + 0.5
    assert (mean.step, mean.record["averaged"]) == (4, [1, 2, 3, 4])


def test_checkpoints_of_two_vocabularies_are_not_averaged(
    tmp_path: pathlib.Path,
) -> None:
    trees.save(tmp_path, {3: 3.0})
    trees.save(tmp_path, {4: 4.0}, vocabulary="xyz")
    with pytest.raises(store.CheckpointError, match=r"xyz.*abc"):
        average.average_params(tmp_path, [3, 4])


@pytest.mark.parametrize(
    ("first", "second", "names"),
    [
        (
            {"run": {"id": "aa", "workdir": "/runs/a"}},
            {"run": {"id": "bb", "workdir": "/runs/b"}},
            ["run aa of /runs/a", "run bb of /runs/b"],
        ),
        # Earlier versions recorded no identity.
        (
            {"config": {"seed": 1}, "training_text": "t"},
            {"config": {"seed": 2}, "training_text": "t"},
            ["config.seed=1", "config.seed=2"],
        ),
        ({"training_text": "t"}, {"training_text": "u"}, ["text t", "text u"]),
        # A run that was resumed with other changeable settings is one run.
        (
            {"run": {"id": "aa", "workdir": "/a"}, "config": {"seed": 1}},
            {"run": {"id": "aa", "workdir": "/moved"}, "config": {"seed": 1}},
            [],
        ),
        (
            {"config": {"training": {"num_steps": 8}}},
            {"config": {"training": {"num_steps": 9}}},
            [],
        ),
        ({}, {"run": {"id": "bb", "workdir": "/b"}}, []),
    ],
)
def test_checkpoints_of_different_runs_are_averaged_with_a_warning(
    tmp_path: pathlib.Path,
    caplog: pytest.LogCaptureFixture,
    first: dict[str, object],
    second: dict[str, object],
    names: list[str],
) -> None:
    trees.save(tmp_path, {1: 1.0}, **first)
    trees.save(tmp_path, {2: 3.0}, **second)
    assert trees.value_of(average.average_params(tmp_path, [1, 2])) == 2.0
    warnings = [text for text in caplog.messages if "different runs" in text]
    assert len(warnings) == bool(names)
    assert all(name in warnings[0] for name in names)


def test_moving_averages_are_averaged_and_a_mixture_warns(
    tmp_path: pathlib.Path, caplog: pytest.LogCaptureFixture
) -> None:
    trees.save(tmp_path, {1: 1.0})
    for step in (2, 3):
        items = {"params": trees.params(64.0), store.AVERAGE: trees.params(float(step))}
        checkpoint = store.Checkpoint(step, items, {"vocabulary": "abc"})
        store.save(tmp_path, checkpoint, keep=9)
    assert trees.value_of(average.average_params(tmp_path, [2, 3])) == 2.5
    assert not caplog.records
    assert trees.value_of(average.average_params(tmp_path, [1, 2])) == 1.5
    [record] = caplog.records
    assert "only the checkpoints [2] of [1, 2] have a moving average" in record.message


def test_a_damaged_one_is_left_out_of_the_last_ones(
    tmp_path: pathlib.Path, caplog: pytest.LogCaptureFixture
) -> None:
    trees.save(tmp_path, {1: 1.0, 2: 2.0, 3: 3.0})
    damages.flip(tmp_path / "2")
    assert average.last_good(tmp_path, 2) == [1, 3]
    [record] = caplog.records
    assert record.levelno == logging.WARNING
    assert f"checkpoint {tmp_path / '2'} is damaged" in record.message
    assert "left out of the average" in record.message
    for number in ("1", "3"):
        damages.flip(tmp_path / number)
    with pytest.raises(store.CheckpointError, match="can be averaged"):
        average.last_good(tmp_path, 2)


@pytest.mark.parametrize("steps", [[8, 16], [16, 128], [128, 1024]])
def test_a_saved_average_replaces_that_of_an_earlier_a_later_or_the_same_step(
    workdir: pathlib.Path, steps: list[int]
) -> None:
    # A crash has left half of another average.
    trees.save(files.sibling(workdir / "averaged", "unfinished"), {steps[-1]: 0.0})
    path = save_average(workdir, steps)
    assert path == workdir / "averaged" / str(steps[-1])
    assert [checkpoint.name for checkpoint in path.parent.iterdir()] == [path.name]
    mean = (trees.VALUES[steps[0]] + trees.VALUES[steps[1]]) / 2
    assert saved_value(workdir) == mean
    assert {path.name for path in workdir.iterdir()} == {
        ".averaged.vaswani_jax_lock",
        "averaged",
        "checkpoints",
    }


def test_the_old_average_stays_when_the_new_one_cannot_be_written(
    workdir: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full_disk(*args: object, **options: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(store, "save", full_disk)
        with pytest.raises(OSError, match="No space left"):
            save_average(workdir, [16, 1024])
    assert saved_value(workdir) == 2.5
    save_average(workdir, [16, 1024])
    assert saved_value(workdir) == 5.0


def test_the_old_average_is_found_when_a_kill_came_before_the_new_one(
    workdir: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rename, calls = files.os.rename, []

    def die_at_the_second(old: pathlib.Path, new: pathlib.Path) -> None:
        calls.append(new)
        if len(calls) == 2:
            raise KeyboardInterrupt
        rename(old, new)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(files.os, "rename", die_at_the_second)
        save_average(workdir, [16, 1024])
    assert saved_value(workdir) == 2.5
    (workdir / "config.json").write_text('{"data": {"directory": ""}}')
    start = select.starting_point(workdir, "")
    assert trees.value_of(start.checkpoint) == 2.5
    save_average(workdir, [16, 1024])
    assert saved_value(workdir) == 5.0


def test_two_programs_write_an_average_one_after_the_other(
    workdir: pathlib.Path,
) -> None:
    second = threading.Thread(target=save_average, args=(workdir, [16, 1024]))
    with files.locked(workdir / "averaged"):
        second.start()
        second.join(0.3)
        assert second.is_alive() and saved_value(workdir) == 2.5
    second.join()
    assert saved_value(workdir) == 5.0
