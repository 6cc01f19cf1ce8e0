"""What goes wrong under a run, made to happen: damage, bad batches, no progress."""

import json
import os
import pathlib
import shutil
import signal
import time
from collections.abc import Callable
from typing import Any

import fsspec
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests import settings
from tests.training.test_loop import OVERRIDES, metrics, run
from vaswani_jax.core import environment, remote
from vaswani_jax.data import batch_modes, corpus
from vaswani_jax.training import checkpoints, divergence, step, stopping


def data_files(directory: pathlib.Path) -> list[pathlib.Path]:
    """All that hold values; which of them are read is Orbax's affair."""
    return [path for path in directory.rglob("d/*") if path.is_file()]


def truncate(directory: pathlib.Path) -> None:
    for file in data_files(directory):
        file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def flip(directory: pathlib.Path) -> None:
    for file in data_files(directory):
        data = bytearray(file.read_bytes())
        data[len(data) // 2] ^= 0xFF
        file.write_bytes(bytes(data))


def lose_a_part(directory: pathlib.Path) -> None:
    shutil.rmtree(directory / "optimizer")


def empty(directory: pathlib.Path) -> None:
    shutil.rmtree(directory)
    directory.mkdir()


DAMAGES: list[Callable[[pathlib.Path], None]] = [truncate, flip, lose_a_part, empty]


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_a_damaged_checkpoint_is_passed_over_and_made_again(
    tmp_path: pathlib.Path,
    capsys: pytest.CaptureFixture[str],
    damage: Callable[[pathlib.Path], None],
) -> None:
    changes = OVERRIDES | {"training.checkpoint_every_steps": 2}
    short, long = (
        settings.small_settings(**changes, **{"training.num_steps": steps})
        for steps in (4, 6)
    )
    run(short, tmp_path / "broken")
    whole = run(long, tmp_path / "whole")
    directory = tmp_path / "broken" / "checkpoints"
    damage(directory / "4")
    found = run(long, tmp_path / "broken")
    told = capsys.readouterr().err
    assert f"warning: checkpoint {directory / '4'} is damaged" in told
    assert "resumed at step 2" in told
    assert (tmp_path / "broken" / "checkpoints.damaged" / "4").is_dir()
    jax.tree.map(np.testing.assert_array_equal, whole.items, found.items)
    again = checkpoints.Checkpoints(directory, keep=9)
    assert again.steps() == [2, 4, 6]
    again.restore(4, ["params", "optimizer"])


def test_when_all_are_damaged_nothing_is_moved_or_made_anew(
    tmp_path: pathlib.Path,
) -> None:
    small = settings.small_settings(**OVERRIDES)
    run(small, tmp_path)
    for number in ("2", "4"):
        truncate(tmp_path / "checkpoints" / number)
    before = sorted(tmp_path.rglob("checkpoints/**/*"))
    with pytest.raises(checkpoints.CheckpointError, match="all 2 checkpoints"):
        run(small, tmp_path)
    assert sorted(tmp_path.rglob("checkpoints/**/*")) == before


def poison(
    monkeypatch: pytest.MonkeyPatch, is_bad: Callable[[Any, Any], Any], value: float
) -> None:
    """What the loss and the parameters become after some updates, of some batches."""
    real = step.train_step

    def poisoned(*args: Any, **kwargs: Any) -> Any:
        update = real(*args, **kwargs)

        def wrapped(state: step.TrainState, batch: Any) -> Any:
            state, found = update(state, batch)
            factor = jnp.where(is_bad(state.step, batch), value, 1.0)
            params = jax.tree.map(lambda leaf: leaf * factor, state.params)
            sums = found.sums.replace(loss=found.sums.loss * factor)
            return state.replace(params=params), found.replace(sums=sums)

        return wrapped

    monkeypatch.setattr(step, "train_step", poisoned)


def test_an_update_that_diverges_is_named_among_several(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    poison(monkeypatch, lambda made, batch: made == 4, np.nan)
    # Logged every third step only: the step named must still be the fourth.
    small = settings.small_settings(
        **{
            "training.num_steps": 6,
            "training.log_every_steps": 3,
            "training.checkpoint_every_steps": 3,
        }
    )
    with pytest.raises(divergence.DivergedError, match=r"step 4 .*nan.*: step 3"):
        run(small, tmp_path)
    assert checkpoints.Checkpoints(tmp_path / "checkpoints", keep=9).steps() == [3]


def total_of(batch: Any) -> Any:
    """A number that tells batches apart."""
    return (batch.source * batch.target_in).sum()


@pytest.fixture
def totals(tmp_path: pathlib.Path) -> list[int]:
    """Those of the first two epochs."""
    small = settings.small_settings(**OVERRIDES)
    data = corpus.open_or_prepare(
        small,
        tmp_path / "look",
        rebuild=False,
        trained_with=None,
        log=lambda text: None,
    )
    batches = batch_modes.training_batches(
        small.data, data.corpus("train"), seed=small.seed
    )
    several = map(batches.batch_at, range(2 * batches.batches_per_epoch))
    found = [int(total_of(batch)) for batch in several]
    assert len(set(found)) == len(found)
    return found


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_bad_batch_is_recorded_and_left_out(
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    totals: list[int],
    value: float,
) -> None:
    changes = OVERRIDES | {
        "training.num_steps": 8,
        "training.checkpoint_every_steps": 2,
        "training.log_every_steps": 4,
        "training.max_skipped_batches": 1,
    }
    small = settings.small_settings(**changes)

    def is_fifth(made: Any, batch: Any) -> Any:
        return jax.lax.psum(total_of(batch), "devices") == totals[4]

    poison(monkeypatch, is_fifth, value)
    found = run(small, tmp_path)
    told = capsys.readouterr().err
    assert "at step 5 the loss is" in told and "not finite" in told
    assert "batch 4 is left out" in told and "goes on from step 4" in told
    [line] = (tmp_path / "diverged.jsonl").read_text().splitlines()
    record = json.loads(line)
    assert (record["step"], record["batch"]) == (5, 4)
    assert len(record["pairs"]) > 1
    assert found.record["skipped"] == [4]
    for leaf in jax.tree.leaves(found.items):
        assert np.isfinite(leaf).all()
    # It is the run of a corpus whose fifth batch is the sixth, and so on.
    rows = metrics(tmp_path)
    assert sorted(rows) == [2, 4, 6, 8]
    # Resumed, it leaves out the same batch, and ends in the same parameters.
    for later in ("6", "8"):
        shutil.rmtree(tmp_path / "checkpoints" / later)
    resumed = run(small, tmp_path)
    jax.tree.map(np.testing.assert_array_equal, found.items, resumed.items)


def test_too_many_bad_batches_end_the_run_with_a_report(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    changes = OVERRIDES | {
        "training.num_steps": 8,
        "training.checkpoint_every_steps": 2,
        "training.max_skipped_batches": 2,
    }
    poison(monkeypatch, lambda made, batch: True, np.nan)
    with pytest.raises(divergence.DivergedError, match="2 batches were left out"):
        run(settings.small_settings(**changes), tmp_path)
    lines = (tmp_path / "diverged.jsonl").read_text().splitlines()
    assert [json.loads(line)["batch"] for line in lines] == [0, 1, 2]


def test_a_spike_counts_from_the_mean_of_the_last_updates() -> None:
    small = settings.small_settings(**{"training.max_loss_rise": 0.5}).training

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

    window = divergence.WINDOW
    watch = divergence.Watch(small, recent=[2.0] * (window - 1), skipped=[])
    # Before there are enough of them nothing is a spike.
    assert watch.look(window, [metrics_of(9.0)]) is None
    watch = divergence.Watch(small, recent=[2.0] * window, skipped=[])
    assert watch.look(window + 1, [metrics_of(2.4)]) is None
    bad = watch.look(window + 3, [metrics_of(2.4), metrics_of(2.6)])
    assert bad is not None and bad.step == window + 3
    assert "config.training.max_loss_rise=0.5" in str(bad)
    assert len(watch.recent) == window and watch.recent[-1] == pytest.approx(2.4)


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
    truncate(tmp_path / "best" / "2")
    run(long, tmp_path, evaluator=lambda params: {"valid/bleu": 1.0})
    told = capsys.readouterr().err
    assert f"{tmp_path / 'best' / '2'} is damaged" in told
    assert "counts as the best so far" in told
    best = checkpoints.Checkpoints(tmp_path / "best", keep=1)
    assert best.steps() == [6]
    assert best.restore(6, ["params"]).record["score"] == 1.0


@pytest.fixture
def on_a_store(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """fsspec's memory, whose run/ is mirrored in a workdir."""
    monkeypatch.setenv("VASWANI_JAX_MIRRORS", str(tmp_path / "mirrors"))
    store = fsspec.filesystem("memory")
    yield store, remote.here("memory://bucket/run")
    store.store.clear()


def test_a_store_that_fails_costs_no_update_and_has_all_later(
    on_a_store: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    store, workdir = on_a_store
    small = settings.small_settings(**OVERRIDES)

    def fails(names: list[str], *rest: Any) -> None:
        if any("checkpoints" in name for name in names):
            raise RuntimeError("no quota")
        put(names, *rest)

    put = store.put
    monkeypatch.setattr(type(store), "put", staticmethod(fails))
    # Training goes on without the first one; the last one must be there.
    with pytest.raises(checkpoints.NotWrittenError, match=r"memory:.*: no quota"):
        run(small, workdir)
    told = capsys.readouterr().err
    assert "warning: memory://bucket/run: no quota; training goes on" in told
    assert checkpoints.Checkpoints(workdir / "checkpoints", keep=9).steps() == [2, 4]
    assert not store.find("/bucket/run/checkpoints")
    monkeypatch.undo()
    run(small, workdir)
    assert store.exists("/bucket/run/checkpoints/4/files.json")


def test_a_run_ends_when_another_has_begun_on_its_store(
    on_a_store: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, workdir = on_a_store
    save = checkpoints.Checkpoints.save

    def saved(*args: Any, **kwargs: Any) -> None:
        save(*args, **kwargs)
        begun = store.cat_file("/bucket/run/starts.jsonl")
        store.pipe_file("/bucket/run/starts.jsonl", begun + b"another\n")

    monkeypatch.setattr(checkpoints.Checkpoints, "save", saved)
    with pytest.raises(remote.SupersededError, match="another run has begun"):
        run(settings.small_settings(**OVERRIDES), workdir)
    assert checkpoints.Checkpoints(workdir / "checkpoints", keep=9).steps() == [2]
    assert not store.find("/bucket/run/checkpoints/2")


def test_another_training_text_is_refused(tmp_path: pathlib.Path) -> None:
    # The same words in another order: a vocabulary of the same fingerprint.
    lines = [f"{a} {b} c d" for a in "abcdefgh" for b in "ijklmnop"]
    named = {
        f"data.{split}_{side}": "text"
        for split in ("train", "valid")
        for side in ("source", "target")
    }
    small = settings.small_settings(
        **OVERRIDES,
        **named,
        **{
            "data.source": "text",
            "data.text_directory": str(tmp_path),
            "data.vocab_size": 24,
            "data.test_source": "",
            "data.test_target": "",
        },
    )
    (tmp_path / "text").write_text("\n".join(lines))
    run(small, tmp_path / "run")
    (tmp_path / "text").write_text("\n".join(reversed(lines)))
    before = corpus.open_prepared(tmp_path / "run/data").vocabulary.fingerprint
    shutil.rmtree(tmp_path / "run/data")
    with pytest.raises(ValueError, match=r"was trained on the text .*, but the data"):
        run(small, tmp_path / "run")
    after = corpus.open_prepared(tmp_path / "run/data").vocabulary.fingerprint
    assert before == after


def test_another_version_of_a_package_is_told(
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    now = environment.describe()
    monkeypatch.setattr(environment, "describe", lambda: {**now, "jax": "0.0.1"})
    run(settings.small_settings(**OVERRIDES, **{"training.num_steps": 2}), tmp_path)
    monkeypatch.undo()
    run(settings.small_settings(**OVERRIDES), tmp_path)
    told = capsys.readouterr().err
    assert f"warning: jax was 0.0.1, is {now['jax']}: the digits may differ" in told
    lines = (tmp_path / "starts.jsonl").read_text().splitlines()
    starts = [json.loads(line) for line in lines]
    assert [one["environment"]["jax"] for one in starts] == ["0.0.1", now["jax"]]


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
