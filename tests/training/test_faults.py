"""Damaged checkpoints, and circumstances that change under a run."""

import json
import pathlib
import shutil
from collections.abc import Callable

import jax
import numpy as np
import pytest

from tests import settings
from tests.checkpoints import damages
from tests.training.test_loop import OVERRIDES, run
from vaswani_jax.checkpoints import store
from vaswani_jax.core import environment, processes
from vaswani_jax.data import prepared
from vaswani_jax.training import resume

pytestmark = pytest.mark.usefixtures("steps_once")

DAMAGES = [damages.truncate, damages.flip, damages.lose_a_part, damages.empty]
CHANGES = OVERRIDES | {"training.checkpoint_every_steps": 2}


@pytest.fixture(scope="module")
def at_4(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """A run of 4 steps, with checkpoints of the second and the fourth."""
    directory = tmp_path_factory.mktemp("at_4")
    run(settings.small_settings(**CHANGES, **{"training.num_steps": 4}), directory)
    return directory


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> store.Checkpoint:
    """The same run to step 6, never interrupted."""
    small = settings.small_settings(**CHANGES, **{"training.num_steps": 6})
    return run(small, tmp_path_factory.mktemp("whole"))


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_a_damaged_checkpoint_is_passed_over_and_made_again(
    tmp_path: pathlib.Path,
    at_4: pathlib.Path,
    whole: store.Checkpoint,
    capsys: pytest.CaptureFixture[str],
    damage: Callable[[pathlib.Path], None],
) -> None:
    shutil.copytree(at_4, tmp_path / "broken")
    directory = tmp_path / "broken" / "checkpoints"
    damage(directory / "4")
    long = settings.small_settings(**CHANGES, **{"training.num_steps": 6})
    found = run(long, tmp_path / "broken")
    told = capsys.readouterr().err
    assert f"warning: checkpoint {directory / '4'} is damaged" in told
    assert "resumed at step 2" in told
    assert (tmp_path / "broken" / "checkpoints.damaged" / "4").is_dir()
    jax.tree.map(np.testing.assert_array_equal, whole.items, found.items)
    again = store.Checkpoints(directory, keep=9)
    assert again.steps() == [2, 4, 6]
    again.restore(4, ["params", "optimizer"])


def test_what_a_kill_left_is_sealed_or_removed(
    tmp_path: pathlib.Path, at_4: pathlib.Path, whole: store.Checkpoint
) -> None:
    workdir = tmp_path / "run"
    shutil.copytree(at_4, workdir)
    # It came before the seal; and another one in the middle of a write.
    (workdir / "checkpoints/4" / store.SEAL).unlink()
    unfinished = workdir / f"checkpoints/9{store.UNFINISHED}-123"
    (unfinished / "params").mkdir(parents=True)
    long = settings.small_settings(**CHANGES, **{"training.num_steps": 6})
    found = run(long, workdir)
    jax.tree.map(np.testing.assert_array_equal, whole.items, found.items)
    assert (workdir / "checkpoints/4" / store.SEAL).exists()
    assert not unfinished.exists()


def test_when_all_are_damaged_nothing_is_moved_or_made_anew(
    tmp_path: pathlib.Path,
) -> None:
    small = settings.small_settings(**OVERRIDES)
    run(small, tmp_path)
    for number in ("2", "4"):
        damages.truncate(tmp_path / "checkpoints" / number)
    before = sorted(tmp_path.rglob("checkpoints/**/*"))
    with pytest.raises(store.CheckpointError, match="all 2 checkpoints"):
        run(small, tmp_path)
    assert sorted(tmp_path.rglob("checkpoints/**/*")) == before


def test_another_training_text_is_refused(tmp_path: pathlib.Path) -> None:
    # The same words in another order: a vocabulary of the same fingerprint.
    lines = [f"{a} {b} c d" for a in "abcdefgh" for b in "ijklmnop"]
    named = {
        f"data.{split}_{side}": "text"
        for split in ("train", "valid")
        for side in ("source", "target")
    }
    small = settings.small_settings(
        **OVERRIDES,
        **named,
        **{
            "data.source": "text",
            "data.text_directory": str(tmp_path),
            "data.vocab_size": 24,
            "data.test_source": "",
            "data.test_target": "",
        },
    )
    (tmp_path / "text").write_text("\n".join(lines))
    run(small, tmp_path / "run")
    (tmp_path / "text").write_text("\n".join(reversed(lines)))
    before = prepared.open_prepared(tmp_path / "run/data").vocabulary.fingerprint
    shutil.rmtree(tmp_path / "run/data")
    with pytest.raises(ValueError, match=r"was trained on the text .*, but the data"):
        run(small, tmp_path / "run")
    after = prepared.open_prepared(tmp_path / "run/data").vocabulary.fingerprint
    assert before == after


def test_another_version_of_a_package_is_told(
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    now = environment.describe()
    monkeypatch.setattr(environment, "describe", lambda: {**now, "jax": "0.0.1"})
    run(settings.small_settings(**OVERRIDES, **{"training.num_steps": 2}), tmp_path)
    monkeypatch.undo()
    run(settings.small_settings(**OVERRIDES), tmp_path)
    told = capsys.readouterr().err
    assert f"warning: jax was 0.0.1, is {now['jax']}: the digits may differ" in told
    lines = (tmp_path / "starts.jsonl").read_text().splitlines()
    starts = [json.loads(line) for line in lines]
    assert [one["environment"]["jax"] for one in starts] == ["0.0.1", now["jax"]]


@pytest.mark.parametrize(
    ("others", "told"),
    [
        ([[3, 0]], r"steps \[2, 3\]"),
        ([[-1, 0]], r"\[2, -1\]"),
        ([[2, 1]], "other parameters"),
    ],
)
def test_processes_that_see_other_checkpoints_are_refused(
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
    others: list[list[int]],
    told: str,
) -> None:
    found = store.Checkpoints(tmp_path, keep=3)
    params = {"a": np.ones(2, np.float32)}
    found.save(2, {"params": params, "optimizer": params}, {"vocabulary": "abc"})
    monkeypatch.setattr(processes, "num_processes", lambda: 2)

    def gathered(same: np.ndarray) -> np.ndarray:
        # Those of this process, then what the others would send.
        return np.stack([same, *(np.array(o, np.int32) for o in others)])

    monkeypatch.setattr(processes, "gather_from_all", gathered)
    with pytest.raises(store.CheckpointError, match=told):
        resume.newest_good(found, log=[].append)
    others[:] = [list(np.int32([2, int(store.digest(params)[:7], 16)]))]
    good = resume.newest_good(found, log=[].append)
    assert good is not None and good.step == 2
