"""What an evaluation finds is kept, and ends a run that gets no better."""

import os
import pathlib
import signal
import time
from typing import Any

import jax
import numpy as np
import pytest

from tests import settings
from tests.training import damages
from tests.training.test_loop import OVERRIDES, metrics, run
from vaswani_jax.training import checkpoints, stopping


def test_training_ends_when_nothing_has_been_better_for_long(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
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

    found = run(small, tmp_path, evaluator=evaluate)
    assert found.step == 8
    assert checkpoints.Checkpoints(tmp_path / "best", keep=1).steps() == [4]
    told = capsys.readouterr().err
    assert "no better valid/loss than that of step 4 in 2 evaluations" in told
    again = run(small, tmp_path, evaluator=evaluate)
    assert again.step == 8
    assert "nothing to train: no better valid/loss" in capsys.readouterr().err


def test_an_evaluation_that_a_signal_cuts_is_made_when_the_run_goes_on(
    tmp_path: pathlib.Path,
) -> None:
    small = settings.small_settings(**OVERRIDES, **{"training.evaluate_every_steps": 4})
    begun = []

    def cut(params: Any) -> dict[str, float]:
        begun.append(True)
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(30)
        raise AssertionError("it was not cut")

    # Once in the middle of training, once where it goes on: it stays to be made.
    for count in (1, 2):
        with pytest.raises(stopping.Stopped) as stopped:
            run(small, tmp_path / "cut", evaluator=cut)
        assert (stopped.value.status, len(begun)) == (143, count)
        assert "at step 4" in str(stopped.value)
    found = run(small, tmp_path / "cut")
    whole = run(small, tmp_path / "whole")
    jax.tree.map(np.testing.assert_array_equal, whole.items, found.items)
    losses = [metrics(tmp_path / name)[4]["valid/loss"] for name in ("cut", "whole")]
    assert losses == [0.0, 0.0]


def test_a_damaged_best_checkpoint_is_told_and_replaced(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    short, long = (
        settings.small_settings(**OVERRIDES, **{"training.num_steps": steps})
        for steps in (4, 6)
    )
    run(short, tmp_path, evaluator=lambda params: {"valid/bleu": 50.0})
    damages.truncate(tmp_path / "best" / "2")
    run(long, tmp_path, evaluator=lambda params: {"valid/bleu": 1.0})
    told = capsys.readouterr().err
    assert f"{tmp_path / 'best' / '2'} is damaged" in told
    assert "counts as the best so far" in told
    best = checkpoints.Checkpoints(tmp_path / "best", keep=1)
    assert best.steps() == [6]
    assert best.restore(6, ["params"]).record["score"] == 1.0


def test_a_score_of_another_metric_is_not_compared(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def evaluator(params: Any) -> dict[str, float]:
        return {"valid/loss": 3.0, "valid/bleu": 20.0}

    # -3 is not worse than 20: they are of two metrics.
    for steps, metric in ((2, "bleu"), (4, "loss")):
        changes = {"training.num_steps": steps, "training.best_metric": metric}
        small = settings.small_settings(**OVERRIDES, **changes)
        run(small, tmp_path, evaluator=evaluator)
    assert checkpoints.Checkpoints(tmp_path / "best", keep=9).steps() == [4]
