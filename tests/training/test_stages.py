"""A run on several corpora resumes in the middle of a stage, and keeps its weights."""

import json
import pathlib
from typing import Any

import jax
import numpy as np
import pytest

from tests.data import small_text
from tests.training.small_runs import OVERRIDES, train
from vaswani_jax.checkpoints import store
from vaswani_jax.core import config

pytestmark = pytest.mark.usefixtures("steps_once")
STAGES = "2: b=1; 5: a=1 b=1"


def mixed(directory: pathlib.Path, **changes: Any) -> config.Config:
    """Settings of two corpora, whose stages begin at batches 2 and 5."""
    weights = changes.pop("weights", [3, 1])
    corpora = [
        {"name": name, "source": f"{name}.en", "target": f"{name}.de", "weight": weight}
        for name, weight in zip("ab", weights, strict=True)
    ]
    values = {
        "data.corpora": corpora,
        "data.stages": STAGES,
        "data.valid_source": "",
        "data.valid_target": "",
        "data.test_source": "",
        "data.test_target": "",
        "data.source_tokens_per_batch": 128,
        "data.target_tokens_per_batch": 128,
        "training.checkpoint_every_steps": 3,
    }
    return small_text.settings_of(directory, **OVERRIDES, **(values | changes))


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    directory = tmp_path_factory.mktemp("text")
    for name, size in (("a", 50), ("b", 20)):
        for ending in ("en", "de"):
            words = small_text.WORDS
            lines = [
                " ".join(
                    words[(number + n) % len(words)] for n in range(number % 6 + 1)
                )
                for number in range(size)
            ]
            small_text.write_lines(directory / f"{name}.{ending}", lines)
    return directory


def at(steps: int) -> dict[str, int]:
    return {"training.num_steps": steps}


@pytest.fixture(scope="module")
def uninterrupted(
    tmp_path_factory: pytest.TempPathFactory, text: pathlib.Path
) -> store.Checkpoint:
    return train(mixed(text, **at(7)), tmp_path_factory.mktemp("whole"))


@pytest.fixture(scope="module")
def interrupted(
    tmp_path_factory: pytest.TempPathFactory, text: pathlib.Path
) -> pathlib.Path:
    """A run that stopped at step 4, in the middle of the second stage."""
    directory = tmp_path_factory.mktemp("run")
    train(mixed(text, **at(4)), directory)
    return directory


def test_other_weights_are_refused_with_both_values(
    interrupted: pathlib.Path, text: pathlib.Path
) -> None:
    message = (
        r"run at step 4 that cannot resume with: config\.data\.corpora: the weight of "
        r"'a' is 2\.0, was 3\.0\. Restore them"
    )
    with pytest.raises(ValueError, match=message):
        train(mixed(text, **at(4), weights=[2, 1]), interrupted)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"data.stages": "3: b=1"},
            r"stages is '3: b=1', was '2: b=1; 5: a=1 b=1' \(stages from batch 4 on",
        ),
        ({"data.epoch_pairs": 50}, r"config\.data\.epoch_pairs is 50, was 0"),
    ],
)
def test_other_shares_are_refused_with_both_values(
    interrupted: pathlib.Path,
    text: pathlib.Path,
    changes: dict[str, Any],
    message: str,
) -> None:
    with pytest.raises(ValueError, match=message):
        train(mixed(text, **at(4), **changes), interrupted)


def test_another_temperature_is_refused_with_both_values(
    tmp_path: pathlib.Path, text: pathlib.Path
) -> None:
    by_size = {**at(1), "weights": [None, None], "data.stages": ""}
    train(mixed(text, **by_size), tmp_path)
    message = r"cannot resume with: config\.data\.corpora_temperature is 5\.0, was 1\.0"
    with pytest.raises(ValueError, match=message):
        train(mixed(text, **by_size, **{"data.corpora_temperature": 5.0}), tmp_path)


def test_a_later_stage_may_change_which_is_recorded(
    tmp_path: pathlib.Path, text: pathlib.Path
) -> None:
    train(mixed(text, **at(3)), tmp_path)
    later = "2: b=1; 6: a=1"
    train(mixed(text, **at(3), **{"data.stages": later}), tmp_path)
    last = json.loads((tmp_path / "starts.jsonl").read_text().splitlines()[-1])
    assert last["changes"] == [{"key": "data.stages", "was": STAGES, "now": later}]


def test_a_run_that_stopped_within_a_stage_goes_on_bit_for_bit(
    interrupted: pathlib.Path,
    text: pathlib.Path,
    uninterrupted: store.Checkpoint,
    log_lines: pytest.LogCaptureFixture,
) -> None:
    last = train(mixed(text, **at(7)), interrupted)
    jax.tree.map(np.testing.assert_array_equal, uninterrupted.items, last.items)
    assert "resumed at step 4" in log_lines.text
    assert "an epoch from batch 5 on: 70 pairs in" in log_lines.text
