"""Speeds of training follow from the seconds of its steps."""

import re
from typing import Any

import numpy as np
import pytest

from tests import settings
from vaswani_jax.benchmarks import devices, training_speed
from vaswani_jax.core import config, types
from vaswani_jax.model import cost
from vaswani_jax.training import loss, step

V = 11
SMALL = settings.small_settings(**{"training.accumulate_steps": "1"})


def test_random_batches_have_no_padding_and_shifted_targets() -> None:
    batch = training_speed.random_batch(
        rows=3, source=5, target=7, vocab_size=V, seed=1
    )
    assert batch.source.shape == (3, 5) and batch.target_out.shape == (3, 7)
    for ids in (batch.source, batch.target_out):
        assert (ids[:, -1] == types.EOS_ID).all()
        assert ids[:, :-1].min() > types.UNK_ID and ids.max() < V
    assert (batch.target_in[:, 0] == types.BOS_ID).all()
    np.testing.assert_array_equal(batch.target_in[:, 1:], batch.target_out[:, :-1])


def test_every_step_has_the_same_batch_of_the_shape() -> None:
    batch_at = training_speed.same_batch("3x5x7", SMALL.model, vocab_size=V)
    assert batch_at(0) is batch_at(9)
    assert (*batch_at(0).source.shape, batch_at(0).target_in.shape[1]) == (3, 5, 7)
    for shape in ("3x5", "0x5x7", "3x5x7x9", "3xax7", ""):
        with pytest.raises(ValueError, match=re.escape(f"got {shape!r}")):
            training_speed.same_batch(shape, SMALL.model, vocab_size=V)
    learned = {"model.positional_encoding": "learned"}
    model = settings.small_settings(**learned).model
    training_speed.same_batch("1x32x32", model, vocab_size=V)
    with pytest.raises(ValueError, match="--shape=1x2x33 is longer than"):
        training_speed.same_batch("1x2x33", model, vocab_size=V)


class Written(training_speed.Timer):
    """Says how long steps take, and needs no device."""

    def __init__(self) -> None:
        empty = step.TrainState(step=np.int32(0), params={}, opt_state=())
        super().__init__(empty, lambda state, rows: (state, None), 1)
        # Two shapes twice to warm up, then three steps.
        self._seconds = iter([9.0, 7.0, 1.0, 2.0, 0.5, 4.0, 0.25])

    def seconds(self, batch: types.Batch) -> tuple[float, loss.LossSums]:
        tokens = (batch.target_out != types.PAD_ID).sum()
        sums = loss.LossSums(
            loss=np.array(2 * tokens, np.float32),
            nll=np.array(tokens, np.float32),
            correct=np.array(0, np.float32),
            tokens=np.array(tokens, np.float32),
        )
        return next(self._seconds), sums

    def memory_bytes(self, batch: types.Batch) -> int:
        return batch.source.size * 2**20


@pytest.fixture
def speed(monkeypatch: pytest.MonkeyPatch) -> training_speed.TrainingSpeed:
    """Of three steps on batches of two shapes."""
    return measure(SMALL, monkeypatch)


def measure(
    settings: config.Config, monkeypatch: pytest.MonkeyPatch
) -> training_speed.TrainingSpeed:
    """Return the speed that `Written` says."""

    def make_timer(settings: config.Config, **sizes: Any) -> training_speed.Timer:
        assert sizes == {"vocab_size": V, "num_microbatches": 1}
        return Written()

    monkeypatch.setattr(training_speed, "make_timer", make_timer)
    monkeypatch.setattr(devices, "peak", lambda dtype: (1e6, "written"))
    batches = [
        training_speed.random_batch(rows=8, source=4, target=n, vocab_size=V, seed=n)
        for n in (6, 5, 6)
    ]
    batches[1].source[0, 1:] = types.PAD_ID
    return training_speed.measure(settings, batches.__getitem__, vocab_size=V, steps=3)


def test_rates_are_over_all_steps_and_the_median_is_a_steps(
    speed: training_speed.TrainingSpeed,
) -> None:
    assert speed.shapes == ["8x4x5", "8x4x6"]
    assert speed.all_step_seconds == [0.5, 4.0, 0.25] and speed.step_seconds == 0.5
    assert speed.first_step_seconds == 9 + 7
    assert speed.compile_seconds == 9 + 7 - 1 - 2
    assert speed.target_tokens_per_second == pytest.approx(8 * (6 + 5 + 6) / 4.75)
    operations = sum(
        cost.update_flops(SMALL.model, vocab_size=V, rows=8, source=4, target=target)
        for target in (6, 5, 6)
    )
    assert speed.flops_per_second == pytest.approx(operations / 4.75)
    assert speed.model_flops_utilization == pytest.approx(operations / 4.75 / 1e6)
    # Three pads among the positions of both sides.
    assert speed.padding_share == pytest.approx(3 / (8 * (3 * 4 + 6 + 5 + 6)))
    assert speed.step_memory_bytes == 32 * 2**20
    assert speed.loss == 2


def test_frozen_parameters_have_no_backward_pass(
    speed: training_speed.TrainingSpeed, monkeypatch: pytest.MonkeyPatch
) -> None:
    frozen = settings.small_settings(**{"optimizer.frozen": "encoder/*"})
    rate = measure(frozen, monkeypatch).flops_per_second
    assert rate == pytest.approx(speed.flops_per_second / 3)


def test_the_table_has_the_figures_in_their_units(
    speed: training_speed.TrainingSpeed,
) -> None:
    lines = training_speed.format_speed(speed).splitlines()
    figures = {line[:14].strip(): line[15:] for line in lines}
    assert figures["step"] == "0.5000 s, the median of 3"
    assert figures["shapes"] == "8x4x5, 8x4x6 (rows x source x target tokens)"
    assert figures["compilation"] == "13.0 s of them"
    assert figures["padding"] == "1.3% of the positions"
    assert figures["peak"] == "0.0 GFLOP/s, written"
    assert figures["step's memory"] == "0.03 GiB, as compiled"
    assert figures["loss"] == "2.0000 per token"
