"""The best parameters are kept, and a run that gets no better ends."""

import contextlib
import dataclasses
import itertools
import pathlib
import shutil
import signal
from collections.abc import Callable, Mapping
from typing import Any

import jax
import numpy as np
import pytest

from tests import settings
from tests.checkpoints import damages
from tests.training.small_runs import OVERRIDES, read_metrics, save_average, train
from vaswani_jax.checkpoints import select, store
from vaswani_jax.core import config, files
from vaswani_jax.data import prepared
from vaswani_jax.evaluation import validation
from vaswani_jax.training import early_stopping, loop, preemption

pytestmark = pytest.mark.usefixtures("steps_once")

Evaluator = Callable[[Any], Mapping[str, float]]


def test_training_ends_when_nothing_has_been_better_for_long(
    tmp_path: pathlib.Path, log_lines: pytest.LogCaptureFixture
) -> None:
    losses = iter([3.0, 2.0, 2.5, 2.2, 9.9])
    small = settings.small_settings(
        **OVERRIDES,
        **{
            "training.num_steps": 20,
            "training.checkpoint_every_steps": 5,
            "training.best_metric": "loss",
            "training.patience": 2,
        },
    )

    def evaluate(params: Any) -> dict[str, float]:
        return {"valid/loss": next(losses), "valid/bleu": 1.0}

    last = train(small, tmp_path, evaluator=evaluate)
    assert last.step == 8
    assert store.steps(tmp_path / "best") == [4]
    text = log_lines.text
    assert "no better valid/loss than that of step 4 in 2 evaluations" in text
    repeated = train(small, tmp_path, evaluator=evaluate)
    assert repeated.step == 8
    assert "nothing to train: no better valid/loss" in log_lines.text


def test_patience_counts_evaluations_whatever_their_distance(
    tmp_path: pathlib.Path, log_lines: pytest.LogCaptureFixture
) -> None:
    changes = {
        "training.num_steps": 4,
        "training.checkpoint_every_steps": 4,
        "training.evaluate_every_steps": 2,
        "training.best_metric": "loss",
        "training.patience": 3,
    }
    losses = itertools.count(1.0)

    def rise(params: Any) -> dict[str, float]:
        return {"valid/loss": next(losses), "valid/bleu": 1.0}

    # The best at step 2, and a worse one: two more make three.
    assert (
        train(
            settings.small_settings(**OVERRIDES | changes), tmp_path, evaluator=rise
        ).record["best"]["num_worse"]
        == 1
    )
    changes |= {"training.num_steps": 20, "training.evaluate_every_steps": 1}
    resumed = settings.small_settings(**OVERRIDES | changes)
    assert train(resumed, tmp_path, evaluator=rise).step == 6
    assert "than that of step 2 in 3 evaluations" in log_lines.text


def test_an_evaluation_that_a_signal_cuts_is_made_when_the_run_goes_on(
    tmp_path: pathlib.Path,
) -> None:
    small = settings.small_settings(**OVERRIDES, **{"training.evaluate_every_steps": 4})
    evaluations = []

    def cut(params: Any) -> dict[str, float]:
        evaluations.append(True)
        signal.raise_signal(signal.SIGTERM)
        raise AssertionError("the signal did not interrupt it")

    # Once in the middle of training, once where it goes on: it stays to be made.
    for count in (1, 2):
        with pytest.raises(preemption.Stopped) as stopped:
            train(small, tmp_path / "cut", evaluator=cut)
        assert (stopped.value.status, len(evaluations)) == (143, count)
        assert "at step 4" in str(stopped.value)
    last = train(small, tmp_path / "cut")
    uninterrupted = train(small, tmp_path / "whole")
    jax.tree.map(np.testing.assert_array_equal, uninterrupted.items, last.items)
    losses = [
        read_metrics(tmp_path / name)[4]["valid/loss"] for name in ("cut", "whole")
    ]
    assert losses == [0.0, 0.0]
    # Once it is made, it is not made again, unless its record is damaged.
    train(small, tmp_path / "cut", evaluator=cut)
    assert len(evaluations) == 2
    assert read_metrics(tmp_path / "cut")[4]["valid/loss"] == 0.0
    (tmp_path / "cut/evaluated.json").write_text("{")
    with pytest.raises(preemption.Stopped):
        train(small, tmp_path / "cut", evaluator=cut)


def test_an_evaluation_that_a_signal_cuts_does_not_end_patience(
    tmp_path: pathlib.Path,
) -> None:
    small = settings.small_settings(
        **OVERRIDES,
        **{
            "training.num_steps": 8,
            "training.checkpoint_every_steps": 3,
            "training.best_metric": "loss",
            "training.patience": 1,
        },
    )
    losses = itertools.count(9.0, -1.0)

    def improve(params: Any) -> dict[str, float]:
        return {"valid/loss": next(losses), "valid/bleu": 1.0}

    def cut_at_the_second(params: Any) -> dict[str, float]:
        if next(calls):
            signal.raise_signal(signal.SIGTERM)
        return improve(params)

    calls = iter([False, True])
    with pytest.raises(preemption.Stopped, match="at step 4"):
        train(small, tmp_path, evaluator=cut_at_the_second)
    assert train(small, tmp_path, evaluator=improve).step == 8
    # The checkpoint that the signal caused is deleted.
    assert store.steps(tmp_path / "checkpoints") == [3, 6, 8]


def test_a_damaged_best_checkpoint_is_replaced_with_a_warning(
    tmp_path: pathlib.Path, log_lines: pytest.LogCaptureFixture
) -> None:
    short, long = (
        settings.small_settings(**OVERRIDES, **{"training.num_steps": steps})
        for steps in (4, 6)
    )
    train(short, tmp_path, evaluator=lambda params: {"valid/bleu": 50.0})
    damages.truncate(tmp_path / "best" / "2")
    train(long, tmp_path, evaluator=lambda params: {"valid/bleu": 1.0})
    text = log_lines.text
    assert f"{tmp_path / 'best' / '2'} is damaged" in text
    assert "counts as the best so far" in text
    best = tmp_path / "best"
    assert store.steps(best) == [6]
    assert store.restore(best, 6, names=["params"]).record["score"] == 1.0


def test_a_score_of_another_metric_is_not_compared(
    tmp_path: pathlib.Path, log_lines: pytest.LogCaptureFixture
) -> None:
    def evaluator(params: Any) -> dict[str, float]:
        return {"valid/loss": 3.0, "valid/bleu": 20.0}

    # -3 is not worse than 20: they are of two metrics.
    for steps, metric in ((2, "bleu"), (4, "loss")):
        changes = {"training.num_steps": steps, "training.best_metric": metric}
        small = settings.small_settings(**OVERRIDES, **changes)
        train(small, tmp_path, evaluator=evaluator)
    assert store.steps(tmp_path / "best") == [4]
    assert "is of another text, metric or search" in log_lines.text


def test_without_a_validation_set_no_step_is_the_best(
    tmp_path: pathlib.Path, log_lines: pytest.LogCaptureFixture
) -> None:
    small = settings.small_settings(**OVERRIDES)
    data = prepared.open_or_prepare(small, tmp_path / "data", rebuild=False)
    counts = {"train": data.counts["train"]}
    manifest = dataclasses.replace(data.manifest, counts=counts)
    data = dataclasses.replace(data, manifest=manifest)
    assert validation.make_validators(small, data) == []
    assert "note: no validation set (config.data.valid_source is empty)" in (
        log_lines.text
    )
    # Functions of the user's own are called all the same.
    for name, evaluators in (
        ("none", []),
        ("own", [lambda params: {"own/size": 5.0}]),
    ):
        (tmp_path / name).mkdir()
        workdir = files.Directory(tmp_path / name)
        outcome = loop.train(small, data, workdir=workdir, evaluators=evaluators)
        assert (outcome.step, outcome.best_step) == (small.training.num_steps, 0)
        assert ("own/size" in outcome.metrics) == bool(evaluators)
        assert store.steps(workdir.path / "checkpoints")
        assert not (workdir.path / "best").exists()
        # It resumes.
        again = loop.train(small, data, workdir=workdir, evaluators=evaluators)
        assert (again.step, again.best_step) == (outcome.step, 0)


def test_a_score_of_another_tokeniser_is_not_compared() -> None:
    """A package of words was installed, or an earlier version took other tokens."""
    small = settings.small_settings(
        **{"training.best_metric": "bleu", "data.target_locale": "ja"}
    )
    by_word = early_stopping.Criterion(small, "text", "ja-mecab")
    by_character = early_stopping.Criterion(small, "text", "char")
    for first in (by_word, by_character):
        for second in (by_word, by_character):
            assert first.is_comparable(second.describe()) == (first == second)
    # Earlier versions recorded none.
    unnamed = {"score_of": "bleu", "valid_text": "text"}
    assert by_character.is_comparable(unnamed) and not by_word.is_comparable(unnamed)
    by_loss = settings.small_settings(**{"training.best_metric": "loss"})
    losses = [early_stopping.Criterion(by_loss, "text", name) for name in ("13a", "zh")]
    assert losses[0].is_comparable(losses[1].describe())


@pytest.mark.parametrize("metric", ["bleu", "f1", "loss"])
def test_a_score_of_another_search_is_not_compared(metric: str) -> None:
    changes = settings.TREEBANK if metric == "f1" else {}
    changes = {**changes, "training.best_metric": metric}
    greedy, wide = (
        settings.small_settings(**changes, **{"search.beam_size": size})
        for size in (1, 4)
    )
    recorded = early_stopping.Criterion(greedy, "text", "13a").describe()
    record = {**recorded, "config": config.to_dict(greedy)}
    is_comparable = early_stopping.Criterion(wide, "text", "13a").is_comparable(record)
    assert is_comparable == (metric == "loss")


def stopped_at(step: int, evaluator: Evaluator) -> Evaluator:
    """The evaluator, but a signal comes with the evaluation of a step."""
    count = itertools.count(1)

    def evaluate(params: Any) -> Mapping[str, float]:
        if next(count) == step:
            signal.raise_signal(signal.SIGTERM)
        return evaluator(params)

    return evaluate


PATIENT = {
    **OVERRIDES,
    "training.best_metric": "loss",
    "training.patience": 2,
    "training.evaluate_every_steps": 1,
    "training.checkpoint_every_steps": 2,
    "training.num_steps": 8,
}


def test_patience_sees_what_could_not_be_kept(
    tmp_path: pathlib.Path,
    log_lines: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    losses = iter([5.0, 4.0, 3.0, 2.0, 1.9, 1.8, 1.7, 1.6])
    replace_best = early_stopping.replace_best

    def full_disk(
        directory: pathlib.Path, checkpoint: store.Checkpoint, *, saved_score: float
    ) -> None:
        if checkpoint.step > 1:
            raise store.NotWrittenError("no space left")
        replace_best(directory, checkpoint, saved_score=saved_score)

    monkeypatch.setattr(early_stopping, "replace_best", full_disk)
    small = settings.small_settings(**PATIENT)
    last = train(small, tmp_path, evaluator=lambda params: {"valid/loss": next(losses)})
    assert last.step == 8
    text = log_lines.text
    assert text.count("no space left; training continues without it") == 7
    assert "training ends" not in text


def test_patience_begins_anew_with_another_metric(tmp_path: pathlib.Path) -> None:
    def evaluate(params: Any) -> dict[str, float]:
        return {"valid/loss": 3.0, "valid/bleu": 20.0}

    for steps, extra in (
        (6, {"training.patience": 9}),
        (7, {"training.best_metric": "bleu"}),
        (8, {"training.best_metric": "bleu", "data.lowercase_scores": True}),
    ):
        changes = {**PATIENT, "training.num_steps": steps, **extra}
        last = train(settings.small_settings(**changes), tmp_path, evaluator=evaluate)
        assert last.step == steps
    assert last.record["best"]["step"] == 8


def test_how_a_search_is_computed_changes_no_score(
    tmp_path: pathlib.Path, log_lines: pytest.LogCaptureFixture
) -> None:
    for steps, key, value in (
        (2, "num_steps", 2),
        (4, "source_tokens_per_batch", 512),
        (6, "beam_size", 2),
    ):
        section = "training" if key == "num_steps" else "search"
        changes = {"training.num_steps": steps, f"{section}.{key}": value}
        small = settings.small_settings(**OVERRIDES, **changes)
        score = {2: 50.0, 4: 20.0, 6: 10.0}[steps]
        train(small, tmp_path, evaluator=lambda params, s=score: {"valid/bleu": s})
        text = log_lines.text
        assert ("is of another" in text) == (key == "beam_size")
    # A wider beam counts anew; the best of the other is set aside.
    assert store.steps(tmp_path / "best") == [6]
    assert store.steps(tmp_path / "best.old") == [2]


def test_what_a_kill_took_back_ends_no_run(tmp_path: pathlib.Path) -> None:
    """The best score of step 3 is of a future that another rate takes elsewhere."""
    losses = {1: 5.0, 2: 4.0, 3: 1.0}

    def killed(params: Any) -> dict[str, float]:
        if not losses:
            raise KeyboardInterrupt
        return {"valid/loss": losses.pop(min(losses))}

    with pytest.raises(KeyboardInterrupt):
        train(settings.small_settings(**PATIENT), tmp_path, evaluator=killed)
    assert store.steps(tmp_path / "checkpoints") == [2]
    assert store.steps(tmp_path / "best") == [3]
    falling = iter([3.9, 3.8, 3.7, 3.6, 3.5, 3.4])
    changed = {**PATIENT, "optimizer.learning_rate_scale": 0.5}
    last = train(
        settings.small_settings(**changed),
        tmp_path,
        evaluator=lambda params: {"valid/loss": next(falling)},
    )
    assert (last.step, last.record["best"]["step"]) == (8, 8)


def test_the_best_of_a_run_whose_checkpoints_are_gone_is_set_aside(
    tmp_path: pathlib.Path, log_lines: pytest.LogCaptureFixture
) -> None:
    small = settings.small_settings(**OVERRIDES, **{"training.num_steps": 2})
    train(small, tmp_path)
    best_steps = store.steps(tmp_path / "best")
    save_average(small, tmp_path)
    shutil.rmtree(tmp_path / "checkpoints")
    train(small, tmp_path)
    assert store.steps(tmp_path / "best.old") == best_steps
    assert str(tmp_path / "best.old") in log_lines.text
    # Commands would take it for the mean of the new run.
    assert list((tmp_path / "averaged").iterdir()) == []
    names = {path.name for path in (tmp_path / "averaged.old").iterdir()}
    assert names == {"2", "2.safetensors"}


def test_an_average_that_a_kill_moved_away_is_set_aside_with_the_best(
    tmp_path: pathlib.Path,
) -> None:
    small = settings.small_settings(**OVERRIDES, **{"training.num_steps": 2})
    train(small, tmp_path)
    save_average(small, tmp_path)
    shutil.rmtree(tmp_path / "checkpoints")
    directory = tmp_path / "averaged"
    directory.rename(files.sibling(directory, "old"))
    assert select.find_steps(tmp_path, "averaged")
    train(small, tmp_path)
    assert select.find_steps(tmp_path, "averaged") is None
    names = {path.name for path in (tmp_path / "averaged.old").iterdir()}
    assert names == {"2", "2.safetensors"}


def test_a_stopped_run_averages_what_an_undisturbed_one_does(
    tmp_path: pathlib.Path,
) -> None:
    changes = {"training.keep_checkpoints": 2, "training.patience": 0}
    small = settings.small_settings(**{**PATIENT, **changes})

    def zero(params: Any) -> dict[str, float]:
        return {"valid/loss": 0.0}

    def steps(name: str) -> list[int]:
        return store.steps(tmp_path / name / "checkpoints")

    uninterrupted = train(small, tmp_path / "whole", evaluator=zero)
    # Twice between two regular checkpoints, once at a regular one.
    for signal_step, kept_steps in ((7, [4, 6, 7]), (1, [4, 6, 7]), (2, [6, 8])):
        with contextlib.suppress(preemption.Stopped):
            train(small, tmp_path / "cut", evaluator=stopped_at(signal_step, zero))
        assert steps("cut") == kept_steps
    cut = train(small, tmp_path / "cut", evaluator=zero)
    assert steps("cut") == steps("whole") == [6, 8]
    jax.tree.map(np.testing.assert_array_equal, uninterrupted.items, cut.items)
