"""Damaged checkpoints, and circumstances that change under a run."""

import json
import pathlib
import shutil
from collections.abc import Callable

import jax
import numpy as np
import pytest

from tests import settings
from tests.training.test_loop import OVERRIDES, run
from vaswani_jax.core import environment
from vaswani_jax.data import corpus
from vaswani_jax.training import checkpoints


def data_files(directory: pathlib.Path) -> list[pathlib.Path]:
    """All that hold values; which of them are read is Orbax's affair."""
    return [path for path in directory.rglob("d/*") if path.is_file()]


def truncate(directory: pathlib.Path) -> None:
    for file in data_files(directory):
        file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def flip(directory: pathlib.Path) -> None:
    for file in data_files(directory):
        data = bytearray(file.read_bytes())
        data[len(data) // 2] ^= 0xFF
        file.write_bytes(bytes(data))


def lose_a_part(directory: pathlib.Path) -> None:
    shutil.rmtree(directory / "optimizer")


def empty(directory: pathlib.Path) -> None:
    shutil.rmtree(directory)
    directory.mkdir()


DAMAGES: list[Callable[[pathlib.Path], None]] = [truncate, flip, lose_a_part, empty]


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_a_damaged_checkpoint_is_passed_over_and_made_again(
    tmp_path: pathlib.Path,
    capsys: pytest.CaptureFixture[str],
    damage: Callable[[pathlib.Path], None],
) -> None:
    changes = OVERRIDES | {"training.checkpoint_every_steps": 2}
    short, long = (
        settings.small_settings(**changes, **{"training.num_steps": steps})
        for steps in (4, 6)
    )
    run(short, tmp_path / "broken")
    whole = run(long, tmp_path / "whole")
    directory = tmp_path / "broken" / "checkpoints"
    damage(directory / "4")
    found = run(long, tmp_path / "broken")
    told = capsys.readouterr().err
    assert f"warning: checkpoint {directory / '4'} is damaged" in told
    assert "resumed at step 2" in told
    assert (tmp_path / "broken" / "checkpoints.damaged" / "4").is_dir()
    jax.tree.map(np.testing.assert_array_equal, whole.items, found.items)
    again = checkpoints.Checkpoints(directory, keep=9)
    assert again.steps() == [2, 4, 6]
    again.restore(4, ["params", "optimizer"])


def test_when_all_are_damaged_nothing_is_moved_or_made_anew(
    tmp_path: pathlib.Path,
) -> None:
    small = settings.small_settings(**OVERRIDES)
    run(small, tmp_path)
    for number in ("2", "4"):
        truncate(tmp_path / "checkpoints" / number)
    before = sorted(tmp_path.rglob("checkpoints/**/*"))
    with pytest.raises(checkpoints.CheckpointError, match="all 2 checkpoints"):
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
    before = corpus.open_prepared(tmp_path / "run/data").vocabulary.fingerprint
    shutil.rmtree(tmp_path / "run/data")
    with pytest.raises(ValueError, match=r"was trained on the text .*, but the data"):
        run(small, tmp_path / "run")
    after = corpus.open_prepared(tmp_path / "run/data").vocabulary.fingerprint
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
