"""An evaluation with other settings replaces none that was written before."""

import json
import pathlib
import resource
from typing import Any
from unittest import mock

import pytest

from tests import settings
from vaswani_jax.checkpoints import store
from vaswani_jax.core import config
from vaswani_jax.evaluation import bleu, scores
from vaswani_jax.inference.translator import Translator

NAME = "test-averaged-beam3-alpha0.6"


def write(workdir: pathlib.Path, output: str, **changes: Any) -> pathlib.Path:
    """Write an evaluation, with changed settings, of a run that had none of them."""
    trained = config.to_dict(settings.small_settings())
    record = {"vocabulary": "0123", "config": trained}
    return scores.write_evaluation(
        workdir,
        scores.Evaluation("test", ["a"], ["b"], [output], {}, [], {}),
        settings=settings.small_settings(**changes),
        checkpoint=store.Checkpoint(1, {}, record),
        checkpoint_name="averaged",
    )


@pytest.mark.parametrize(
    ("was", "now", "reason"),
    [
        (
            *("detokenized", "tokenized"),
            "splitting detokenized text at spaces only gives a tokenized_bleu that is "
            "comparable with nothing",
        ),
        (
            *("tokenized", "detokenized"),
            "tokenising text that is tokenized already gives scores that are "
            "comparable with nothing",
        ),
    ],
)
def test_another_form_of_text_than_in_training_is_warned_of(
    was: str, now: str, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    trained = settings.small_settings(**{"data.text_form": was})
    checkpoint = store.Checkpoint(1, {}, {"config": config.to_dict(trained)})
    scores.warn_of_text_form(checkpoint, settings=trained)
    assert caplog.messages == []
    changed = settings.small_settings(**{"data.text_form": now})
    scores.warn_of_text_form(checkpoint, settings=changed)
    assert caplog.messages == [
        f"config.data.text_form is {now!r}, was {was!r}: {reason}; leave the setting "
        "out"
    ]


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
        ({"search.sampling": True, "seed": 7}, "-sampling=True-seed=7"),
    ],
)
def test_an_evaluation_of_other_settings_replaces_none(
    tmp_path: pathlib.Path, changes: dict[str, Any], name: str
) -> None:
    usual = write(tmp_path, "as trained")
    assert usual.stem == NAME
    changed = write(tmp_path, "otherwise", **changes)
    assert changed.stem == f"{NAME}{name}"
    texts = [path.with_suffix(".txt").read_text() for path in (usual, changed)]
    assert texts == ["as trained\n", "otherwise\n"]
    search = json.loads(usual.read_text())["search"]
    assert search == config.to_dict(settings.small_settings())["search"]
    assert write(tmp_path, "again") == usual


def test_a_seed_names_the_evaluation_of_samples_alone(tmp_path: pathlib.Path) -> None:
    assert write(tmp_path, "not sampled", seed=7).stem == NAME


@pytest.mark.parametrize("output", ["again", 99 * "again "], ids=["record", "both"])
def test_a_full_disk_leaves_the_evaluation_that_was_there(
    tmp_path: pathlib.Path, output: str
) -> None:
    record = write(tmp_path, "as before")
    paths = record.with_suffix(".txt"), record
    contents = [path.read_bytes() for path in paths]
    # A limit of the size of files stands in for a full disk.
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, limits[1]))
    try:
        with pytest.raises(OSError, match="File too large"):
            write(tmp_path, output)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert [path.read_bytes() for path in paths] == contents
    assert {*record.parent.iterdir()} == {*paths}


@pytest.mark.parametrize(("samples", "lines"), [(0, ""), (2, "ac"), (9, "abcd")])
def test_samples_are_spread_over_the_lines_and_none_is_there_twice(
    samples: int, lines: str
) -> None:
    text = list("abcd")
    score = bleu.Score("sacrebleu", 1.0, "BLEU")
    evaluation = scores.Evaluation("test", text, text, text, {}, [score], {})
    shown = evaluation.format(samples=samples).splitlines()
    for label in ("source     ", "reference  ", "output     "):
        assert [line for line in shown if line.startswith(label)] == [
            f"{label}{line}" for line in lines
        ]


@pytest.mark.parametrize("seed", ["", "abc", "-1"])
def test_a_wrong_seed_is_refused_before_anything_is_translated(
    monkeypatch: pytest.MonkeyPatch, seed: str
) -> None:
    monkeypatch.setenv("SACREBLEU_SEED", seed)
    translator = mock.Mock(spec=Translator)
    with pytest.raises(ValueError, match="SACREBLEU_SEED must be a whole number"):
        scores.evaluate(
            translator,
            (["a"], ["b"]),
            split="test",
            checkpoint_name="averaged",
            workdir=None,
        )
    translator.best_hypotheses.assert_not_called()
