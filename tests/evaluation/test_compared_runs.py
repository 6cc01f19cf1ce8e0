"""Runs of one text and one scoring are compared; others are refused with both named."""

import json
import pathlib
import shutil
from typing import Any

import pytest

from tests.evaluation import compared
from vaswani_jax.data import prepared
from vaswani_jax.evaluation import bleu, compared_runs, metrics
from vaswani_jax.evaluation.compared_runs import ComparedRun

REFERENCES = compared.lines(30)
SOURCE = [f"Source: {line}" for line in REFERENCES]
TRAINING = compared.lines(50, seed=9)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> prepared.PreparedData:
    return compared.prepare(
        tmp_path_factory.mktemp("text"),
        train=(TRAINING, TRAINING),
        test=(SOURCE, REFERENCES),
    )


def run_of(name: str, data: prepared.PreparedData, **changes: Any) -> ComparedRun:
    settings = compared.run_settings(data.directory.parent, **changes)
    return ComparedRun(name, pathlib.Path(name), "averaged", settings, data)


def test_different_references_are_refused_with_both_named(
    data: prepared.PreparedData, tmp_path: pathlib.Path
) -> None:
    other = compared.prepare(
        tmp_path, train=(TRAINING, TRAINING), test=(TRAINING, TRAINING)
    )
    first, second = map(bleu.lines_checksum, (REFERENCES, TRAINING))
    with pytest.raises(
        ValueError,
        match=f"^a and b have different references: 30 lines, sha256 {first}, and "
        f"50 lines, sha256 {second}; ",
    ):
        compared_runs.find_text([run_of("a", data), run_of("b", other)], "test")


def test_different_signatures_are_refused_with_both_named(
    data: prepared.PreparedData,
) -> None:
    runs = [run_of("a", data), run_of("b", data, **{"data.lowercase_scores": True})]
    text = compared_runs.find_text(runs, "test")
    with pytest.raises(
        ValueError,
        match=r"^a and b have different signatures: BLEU\|.*\|case:mixed\|.* and "
        r"BLEU\|.*\|case:lc\|.*; --text_form",
    ):
        compared_runs.choose_scoring(runs, {}, text=text)
    scoring = compared_runs.choose_scoring(runs, {"lowercase_scores": True}, text=text)
    metric = metrics.find_metrics(text.references, data=scoring)[0]
    assert metric.name == "sacrebleu_lc"


def test_a_run_without_training_text_leaves_the_words_to_the_next(
    data: prepared.PreparedData, tmp_path: pathlib.Path
) -> None:
    folder = tmp_path / "test_only"
    shutil.copytree(data.directory, folder)
    manifest = json.loads((folder / "manifest.json").read_text())
    del manifest["counts"]["train"]
    (folder / "manifest.json").write_text(json.dumps(manifest))
    runs = [run_of("a", prepared.open_prepared(folder)), run_of("b", data)]
    words = compared_runs.count_training_words(
        runs, "", references=REFERENCES, data=runs[0].settings.data
    )
    assert words is not None and words.origin == "50 of 50 training lines of b"
