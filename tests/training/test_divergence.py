"""Batches that give no finite loss, or a spike: recorded, left out, gone back from."""

import json
import math
import pathlib
import shutil
import signal
import weakref
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest

from tests import settings
from tests.training.small_runs import OVERRIDES, prepare, read_metrics, train
from vaswani_jax.checkpoints import store
from vaswani_jax.core import files, processes
from vaswani_jax.data import training_batches
from vaswani_jax.training import divergence, preemption, resume, step

pytestmark = pytest.mark.usefixtures("steps_once")


def poison(
    monkeypatch: pytest.MonkeyPatch, is_bad: Callable[[int, int], bool], value: float
) -> list[weakref.ref[Any]]:
    """Multiply loss and parameters by a value after some updates, of some batches.

    Returns a list of weak references to the parameters of the last update.
    """
    make_train_steps = step.make_train_steps
    references: list[weakref.ref[Any]] = []

    def poisoned(update: Any) -> Any:
        def run(state: step.TrainState, rows: Any) -> Any:
            total = int(total_of(rows))
            state, metrics = update(state, rows)
            if is_bad(int(state.step), total):
                params = jax.tree.map(lambda leaf: leaf * value, state.params)
                sums = metrics.sums.replace(loss=metrics.sums.loss * value)
                state = state.replace(params=params)
                metrics = metrics.replace(sums=sums)
            references[:] = map(weakref.ref, jax.tree.leaves(state.params))
            return state, metrics

        run.lower = update.lower  # type: ignore[attr-defined]
        return run

    def make_poisoned(*args: Any, **kwargs: Any) -> Any:
        make_train_step = make_train_steps(*args, **kwargs)
        return lambda num_microbatches: poisoned(make_train_step(num_microbatches))

    monkeypatch.setattr(step, "make_train_steps", make_poisoned)
    return references


def test_an_update_that_diverges_is_named_among_several(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    poison(monkeypatch, lambda num_updates, total: num_updates == 4, np.nan)
    # Logged every third step only: the step named must still be the fourth.
    small = settings.small_settings(
        **OVERRIDES,
        **{
            "training.num_steps": 6,
            "training.log_every_steps": 3,
            "training.checkpoint_every_steps": 3,
        },
    )
    with pytest.raises(divergence.DivergedError, match=r"step 4 .*nan.*: step 3"):
        train(small, tmp_path)
    assert store.steps(tmp_path / "checkpoints") == [3]


def total_of(batch: Any) -> Any:
    """Return a number that tells batches apart."""
    return (np.asarray(batch.source) * np.asarray(batch.target_in)).sum()


def totals_of(directory: pathlib.Path, count: int | None = None) -> list[int]:
    """Return the totals of the first batches of a run, by default of two epochs."""
    small = settings.small_settings(**OVERRIDES)
    data = prepare(small, directory)
    batches = training_batches.make_training_batches(
        small.data,
        data.token_pairs("train"),
        seed=small.seed,
        corpus_sizes=data.manifest.corpus_sizes,
    )
    indices = range(count or 2 * batches.batches_per_epoch)
    return [int(total_of(batches.batch_at(number))) for number in indices]


@pytest.fixture(scope="module")
def totals(tmp_path_factory: pytest.TempPathFactory) -> list[int]:
    """The totals of the first two epochs, all different."""
    totals = totals_of(tmp_path_factory.mktemp("look") / "data")
    assert len(set(totals)) == len(totals)
    return totals


def test_a_bad_batch_is_recorded_and_left_out(
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
    log_lines: pytest.LogCaptureFixture,
    totals: list[int],
) -> None:
    changes = OVERRIDES | {
        "training.num_steps": 8,
        "training.checkpoint_every_steps": 2,
        "training.log_every_steps": 4,
        "training.max_skipped_batches": 1,
        "training.ema_decay": 0.9,  # of the parameters that are gone back from, too
    }
    small = settings.small_settings(**changes)

    params = poison(monkeypatch, lambda num_updates, total: total == totals[4], np.nan)
    resume_run = resume.resume

    def resume_with_room(*args: Any, **options: Any) -> resume.Resumed:
        assert all(reference() is None for reference in params)
        return resume_run(*args, **options)

    with monkeypatch.context() as patch:
        patch.setattr(resume, "resume", resume_with_room)
        last = train(small, tmp_path)
    assert params
    text = log_lines.text
    assert "at step 5 the loss is" in text and "not finite" in text
    assert "batch 4 is skipped" in text and "continues from step 4" in text
    [line] = (tmp_path / "diverged.jsonl").read_text().splitlines()
    record = json.loads(line)
    assert (record["step"], record["batch"]) == (5, 4)
    assert len(record["pairs"]) > 1
    assert last.record["skipped"] == [4]
    assert store.AVERAGE in last.items
    for leaf in jax.tree.leaves(last.items):
        assert np.isfinite(leaf).all()
    # It is the run of a corpus whose fifth batch is the sixth, and so on.
    rows = read_metrics(tmp_path)
    assert sorted(rows) == [2, 4, 6, 8]
    # Resumed, it leaves out the same batch, and ends in the same parameters.
    for later in ("6", "8"):
        shutil.rmtree(tmp_path / "checkpoints" / later)
    resumed = train(small, tmp_path)
    jax.tree.map(np.testing.assert_array_equal, last.items, resumed.items)


def test_a_fine_tuned_run_goes_back_to_the_parameters_it_began_with(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, totals: list[int]
) -> None:
    small = settings.small_settings(
        **OVERRIDES
        | {
            "training.num_steps": 2,
            "training.evaluate_every_steps": 1,
            "training.max_skipped_batches": 1,
        }
    )
    data = prepare(small, tmp_path / "data")
    size = data.vocabulary.size
    initial = settings.random_params(small.model, vocab_size=size, seed=5)
    placed = []
    create, place = step.create_state, step.place_on_devices

    def create_on_device(settings: Any, **options: Any) -> step.TrainState:
        return jax.device_put(create(settings, **options))

    def remember(settings: Any, state: step.TrainState) -> step.TrainState:
        placed.append(jax.device_get(state.params))
        return place(settings, state)

    monkeypatch.setattr(step, "create_state", create_on_device)
    monkeypatch.setattr(step, "place_on_devices", remember)
    poison(monkeypatch, lambda num_updates, total: total == totals[1], np.nan)
    last = train(small, tmp_path, initial_params=initial)
    assert last.record["skipped"] == [1] and len(placed) == 2
    for params in placed:
        jax.tree.map(np.testing.assert_array_equal, params, initial)
    # The parameters that were the best before it went back are still its own.
    assert store.steps(tmp_path / "best") == [1]
    assert not (tmp_path / "best.old").exists()


def test_the_store_has_all_when_several_processes_go_back(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, totals: list[int]
) -> None:
    """Process 0 may have a checkpoint that it could not send."""
    events: list[str] = []

    class Workdir(files.Directory):
        def push(self, *, folder: str = "") -> None:
            events.append("push")

    small = settings.small_settings(
        **OVERRIDES
        | {
            "training.num_steps": 4,
            "training.checkpoint_every_steps": 2,
            "training.max_skipped_batches": 1,
        }
    )
    poison(monkeypatch, lambda num_updates, total: total == totals[2], np.nan)
    skip, resume_run = divergence.skip_batch, resume.resume

    def skip_as_one_of_two(*args: Any, **options: Any) -> list[int]:
        events.append("skip")
        monkeypatch.setattr(processes, "num_processes", lambda: 2)
        return skip(*args, **options)

    def resume_alone(*args: Any, **options: Any) -> resume.Resumed:
        events.append("resume")
        monkeypatch.setattr(processes, "num_processes", lambda: 1)
        return resume_run(*args, **options)

    monkeypatch.setattr(processes, "gather_from_all", lambda same: np.stack([same] * 2))
    monkeypatch.setattr(divergence, "skip_batch", skip_as_one_of_two)
    monkeypatch.setattr(resume, "resume", resume_alone)
    last = train(small, Workdir(tmp_path / "run"))
    assert last.record["skipped"] == [2]
    # It sends the start and the first checkpoint; later the second one.
    assert events == ["resume", *["push"] * 2, "skip", "push", "resume", "push"]


@pytest.mark.parametrize("is_recorded", [True, False])
def test_a_run_that_goes_back_to_a_cut_evaluation_knows_its_score(
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
    totals: list[int],
    is_recorded: bool,
) -> None:
    changes = OVERRIDES | {
        "training.num_steps": 6,
        "training.checkpoint_every_steps": 4,
        "training.evaluate_every_steps": 4,
        "training.max_skipped_batches": 1,
    }
    small = settings.small_settings(**changes)

    def cut(params: Any) -> dict[str, float]:
        signal.raise_signal(signal.SIGTERM)
        raise AssertionError("the signal did not interrupt it")

    with pytest.raises(preemption.Stopped, match="at step 4"):
        train(small, tmp_path, evaluator=cut)
    poison(monkeypatch, lambda num_updates, total: total == totals[4], np.nan)
    # At the start and at the end; if the disk is full, after going back, too.
    losses = [1.0, 2.0]
    if not is_recorded:
        monkeypatch.setattr(resume, "record_evaluation", lambda run, progress: None)
        losses.insert(0, 1.0)
    last = train(
        small, tmp_path, evaluator=lambda params: {"valid/loss": losses.pop(0)}
    )
    assert last.record["skipped"] == [4] and not losses
    assert last.record["best"]["step"] == 4
    rows = read_metrics(tmp_path)
    assert [rows[number]["valid/loss"] for number in (4, 6)] == [1.0, 2.0]


def test_too_many_bad_batches_end_the_run_with_a_report(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    changes = OVERRIDES | {
        "training.num_steps": 8,
        "training.checkpoint_every_steps": 2,
        "training.max_skipped_batches": 2,
    }
    poison(monkeypatch, lambda num_updates, total: True, np.nan)
    with pytest.raises(divergence.DivergedError, match="batches skipped before: 2 "):
        train(settings.small_settings(**changes), tmp_path)
    lines = (tmp_path / "diverged.jsonl").read_text().splitlines()
    assert [json.loads(line)["batch"] for line in lines] == [0, 1, 2]


def test_a_record_that_cannot_be_written_is_not_promised(
    tmp_path: pathlib.Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "diverged.jsonl").mkdir()

    def skip(max_skipped_batches: int) -> None:
        divergence.skip_batch(
            divergence.BadUpdate(step=3, loss=math.nan, gradient_norm=1.0, reason="x"),
            [],
            batch=2,
            pairs=np.arange(2),
            max_skipped_batches=max_skipped_batches,
            workdir=tmp_path,
            checkpoint_steps=[],
        )

    skip(1)
    with pytest.raises(divergence.DivergedError) as stopped:
        skip(0)
    for message in (caplog.messages[0], str(stopped.value)):
        assert "diverged.jsonl cannot be written" in message
        assert "pairs" not in message


def test_a_spike_is_gone_back_from_and_left_out(
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
    log_lines: pytest.LogCaptureFixture,
) -> None:
    window = 10
    monkeypatch.setattr(divergence, "WINDOW", window)
    small = settings.small_settings(
        **OVERRIDES
        | {
            "training.num_steps": window + 8,
            "training.checkpoint_every_steps": 4,
            "training.log_every_steps": 4,
            "training.evaluate_every_steps": window + 8,
            "training.max_skipped_batches": 1,
            "training.max_loss_rise": 3.0,
        }
    )
    totals = totals_of(tmp_path / "run/data", window + 9)
    planted = next(
        n for n in range(window + 2, window + 6) if totals.count(totals[n]) == 1
    )

    poison(monkeypatch, lambda num_updates, total: total == totals[planted], 3.0)
    last = train(small, tmp_path / "run")
    text = log_lines.text
    assert f"at step {planted + 1} the loss is" in text
    assert f"batch {planted} is skipped" in text
    assert f"continues from step {planted // 4 * 4}" in text
    assert last.record["skipped"] == [planted]
    losses = [row["train/loss"] for row in read_metrics(tmp_path / "run").values()]
    assert max(losses[window // 4 :]) < 5


def test_a_spike_counts_from_the_mean_of_the_last_updates() -> None:
    def metrics_of(value: float) -> step.StepMetrics:
        sums = dict.fromkeys(("nll", "correct"), np.array(0, np.float32))
        return step.StepMetrics(
            divergence.loss.LossSums(
                loss=np.array(10 * value, np.float32),
                tokens=np.array(10.0, np.float32),
                **sums,
            ),
            np.array(1, np.float32),
        )

    def find(
        losses: list[float], *, step: int, recent_losses: list[float]
    ) -> divergence.BadUpdate | None:
        return divergence.find_bad_update(
            [metrics_of(value) for value in losses],
            step=step,
            recent_losses=recent_losses,
            max_loss_rise=0.5,
        )

    for value in (np.nan, np.inf):
        bad = find([2.0, value], step=2, recent_losses=[])
        assert bad is not None and (bad.step, bad.reason) == (2, "not finite")
    window = divergence.WINDOW
    # Before there are enough of them nothing is a spike.
    assert find([9.0], step=window, recent_losses=[2.0] * (window - 1)) is None
    recent_losses = [2.0] * window
    assert find([2.4], step=window + 1, recent_losses=recent_losses) is None
    bad = find([2.4, 2.6], step=window + 3, recent_losses=recent_losses)
    assert bad is not None and bad.step == window + 3
    assert "config.training.max_loss_rise=0.5" in str(bad)
    assert len(recent_losses) == window
    assert recent_losses[-2:] == pytest.approx([2.4, 2.4])
