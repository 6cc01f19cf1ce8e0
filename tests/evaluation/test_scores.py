"""What is scored with other settings stands beside what was there."""

import json
import pathlib
import re
from typing import Any

import numpy as np
import pytest

from tests import settings
from vaswani_jax.checkpoints import store
from vaswani_jax.core import config, parallel, types
from vaswani_jax.data import prepared
from vaswani_jax.evaluation import scores as scores_
from vaswani_jax.evaluation import validation
from vaswani_jax.inference import generate
from vaswani_jax.inference.line_translator import LineTranslator
from vaswani_jax.training import loss

NAME = "test-averaged-beam3-alpha0.6"


def written(workdir: pathlib.Path, output: str, **changes: Any) -> pathlib.Path:
    """The file of an evaluation of a run that had no such changes."""
    trained = config.to_dict(settings.small_settings())
    record = {"vocabulary": "0123", "config": trained}
    return scores_.write(
        workdir,
        scores_.Result("test", ["a"], ["b"], [output], {}, [], {}),
        settings.small_settings(**changes),
        store.Checkpoint(1, {}, record),
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


def test_the_shapes_that_are_told_are_those_that_are_computed(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By models that compute nothing."""

    def echo(params: object, rows: generate.Rows) -> types.Hypotheses:
        scores = np.zeros((*rows.source.shape[:2], 1), np.float32)
        return types.Hypotheses(rows.source[:, :, None], scores)

    def one_token(params: object, rows: types.Batch) -> loss.LossSums:
        return loss.LossSums(*(np.ones((), np.float32) for _ in range(4)))

    monkeypatch.setattr(LineTranslator, "search", staticmethod(echo))
    monkeypatch.setattr(validation, "_on_devices", lambda *_: one_token)
    computed: list[tuple[int, int]] = []
    split_rows = parallel.split_rows

    def recorded(tree: Any, *, multiple: int) -> Any:
        computed.append(tree.source.shape)
        return split_rows(tree, multiple=multiple)

    monkeypatch.setattr(parallel, "split_rows", recorded)
    small = settings.small_settings(
        **{
            "data.num_valid": 61,  # one is left when they are searched by fours
            "data.num_buckets": 6,
            "search.source_tokens_per_batch": 64,
        }
    )
    told: list[str] = []
    data = prepared.open_or_prepare(
        small, tmp_path, rebuild=False, trained_with=None, log=lambda text: None
    )
    evaluators = scores_.while_training(small, data, say=told.append)
    [line] = told
    assert line.startswith("shapes of the validation (rows x tokens): loss in ")
    for part, evaluate in zip(line.split("; "), evaluators, strict=True):
        computed.clear()
        evaluate(np.zeros(1))
        shapes = [tuple(map(int, pair)) for pair in re.findall(r"(\d+)x(\d+)", part)]
        assert shapes == sorted(set(computed)) and len(shapes) > 1
