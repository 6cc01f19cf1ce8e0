"""The loop: resuming is exact, what diverges stops, evaluation is best of all."""

import json
import pathlib
from collections.abc import Callable, Mapping
from typing import Any

import jax
import numpy as np
import pytest

from tests import settings
from vaswani_jax.checkpoints import store
from vaswani_jax.core import compilation_cache, config, memory, parallel
from vaswani_jax.data import prepared
from vaswani_jax.training import loop, persistence, step

pytestmark = pytest.mark.usefixtures("steps_once")

OVERRIDES = {"model.dropout_rate": 0.2, "training.keep_checkpoints": 9}


def run(
    small: config.Config,
    workdir: pathlib.Path,
    *,
    evaluator: Callable[[Any], Mapping[str, float]] = lambda params: {
        "valid/loss": 0.0
    },
) -> store.Checkpoint:
    data = prepared.open_or_prepare(
        small, workdir / "data", rebuild=False, trained_with=None, log=lambda text: None
    )
    training = loop.Run(small, data, workdir, [evaluator])
    training.train()
    newest = training.checkpoints.steps()[-1]
    return training.checkpoints.restore(newest, ["params", "optimizer"])


def metrics(workdir: pathlib.Path) -> dict[int, dict[str, float]]:
    rows: dict[int, dict[str, float]] = {}
    for line in (workdir / "metrics.jsonl").read_text().splitlines():
        row = json.loads(line)
        rows.setdefault(row["step"], {}).update(row)
    return rows


MODES = {
    "buckets": {},
    "packed in parts": {"data.batching": "packed", "training.accumulate_steps": "3"},
}


@pytest.mark.parametrize("mode", MODES)
def test_resumed_run_equals_uninterrupted_run_bit_for_bit(
    tmp_path: pathlib.Path, mode: str
) -> None:
    changes = OVERRIDES | MODES[mode]
    long = settings.small_settings(**changes, **{"training.num_steps": 8})
    short = settings.small_settings(**changes, **{"training.num_steps": 3})
    whole = run(long, tmp_path / "whole")
    run(short, tmp_path / "parts")
    parts = run(long, tmp_path / "parts")
    assert whole.step == parts.step == 8
    jax.tree.map(np.testing.assert_array_equal, whole.items, parts.items)
    # The losses that were logged on the way are the same, too.
    first, second = metrics(tmp_path / "whole"), metrics(tmp_path / "parts")
    losses = [[rows[n]["train/loss"] for n in range(1, 9)] for rows in (first, second)]
    assert losses[0] == losses[1]
    assert len(set(losses[0])) == 8


def test_a_resumed_run_computes_in_as_many_parts_as_before(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    changes = OVERRIDES | {
        "training.accumulate_steps": "auto",
        "data.source_tokens_per_batch": 512,
        "data.target_tokens_per_batch": 512,
    }
    short, long = (
        settings.small_settings(**changes, **{"training.num_steps": steps})
        for steps in (2, 4)
    )
    monkeypatch.setattr(compilation_cache, "directory", lambda: None)
    needs = [1000, 10, 10]  # bytes of a step: whole, in halves; in halves, later
    monkeypatch.setattr(
        memory,
        "needed_bytes",
        lambda *arguments: memory.NeededBytes(1, needs.pop(0)),
    )
    monkeypatch.setattr(memory, "available_bytes", lambda held: 100)
    assert run(short, tmp_path).record["parts"] == 2
    # With more memory it could go on in one, but not to the same digits.
    monkeypatch.setattr(memory, "available_bytes", lambda held: 10_000)
    assert run(long, tmp_path).record["parts"] == 2
    assert not needs


def test_a_run_that_gives_memory_back_says_so_once(
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    small = settings.small_settings(**OVERRIDES)
    monkeypatch.setattr(compilation_cache, "directory", lambda: None)
    monkeypatch.setattr(
        memory,
        "needed_bytes",
        lambda *arguments: memory.NeededBytes(1, 900),
    )
    asked = []

    def make_room(needed: int) -> bool:
        asked.append(needed)
        return len(asked) > 1

    monkeypatch.setattr(memory, "make_room", make_room)
    run(small, tmp_path)
    # Before each step and what may follow it, and in the end.
    assert asked == [1000] * (2 * small.training.num_steps + 1)
    assert capsys.readouterr().err.count("memory is short") == 1


def test_a_resumed_run_draws_no_random_state(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # It would lie in memory beside the state that is read.
    run(settings.small_settings(**OVERRIDES), tmp_path)

    def drawn(*args: Any, **kwargs: Any) -> Any:
        raise AssertionError("a state was drawn")

    monkeypatch.setattr(step, "create_state", drawn)
    more = settings.small_settings(**OVERRIDES, **{"training.num_steps": 5})
    assert run(more, tmp_path).step == 5


def test_finished_run_does_nothing_when_started_again(tmp_path: pathlib.Path) -> None:
    small = settings.small_settings(**OVERRIDES)
    first = run(small, tmp_path)
    second = run(small, tmp_path)
    assert first.step == second.step
    jax.tree.map(np.testing.assert_array_equal, first.items, second.items)


def test_loss_falls_on_the_copy_task(tmp_path: pathlib.Path) -> None:
    small = settings.small_settings(**{"training.num_steps": 30})
    run(small, tmp_path)
    rows = metrics(tmp_path)
    assert rows[30]["train/loss"] < rows[1]["train/loss"] - 0.3


def test_best_checkpoint_is_that_of_the_highest_bleu(tmp_path: pathlib.Path) -> None:
    scores = iter([10.0, 30.0, 20.0])
    small = settings.small_settings(**OVERRIDES, **{"training.num_steps": 6})
    run(small, tmp_path, evaluator=lambda params: {"valid/bleu": next(scores)})
    best = store.Checkpoints(tmp_path / "best", keep=1)
    assert best.steps() == [4]
    assert best.restore(4, ["params"]).record["score"] == 30.0


def test_checkpoint_of_another_model_is_refused(tmp_path: pathlib.Path) -> None:
    run(settings.small_settings(**OVERRIDES), tmp_path)
    wider = settings.small_settings(**OVERRIDES, **{"model.d_ff": 12})
    with pytest.raises(ValueError, match=r"model\.d_ff is 12, was 10"):
        run(wider, tmp_path)


def test_tensorboard_has_the_metrics(tmp_path: pathlib.Path) -> None:
    run(settings.small_settings(), tmp_path)
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
    save = persistence.Persistence.save

    def killed_at_4(
        self: persistence.Persistence, made: int, *rest: Any, **more: Any
    ) -> None:
        if made == 4:
            raise KeyboardInterrupt
        save(self, made, *rest, **more)

    scores = iter([10.0, 30.0])
    monkeypatch.setattr(persistence.Persistence, "save", killed_at_4)
    with pytest.raises(KeyboardInterrupt):
        run(small, tmp_path, evaluator=lambda params: {"valid/bleu": next(scores)})
    monkeypatch.undo()
    run(small, tmp_path, evaluator=lambda params: {"valid/bleu": 31.0})
    best = store.Checkpoints(tmp_path / "best", keep=1)
    assert best.restore(best.steps()[-1], []).record["score"] == 31.0


def test_a_cpu_is_given_a_step_when_the_one_before_is_done(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two in flight would need the memory of two."""
    over_devices = parallel.over_devices
    made: list[Any] = []
    done: list[bool] = []

    def watched(step: Callable[..., Any], **options: Any) -> Callable[..., Any]:
        update = over_devices(step, **options)

        def run(*arguments: Any) -> Any:
            done.extend(leaf.is_ready() for leaf in jax.tree.leaves(made[-1:]))
            state, metrics = update(*arguments)
            made.append(metrics)
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
    run(settings.small_settings(**changes), tmp_path)
    assert len(made) == 4
    assert done and all(done)
