"""The loop: resuming is exact, what diverges stops, evaluation is best of all."""

import errno
import json
import pathlib
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest

from tests import settings
from tests.training import updates
from tests.training.small_runs import OVERRIDES, read_metrics, train
from vaswani_jax.checkpoints import select, store
from vaswani_jax.core import compilation_cache, memory, parallel
from vaswani_jax.training import loop, resume, step

pytestmark = pytest.mark.usefixtures("steps_once")

ALTERNATIVES = {
    "optimizer.schedule": "inverse_sqrt",
    "optimizer.learning_rate": 0.05,
    "optimizer.max_gradient_norm": 0.3,
    "optimizer.weight_decay": 0.1,
    "optimizer.frozen": "encoder/*",
    "training.shard_optimizer": True,
    "training.ema_decay": 0.7,
}
MODES = {
    "buckets": {"data.num_buckets": 2},
    "packed in parts": {
        **{"data.batching": "packed", "training.accumulate_steps": "3"},
        "data.vocabulary_sharing": "separate",
        **ALTERNATIVES,
    },
}


@pytest.mark.parametrize("mode", MODES)
def test_resumed_run_equals_uninterrupted_run_bit_for_bit(
    tmp_path: pathlib.Path, mode: str
) -> None:
    changes = OVERRIDES | MODES[mode]
    long = settings.small_settings(**changes, **{"training.num_steps": 8})
    short = settings.small_settings(**changes, **{"training.num_steps": 3})
    uninterrupted = train(long, tmp_path / "whole")
    train(short, tmp_path / "parts")
    resumed = train(long, tmp_path / "parts")
    assert uninterrupted.step == resumed.step == 8
    jax.tree.map(np.testing.assert_array_equal, uninterrupted.items, resumed.items)
    # The losses that were logged on the way are the same, too.
    first, second = read_metrics(tmp_path / "whole"), read_metrics(tmp_path / "parts")
    losses = [[rows[n]["train/loss"] for n in range(1, 9)] for rows in (first, second)]
    assert losses[0] == losses[1]
    assert len(set(losses[0])) == 8


def test_a_prolonged_run_keeps_the_checkpoints_of_an_uninterrupted_one(
    tmp_path: pathlib.Path,
) -> None:
    changes = OVERRIDES | {"training.keep_checkpoints": 3}
    for name, ends in (("whole", [8]), ("prolonged", [5, 6, 8])):
        for num_steps in ends:
            values = changes | {"training.num_steps": num_steps}
            train(settings.small_settings(**values), tmp_path / name)
        assert store.steps(tmp_path / name / "checkpoints") == [4, 6, 8]


def test_the_end_of_a_run_is_regular_by_a_new_interval(tmp_path: pathlib.Path) -> None:
    changes = OVERRIDES | {"training.keep_checkpoints": 3}
    for num_steps, interval in ((6, 4), (9, 3)):
        ends = {
            "training.num_steps": num_steps,
            "training.checkpoint_every_steps": interval,
        }
        train(settings.small_settings(**changes, **ends), tmp_path)
    assert store.steps(tmp_path / "checkpoints") == [4, 6, 9]


@pytest.mark.parametrize(
    ("num_steps", "interval", "count", "first"),
    [
        (10_000, 1500, 5, "4,500"),
        (9_999, 5000, 20, None),
        (10_001, 5000, 20, "5,000"),
        (100_000, 1500, 5, None),  # the base model's
        (300_000, 600, 20, None),  # the big model's
        (8, 4, 5, None),
        (1000, 10, 1, None),
        (3, 10, 5, None),
    ],
)
def test_an_average_that_begins_early_is_warned_of(
    num_steps: int, interval: int, count: int, first: str | None
) -> None:
    training = settings.small_settings(
        **{
            "training.num_steps": num_steps,
            "training.checkpoint_every_steps": interval,
            "training.average_checkpoints": count,
            "training.keep_checkpoints": count,
        }
    ).training
    warning = loop.warn_of_early_average(training)
    if first is None:
        assert warning == ""
    else:
        assert f"from step {first} to step {num_steps:,}: early" in warning


def test_a_moving_average_is_evaluated_saved_and_decoded_from(
    tmp_path: pathlib.Path,
) -> None:
    evaluated: list[Any] = []

    def evaluate(params: Any) -> dict[str, float]:
        evaluated.append(jax.device_get(params))
        return {"valid/loss": -len(evaluated)}

    small = settings.small_settings(
        **OVERRIDES | MODES["packed in parts"], **{"training.num_steps": 4}
    )
    last = train(small, tmp_path, evaluator=evaluate)
    updates.assert_equal(evaluated[-1], last.items[store.AVERAGE])
    for name in ("newest", "best", "4"):
        updates.assert_equal(
            select.select(tmp_path, name).items["params"], evaluated[-1]
        )
    mean = select.select(tmp_path, "average:2")
    expected = jax.tree.map(lambda *both: np.mean(both, 0), *evaluated[-2:])
    updates.assert_close(mean.items["params"], expected, rtol=1e-6, atol=1e-7)
    text = select.describe(tmp_path, "average:2", checkpoint=mean)
    assert text.endswith("(the mean of [2, 4]; moving average, decay 0.7)")
    # It is not the parameters, but for those that are frozen.
    for path, leaf in jax.tree_util.tree_leaves_with_path(evaluated[-1]):
        params = last.items["params"]
        for entry in path:
            params = params[entry.key]
        assert np.array_equal(leaf, params) == (path[0].key == "encoder")


# As many parts as the memory needs.
AUTO = OVERRIDES | {
    "training.accumulate_steps": "auto",
    "data.source_tokens_per_batch": 512,
    "data.target_tokens_per_batch": 512,
}


def test_a_resumed_run_computes_in_as_many_parts_as_before(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    short, long = (
        settings.small_settings(**AUTO, **{"training.num_steps": steps})
        for steps in (2, 4)
    )
    monkeypatch.setattr(compilation_cache, "directory", lambda: None)
    needs = [1000, 10, 10]  # bytes of a step: whole, in halves; in halves, later
    monkeypatch.setattr(
        memory,
        "needed_bytes",
        lambda step, **trees: memory.NeededBytes(1, needs.pop(0)),
    )
    monkeypatch.setattr(memory, "available_bytes", lambda held: 100)
    assert train(short, tmp_path).record["parts"] == 2
    # With more memory it could go on in one, but not to the same digits.
    monkeypatch.setattr(memory, "available_bytes", lambda held: 10_000)
    assert train(long, tmp_path).record["parts"] == 2
    assert not needs


def test_on_other_devices_a_resumed_run_takes_as_few_parts_as_fit(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compilation_cache, "directory", lambda: None)
    needs = [1000, 10, 1000, 1000]  # bytes of a step: whole, in halves; whole, whole
    monkeypatch.setattr(
        memory,
        "needed_bytes",
        lambda step, **trees: memory.NeededBytes(1, needs.pop(0)),
    )
    for num_steps, devices, available, parts in (
        (2, "small ones", 100, 2),
        (4, "large ones", 10_000, 1),
        (6, "large ones", 10_000, 1),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(parallel, "describe", lambda name=devices: name)
            patch.setattr(memory, "available_bytes", lambda held, n=available: n)
            values = AUTO | {"training.num_steps": num_steps}
            record = train(settings.small_settings(**values), tmp_path).record
        assert (record["devices"], record["parts"]) == (devices, parts)
    assert not needs


def test_a_run_that_gives_memory_back_says_so_once(
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
    log_lines: pytest.LogCaptureFixture,
) -> None:
    small = settings.small_settings(**OVERRIDES)
    monkeypatch.setattr(compilation_cache, "directory", lambda: None)
    monkeypatch.setattr(
        memory,
        "needed_bytes",
        lambda step, **trees: memory.NeededBytes(1, 900),
    )
    asked = []

    def make_room(needed: int) -> bool:
        asked.append(needed)
        return len(asked) > 1

    monkeypatch.setattr(memory, "make_room", make_room)
    train(small, tmp_path)
    # Before each step and what may follow it, and in the end.
    assert asked == [1000] * (2 * small.training.num_steps + 1)
    assert log_lines.text.count("memory is short") == 1


def test_a_resumed_run_draws_no_random_state(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # It would lie in memory beside the state that is read.
    train(settings.small_settings(**OVERRIDES), tmp_path)

    def drawn(*args: Any, **kwargs: Any) -> Any:
        raise AssertionError("a state was drawn")

    monkeypatch.setattr(step, "create_state", drawn)
    longer = settings.small_settings(**OVERRIDES, **{"training.num_steps": 5})
    assert train(longer, tmp_path).step == 5


def test_finished_run_does_nothing_when_started_again(tmp_path: pathlib.Path) -> None:
    small = settings.small_settings(**OVERRIDES)
    first = train(small, tmp_path)
    second = train(small, tmp_path)
    assert first.step == second.step
    jax.tree.map(np.testing.assert_array_equal, first.items, second.items)


def test_a_record_of_starts_that_cannot_be_read_later_ends_no_run(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    losses = iter([3.0, 2.0])
    read_text = pathlib.Path.read_text

    def fail_for_starts(path: pathlib.Path, *args: Any, **options: Any) -> str:
        if path.name == "starts.jsonl":
            raise OSError(errno.ESTALE, "Stale file handle", str(path))
        return read_text(path, *args, **options)

    with monkeypatch.context() as patch:

        def evaluate(params: Any) -> dict[str, float]:
            patch.setattr(pathlib.Path, "read_text", fail_for_starts)
            return {"valid/loss": next(losses)}

        # Each evaluation is better, so that both write their parameters.
        last = train(settings.small_settings(**OVERRIDES), tmp_path, evaluator=evaluate)
    assert last.step == 4
    start = json.loads((tmp_path / "starts.jsonl").read_text())
    records = [
        store.read_record(tmp_path / folder, saved_step)
        for folder in ("checkpoints", "best")
        for saved_step in store.steps(tmp_path / folder)
    ]
    assert [record["run"]["id"] for record in records] == [start["id"][:8]] * 3


def test_loss_falls_on_the_copy_task(tmp_path: pathlib.Path) -> None:
    steps = ("num_steps", "checkpoint_every_steps", "evaluate_every_steps")
    small = settings.small_settings(**{f"training.{key}": 30 for key in steps})
    train(small, tmp_path)
    rows = read_metrics(tmp_path)
    assert rows[30]["train/loss"] < rows[1]["train/loss"] - 0.3


def test_best_checkpoint_is_that_of_the_highest_bleu(tmp_path: pathlib.Path) -> None:
    scores = iter([10.0, 30.0, 20.0])
    small = settings.small_settings(**OVERRIDES, **{"training.num_steps": 6})
    train(small, tmp_path, evaluator=lambda params: {"valid/bleu": next(scores)})
    best = tmp_path / "best"
    assert store.steps(best) == [4]
    assert store.restore(best, 4, names=["params"]).record["score"] == 30.0


def test_checkpoint_of_another_model_is_refused(tmp_path: pathlib.Path) -> None:
    train(settings.small_settings(**OVERRIDES), tmp_path)
    wider = settings.small_settings(**OVERRIDES, **{"model.d_ff": 12})
    with pytest.raises(ValueError, match=r"model\.d_ff is 12, was 10"):
        train(wider, tmp_path)


def test_tensorboard_has_the_metrics(tmp_path: pathlib.Path) -> None:
    train(settings.small_settings(), tmp_path)
    written = b"".join(p.read_bytes() for p in (tmp_path / "tensorboard").iterdir())
    assert b"train/loss" in written and b"valid/loss" in written


def test_best_is_the_best_after_a_kill_between_its_writing_and_the_checkpoints(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    changes = {
        "training.num_steps": 4,
        "training.evaluate_every_steps": 2,
        "training.checkpoint_every_steps": 3,
    }
    small = settings.small_settings(**(OVERRIDES | changes))
    save = resume.save_checkpoint

    def killed_at_4(run: resume.Run, progress: resume.Progress, **state: Any) -> None:
        if progress.step == 4:
            raise KeyboardInterrupt
        save(run, progress, **state)

    scores = iter([10.0, 30.0])
    monkeypatch.setattr(resume, "save_checkpoint", killed_at_4)
    with pytest.raises(KeyboardInterrupt):
        train(small, tmp_path, evaluator=lambda params: {"valid/bleu": next(scores)})
    monkeypatch.undo()
    train(small, tmp_path, evaluator=lambda params: {"valid/bleu": 31.0})
    best = tmp_path / "best"
    assert store.restore(best, store.steps(best)[-1], names=[]).record["score"] == 31.0


def test_a_cpu_is_given_a_step_when_the_one_before_is_done(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two in flight would need the memory of two."""
    over_devices = parallel.over_devices
    all_metrics: list[Any] = []
    were_ready: list[bool] = []

    def watched(step: Callable[..., Any], **options: Any) -> Callable[..., Any]:
        update = over_devices(step, **options)

        def run(*arguments: Any) -> Any:
            were_ready.extend(
                leaf.is_ready() for leaf in jax.tree.leaves(all_metrics[-1:])
            )
            state, metrics = update(*arguments)
            all_metrics.append(metrics)
            return state, metrics

        run.lower = update.lower  # type: ignore[attr-defined]
        return run

    monkeypatch.setattr(parallel, "over_devices", watched)
    # Long steps, none of which is logged.
    changes = {
        "model.d_ff": 2048,
        "data.source_tokens_per_batch": 1024,
        "data.target_tokens_per_batch": 1024,
        "training.log_every_steps": 9,
        "training.evaluate_every_steps": 9,
        "training.checkpoint_every_steps": 9,
    }
    train(settings.small_settings(**changes), tmp_path)
    assert len(all_metrics) == 4
    assert were_ready and all(were_ready)
