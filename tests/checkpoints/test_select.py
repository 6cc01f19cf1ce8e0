"""A name means one checkpoint, or is refused."""

import pathlib
import shutil

import numpy as np
import pytest

from tests.checkpoints import trees
from vaswani_jax.checkpoints import average, select, store


@pytest.fixture(scope="module")
def unfinished_run(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """A workdir with checkpoints alone, which no test changes."""
    workdir = tmp_path_factory.mktemp("unfinished")
    trees.save(workdir / "checkpoints", trees.VALUES)
    return workdir


@pytest.fixture(scope="module")
def finished_run(
    unfinished_run: pathlib.Path, tmp_path_factory: pytest.TempPathFactory
) -> pathlib.Path:
    """A workdir with a checkpoint of each name, which no test changes."""
    workdir = tmp_path_factory.mktemp("finished")
    shutil.copytree(unfinished_run, workdir, dirs_exist_ok=True)
    trees.save(workdir / "best", trees.BEST)
    mean = average.average_params(workdir / "checkpoints", [8, 128])
    average.save_average(workdir, mean)
    return workdir


@pytest.mark.parametrize(
    ("name", "step", "value", "averaged"),
    [
        ("newest", 1024, 8.0, None),
        ("best", 16, 64.0, None),
        ("averaged", 128, 2.5, [8, 128]),
        ("average:1", 1024, 8.0, [1024]),
        ("average:2", 1024, 6.0, [128, 1024]),
        ("average:3", 1024, 14 / 3, [16, 128, 1024]),
        ("average:4", 1024, 3.75, [8, 16, 128, 1024]),
        ("8", 8, 1.0, None),
        ("128", 128, 4.0, None),
    ],
)
def test_a_name_means_a_checkpoint_or_the_mean_of_the_last(
    finished_run: pathlib.Path,
    name: str,
    step: int,
    value: float,
    averaged: list[int] | None,
) -> None:
    selected = select.select(finished_run, name)
    assert selected.step == step
    np.testing.assert_allclose(trees.value_of(selected), value, rtol=1e-7)
    assert selected.record.get("averaged") == averaged
    assert selected.record["vocabulary"] == "abc"
    steps = averaged if averaged and name != "averaged" else [step]
    paths = select.paths(finished_run, name)
    assert [int(path.name) for path in paths] == steps
    assert all(path.is_dir() for path in paths)


@pytest.mark.parametrize(
    ("name", "steps"),
    [
        *(("7", []), ("average:0", []), ("average:x", []), ("latest", [])),
        *(("averaged", []), ("best/16", [16]), ("best/8", [])),
        ("average:9", [8, 16, 128, 1024]),
    ],
)
def test_a_name_has_the_paths_of_those_of_its_checkpoints_that_exist(
    finished_run: pathlib.Path, tmp_path: pathlib.Path, name: str, steps: list[int]
) -> None:
    ignored = shutil.ignore_patterns("averaged")
    workdir = shutil.copytree(finished_run, tmp_path / "run", ignore=ignored)
    assert [int(path.name) for path in select.paths(workdir, name)] == steps


@pytest.mark.parametrize(
    ("name", "step"),
    [("newest", 3), ("average:2", 3), ("2", 2), ("averaged", 3), ("best", None)],
)
def test_the_configuration_of_a_name_is_that_of_its_newest_checkpoint(
    tmp_path: pathlib.Path, name: str, step: int | None
) -> None:
    for saved_step in (2, 3):
        recorded = {"training": {"num_steps": saved_step}}
        trees.save(tmp_path / "checkpoints", {saved_step: 1.0}, config=recorded)
    mean = average.average_params(tmp_path / "checkpoints", [2, 3])
    average.save_average(tmp_path, mean)
    expected = {"training": {"num_steps": step}} if step else {}
    assert select.recorded_config(tmp_path, name) == expected


@pytest.mark.parametrize("name", ["newest", "best", "8", "average:1"])
def test_a_folder_without_a_checkpoint_is_refused(
    tmp_path: pathlib.Path, name: str
) -> None:
    for folder in ("checkpoints", "best"):
        (tmp_path / folder).mkdir()
    with pytest.raises(store.CheckpointError, match="is empty"):
        select.select(tmp_path, name)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("7", "^RUN@7: no checkpoint of step 7 in "),
        ("average:5", "^RUN@average:5: N of average:N is from 1 to 4"),
        ("average:0", "^RUN@average:0: N of average:N is from 1 to 4"),
        ("latest", "newest, best, averaged"),
        ("bst", r"averaged, average:N or a step; got 'bst'; did you mean best\?$"),
        ("average:x", "got 'average:x'"),
        ("best", "there is no .*/best; pass RUN@newest$"),
        ("averaged", "there is no .*/averaged; pass RUN@newest$"),
    ],
)
def test_wrong_names_are_refused(
    unfinished_run: pathlib.Path, name: str, message: str
) -> None:
    with pytest.raises(store.CheckpointError, match=message):
        select.select(unfinished_run, name)


def test_the_copy_of_a_run_that_trains_elsewhere_has_no_other_folder(
    tmp_path: pathlib.Path,
) -> None:
    with pytest.raises(store.CheckpointError, match=r"not ended, pass RUN@newest$"):
        select.select(tmp_path, "averaged")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("run@bst", "newest, best, averaged, average:N or a step; got 'bst'"),
        ("run@newest", "there is no .*/checkpoints; pass --init_from=.*/run@averaged$"),
        ("runn", "--init_from: there is no directory .*/runn; did you mean .*/run[?]$"),
        ("other", "--init_from: .*/other is no workdir of a run: it has no config"),
        ("opus", "opus holds a model of transformers, not a run: `vaswani import-mar"),
    ],
)
def test_what_no_run_can_start_from_is_refused_with_what_it_can(
    tmp_path: pathlib.Path, name: str, message: str
) -> None:
    trees.save(tmp_path / "run" / "averaged", trees.BEST)  # as of an imported model
    (tmp_path / "run" / "config.json").write_text('{"data": {"directory": ""}}')
    (tmp_path / "other").mkdir()
    (tmp_path / "opus").mkdir()
    (tmp_path / "opus/config.json").write_text('{"model_type": "marian"}')
    folder, checkpoint = select.split_name(str(tmp_path / name))
    with pytest.raises(ValueError, match=message):
        select.starting_point(pathlib.Path(folder), checkpoint)


def test_a_run_can_resume_from_its_first_checkpoint(
    unfinished_run: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    trees.save(tmp_path / "best", trees.BEST)
    assert select.recorded_vocabulary(tmp_path) == "abc"
    assert not select.has_checkpoints(tmp_path)
    shutil.copytree(unfinished_run, tmp_path, dirs_exist_ok=True)
    assert select.has_checkpoints(tmp_path)


def test_a_workdir_may_lie_in_a_directory_of_any_name(
    unfinished_run: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    workdir = tmp_path / "checkpoints" / "run1"
    shutil.copytree(unfinished_run, workdir)
    (workdir / "config.json").write_text('{"data": {"directory": ""}}')
    for name in (str(workdir), f"{workdir}/checkpoints/1024"):
        folder, checkpoint = select.split_name(name)
        start = select.starting_point(pathlib.Path(folder), checkpoint)
        assert start.checkpoint.step == 1024
        assert start.data_directory == ""


def test_an_empty_folder_is_no_checkpoint_to_start_from(
    unfinished_run: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    shutil.copytree(unfinished_run, tmp_path, dirs_exist_ok=True)
    (tmp_path / "config.json").write_text('{"data": {"directory": ""}}')
    (tmp_path / "best").mkdir()
    assert select.starting_point(tmp_path, "").checkpoint.step == 1024
    with pytest.raises(store.CheckpointError, match=r"; pass RUN@newest$"):
        select.select(tmp_path, "averaged")


def test_a_start_from_an_old_mean_names_the_newer_checkpoint(
    tmp_path: pathlib.Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", logger="vaswani_jax")
    (tmp_path / "config.json").write_text('{"data": {"directory": ""}}')
    trees.save(tmp_path / "averaged", {200: 1.0})
    trees.save(tmp_path / "checkpoints", {200: 1.0})
    assert select.starting_point(tmp_path, "").checkpoint.step == 200
    assert not caplog.messages
    trees.save(tmp_path / "checkpoints", {1200: 2.0})
    assert select.starting_point(tmp_path, "").checkpoint.step == 200
    assert caplog.messages == [
        f"note: --init_from={tmp_path} starts from the averaged checkpoint of step "
        "200, but the run has reached step 1,200; use "
        f"--init_from={tmp_path}@newest to start from that"
    ]
    assert select.starting_point(tmp_path, "newest").checkpoint.step == 1200
