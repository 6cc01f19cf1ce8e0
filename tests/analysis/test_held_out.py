"""What is scored with other settings stands beside what was there."""

import json
import pathlib
from typing import Any

import pytest

from tests import settings
from vaswani_jax.analysis import held_out
from vaswani_jax.core import config
from vaswani_jax.training import checkpoints

NAME = "test-averaged-beam3-alpha0.6"


def written(workdir: pathlib.Path, output: str, **changes: Any) -> pathlib.Path:
    """The file of an evaluation of a run that had no such changes."""
    trained = config.to_dict(settings.small_settings())
    record = {"vocabulary": "0123", "config": trained}
    return held_out.write(
        workdir,
        held_out.Result("test", ["a"], ["b"], [output], {}, [], {}),
        settings.small_settings(**changes),
        checkpoints.Checkpoint(1, {}, record),
        checkpoint="averaged",
    )


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"search.no_repeat_ngram": 3}, "-no_repeat_ngram=3"),
        (
            {"search.sampling": True, "search.temperature": 0.7},
            "-sampling=True-temperature=0.7",
        ),
        (
            {"search.min_tokens": 2, "search.max_tokens": 9},
            "-min_tokens=2-max_tokens=9",
        ),
        ({"search.length_penalty_form": "power"}, "-length_penalty_form=power"),
        ({"data.text_form": "tokenized"}, "-text_form=tokenized"),
        ({"data.lowercase_scores": True}, "-lowercase_scores=True"),
    ],
)
def test_an_evaluation_of_other_settings_replaces_none(
    tmp_path: pathlib.Path, changes: dict[str, Any], name: str
) -> None:
    usual = written(tmp_path, "as trained")
    assert usual.stem == NAME
    other = written(tmp_path, "otherwise", **changes)
    assert other.stem == f"{NAME}{name}"
    texts = [path.with_suffix(".txt").read_text() for path in (usual, other)]
    assert texts == ["as trained\n", "otherwise\n"]
    search = json.loads(usual.read_text())["search"]
    assert search == config.to_dict(settings.small_settings())["search"]
    assert written(tmp_path, "again") == usual
