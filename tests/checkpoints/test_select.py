"""Which checkpoint a name means, and what an average of several holds."""

import pathlib
from typing import Any

import numpy as np
import pytest

from tests import settings
from tests.data import small_text
from vaswani_jax.checkpoints import average, compatibility, select, store
from vaswani_jax.core import config, files
from vaswani_jax.data import vocabulary
from vaswani_jax.training import step as training_step

# Powers of two: no mean of some of them is the mean of others. As text, 8 is last.
CHECKPOINTS = {8: 1.0, 16: 2.0, 128: 4.0, 1024: 8.0}
BEST = {16: 64.0}


def params(value: float) -> dict[str, dict[str, np.ndarray]]:
    kernel, bias = np.full((2, 3), value), np.full(3, -value)
    return {"dense": {"kernel": np.float32(kernel), "bias": np.float32(bias)}}


def saved(directory: pathlib.Path, values: dict[int, float]) -> store.Checkpoints:
    found = store.Checkpoints(directory, keep=9)
    for step, value in values.items():
        found.save(step, {"params": params(value)}, {"vocabulary": "abc"})
    return found


def constant(found: store.Checkpoint) -> float:
    """The number that all parameters are made of."""
    dense = found.items["params"]["dense"]
    value = float(dense["kernel"][0, 0])
    expected = params(value)["dense"]
    for name in ("kernel", "bias"):
        np.testing.assert_array_equal(dense[name], expected[name], strict=True)
    return value


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
    tmp_path: pathlib.Path,
    name: str,
    step: int,
    value: float,
    averaged: list[int] | None,
) -> None:
    found = saved(tmp_path / "checkpoints", CHECKPOINTS)
    saved(tmp_path / "best", BEST)
    average.save_average(tmp_path, average.average_params(found, [8, 128]))
    selected = select.select(tmp_path, name)
    assert selected.step == step
    np.testing.assert_allclose(constant(selected), value, rtol=1e-7)
    assert selected.record.get("averaged") == averaged
    assert selected.record["vocabulary"] == "abc"


@pytest.mark.parametrize(
    ("key", "was", "now"),
    [
        ("activation", "relu", "swish"),
        ("layer_norm_epsilon", 1e-6, 1e-5),
        ("layer_norm_position", "pre", "post"),
    ],
)
def test_a_model_of_other_functions_and_the_same_shapes_is_refused(
    tmp_path: pathlib.Path, key: str, was: Any, now: Any
) -> None:
    small = settings.small_settings(**{f"model.{key}": was})
    words = " ".join(small_text.WORDS)
    subwords = vocabulary.train([words] * 9, small_text.settings_of(tmp_path).data)
    trained = training_step.create_state(small, vocab_size=subwords.size)
    record = {"vocabulary": subwords.fingerprint, "config": config.to_dict(small)}
    found = store.Checkpoint(8, {"params": trained.params}, record)
    compatibility.check_fits(found, small, subwords)
    # How it is trained and computed may be otherwise.
    other = {f"model.{key}": was, "model.dropout_rate": 0.3, "model.dtype": "bfloat16"}
    compatibility.check_fits(found, settings.small_settings(**other), subwords)
    with pytest.raises(store.CheckpointError, match=f"{key} is {now!r}, was "):
        compatibility.check_fits(
            found, settings.small_settings(**{f"model.{key}": now}), subwords
        )


@pytest.mark.parametrize("name", ["newest", "best", "8", "average:1"])
def test_a_folder_without_a_checkpoint_is_told(
    tmp_path: pathlib.Path, name: str
) -> None:
    for folder in ("checkpoints", "best"):
        (tmp_path / folder).mkdir()
    with pytest.raises(store.CheckpointError, match="is empty"):
        select.select(tmp_path, name)


def test_average_is_summed_in_float64(tmp_path: pathlib.Path) -> None:
    """In float32, 2^24 + 1 is 2^24."""
    found = saved(tmp_path, {1: 2.0**24, 2: 1.0, 3: 1.0, 4: 0.0})
    assert constant(average.average_params(found, [1, 2, 3, 4])) == 2.0**22 + 0.5


@pytest.mark.parametrize("later", [[8, 16], [16, 128], [128, 1024]])
def test_a_saved_average_replaces_that_of_an_earlier_a_later_or_the_same_step(
    tmp_path: pathlib.Path, later: list[int]
) -> None:
    found = saved(tmp_path / "checkpoints", CHECKPOINTS)
    average.save_average(tmp_path, average.average_params(found, [8, 128]))
    # What a crash has left there is of no use.
    saved(files.sibling(tmp_path / "averaged", "unfinished"), {later[-1]: 0.0})
    path = average.save_average(tmp_path, average.average_params(found, later))
    assert path == tmp_path / "averaged" / str(later[-1])
    assert [made.name for made in path.parent.iterdir()] == [path.name]
    mean = (CHECKPOINTS[later[0]] + CHECKPOINTS[later[1]]) / 2
    assert constant(select.select(tmp_path, "averaged")) == mean
    assert {path.name for path in tmp_path.iterdir()} == {"averaged", "checkpoints"}


def test_the_old_average_stays_when_the_new_one_cannot_be_written(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = saved(tmp_path / "checkpoints", CHECKPOINTS)
    average.save_average(tmp_path, average.average_params(found, [8, 128]))
    new = average.average_params(found, [16, 1024])

    def full_disk(*args: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(store.Checkpoints, "save", full_disk)
        with pytest.raises(OSError, match="No space left"):
            average.save_average(tmp_path, new)
    assert constant(select.select(tmp_path, "averaged")) == 2.5
    average.save_average(tmp_path, new)
    assert constant(select.select(tmp_path, "averaged")) == 5.0


def test_the_old_average_is_found_when_a_kill_came_before_the_new_one(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = saved(tmp_path / "checkpoints", CHECKPOINTS)
    average.save_average(tmp_path, average.average_params(found, [8, 128]))
    rename, calls = files.os.rename, []

    def dies_at_the_second(old: pathlib.Path, new: pathlib.Path) -> None:
        calls.append(new)
        if len(calls) == 2:
            raise KeyboardInterrupt
        rename(old, new)

    new = average.average_params(found, [16, 1024])
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(files.os, "rename", dies_at_the_second)
        average.save_average(tmp_path, new)
    assert constant(select.select(tmp_path, "averaged")) == 2.5
    (tmp_path / "config.json").write_text('{"data": {"directory": ""}}')
    assert constant(select.start_from(str(tmp_path))[0]) == 2.5
    average.save_average(tmp_path, new)
    assert constant(select.select(tmp_path, "averaged")) == 5.0


def test_a_run_begins_with_its_first_checkpoint(tmp_path: pathlib.Path) -> None:
    saved(tmp_path / "best", BEST)
    assert select.vocabulary_of(tmp_path) == "abc"
    assert not select.has_begun(tmp_path)
    saved(tmp_path / "checkpoints", CHECKPOINTS)
    assert select.has_begun(tmp_path)


def test_a_workdir_may_lie_in_a_directory_of_any_name(tmp_path: pathlib.Path) -> None:
    workdir = tmp_path / "checkpoints" / "run1"
    saved(workdir / "checkpoints", CHECKPOINTS)
    (workdir / "config.json").write_text('{"data": {"directory": ""}}')
    for name in (str(workdir), f"{workdir}/checkpoints/1024"):
        found, data = select.start_from(name)
        assert (found.step, data) == (1024, workdir / "data")
