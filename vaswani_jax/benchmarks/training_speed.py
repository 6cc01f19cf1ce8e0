"""Section 5.2's step time, measured: seconds, tokens, operations, memory, padding."""

import dataclasses
import re
import statistics
import time
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from vaswani_jax.benchmarks import devices
from vaswani_jax.core import config, memory, parallel, rules, types
from vaswani_jax.data import batching
from vaswani_jax.model import cost
from vaswani_jax.training import loss, microbatching, step


@dataclasses.dataclass(frozen=True)
class TrainingSpeed:
    """What a training step costs; times in seconds, rates per second.

    Rates are over the sum of all steps' times, whose shapes may differ.
    """

    device: str
    num_devices: int
    dtype: str
    parameters: int
    shapes: list[str]  # rows x source tokens x target tokens of the batches timed
    parts: int  # that each batch was computed in
    steps: int
    step_seconds: float  # median
    target_tokens_per_second: float
    flops_per_second: float  # the model's matrix products, those of padding too
    peak_flops_per_second: float  # all devices, from a data sheet or measured
    peak_from: str
    model_flops_utilization: float
    first_step_seconds: float  # of each shape, added: compilation and one step
    compile_seconds: float  # what first steps took longer than second ones, added
    host_share: float  # making and dividing a batch, as a share of a step's time
    padding_share: float
    step_memory_bytes: int  # of a device as compiled: what is held, the largest step
    peak_memory_bytes: int  # on a CPU the whole process's, its compiler's too
    loss: float  # per token, of the last step
    all_step_seconds: list[float]


class Timer:
    """Training steps, one at a time, each waited for."""

    def __init__(self, settings: config.Config, *, vocab_size: int, parts: int) -> None:
        state = step.create_state(settings, vocab_size=vocab_size)
        self.parameters = sum(leaf.size for leaf in jax.tree.leaves(state.params))
        self._state = parallel.replicate(state)
        self._parts = parts
        update = step.train_step(settings, vocab_size=vocab_size, parts=parts)
        self._run = parallel.over_devices(update, donate_state=True)

    def seconds(self, batch: types.Batch) -> tuple[float, loss.LossSums]:
        """Time of one update, from rows on the host to sums on the host."""
        begun = time.perf_counter()
        rows = parallel.split_rows(batch, num_microbatches=self._parts)
        self._state, metrics = self._run(self._state, rows)
        jax.block_until_ready(self._state)
        sums = parallel.gather(metrics.sums)
        return time.perf_counter() - begun, sums

    def memory_bytes(self, batch: types.Batch) -> int:
        """What a device holds and what an update needs, from its compiled program."""
        rows = parallel.split_rows(batch, num_microbatches=self._parts)
        return sum(memory.needed_bytes(self._run, self._state, rows))


def random_batch(
    *, rows: int, source: int, target: int, vocab_size: int, seed: int
) -> types.Batch:
    """Random ids that fill every row: work without padding."""
    generator = np.random.default_rng(seed)

    def ids(length: int) -> np.ndarray:
        drawn = generator.integers(types.UNK_ID + 1, vocab_size, (rows, length))
        drawn[:, -1] = types.EOS_ID
        return drawn.astype(np.int32)

    target_out = ids(target)
    target_in = np.roll(target_out, 1, axis=1)
    target_in[:, 0] = types.BOS_ID
    return types.Batch(ids(source), target_in, target_out)


def same_batch(
    shape: str, model: config.ModelConfig, *, vocab_size: int
) -> Callable[[int], types.Batch]:
    """One random batch for every step.

    Raises:
        ValueError: The shape is not ROWSxSOURCExTARGET, or the model cannot have it.
    """
    if not re.fullmatch(r"[1-9]\d*x[1-9]\d*x[1-9]\d*", shape):
        raise ValueError(f"--shape must be ROWSxSOURCExTARGET, got {shape!r}")
    rows, source, target = map(int, shape.split("x"))
    rules.check_length(f"--shape={shape}", max(source, target), model)
    for length in (source, target):
        rules.check_fused_length(f"--shape={shape}", length, model)
    batch = random_batch(
        rows=rows, source=source, target=target, vocab_size=vocab_size, seed=0
    )
    return lambda step: batch


def measure(
    settings: config.Config,
    batch_at: Callable[[int], types.Batch],
    *,
    vocab_size: int,
    steps: int,
) -> TrainingSpeed:
    """Time `steps` updates after a warm-up that has met each of their shapes.

    Args:
        settings: What to train.
        batch_at: The batch of each step; called outside the clock of the step.
        vocab_size: V.
        steps: How many updates to time.
    """
    host: list[float] = []

    def batch(index: int) -> types.Batch:
        begun = time.perf_counter()
        made = batch_at(index)
        host.append(time.perf_counter() - begun)
        return made

    batches = [batch(index) for index in range(steps)]
    by_shape = {_shape(made): made for made in batches}
    parts = _parts(settings, list(by_shape.values()), vocab_size=vocab_size)
    timer = Timer(settings, vocab_size=vocab_size, parts=parts)
    first = [timer.seconds(made)[0] for made in by_shape.values()]
    # The second step of a program still warms caches.
    second = [timer.seconds(made)[0] for made in by_shape.values()]
    timed = [timer.seconds(made) for made in batches]
    seconds = [spent for spent, _ in timed]
    work = sum(_flops(settings, made, vocab_size) for made in batches)
    tokens = sum(float(sums.tokens) for _, sums in timed)
    peak, peak_from = devices.peak(settings.model.dtype)
    begun = time.perf_counter()
    computed = [parallel.split_rows(made, num_microbatches=parts) for made in batches]
    host.append(time.perf_counter() - begun)
    # Devices and parts get as many rows each: some of padding alone.
    positions = sum(rows.source.size + rows.target_out.size for rows in computed)
    real = sum(
        int((side != types.PAD_ID).sum())
        for made in batches
        for side in (made.source, made.target_out)
    )
    return TrainingSpeed(
        device=parallel.device_kind(),
        num_devices=parallel.num_devices(),
        dtype=settings.model.dtype,
        parameters=timer.parameters,
        shapes=sorted("x".join(map(str, shape)) for shape in by_shape),
        parts=parts,
        steps=steps,
        step_seconds=statistics.median(seconds),
        target_tokens_per_second=tokens / sum(seconds),
        flops_per_second=work / sum(seconds),
        peak_flops_per_second=peak,
        peak_from=peak_from,
        model_flops_utilization=work / sum(seconds) / peak,
        first_step_seconds=sum(first),
        compile_seconds=sum(first) - sum(second),
        host_share=sum(host) / sum(seconds),
        padding_share=1 - real / positions,
        peak_memory_bytes=devices.peak_memory_bytes(),
        # After the peak: it may compile.
        step_memory_bytes=max(map(timer.memory_bytes, by_shape.values())),
        loss=loss.per_token(timed[-1][1])["loss"],
        all_step_seconds=seconds,
    )


def table(speed: TrainingSpeed) -> str:
    """The measurement for a person, a line a figure."""
    values: dict[str, Any] = {
        "device": f"{speed.num_devices} x {speed.device}, {speed.dtype}",
        "parameters": f"{speed.parameters:,}",
        "shapes": f"{', '.join(speed.shapes)} (rows x source x target tokens)",
        "parts": f"{speed.parts} of a batch",
        "step": f"{speed.step_seconds:.4f} s, the median of {speed.steps}",
        "target tokens": f"{speed.target_tokens_per_second:,.0f} per second",
        "model FLOPs": f"{speed.flops_per_second / 1e9:,.1f} G per second, padding too",
        "peak": f"{speed.peak_flops_per_second / 1e9:,.1f} GFLOP/s, {speed.peak_from}",
        "MFU": f"{speed.model_flops_utilization:.1%}",
        "first steps": f"{speed.first_step_seconds:.1f} s",
        "compilation": f"{speed.compile_seconds:.1f} s of them",
        "host's data": f"{speed.host_share:.2%} of a step",
        "padding": f"{speed.padding_share:.1%} of the positions",
        "step's memory": f"{speed.step_memory_bytes / 2**30:.2f} GiB, as compiled",
        "peak memory": f"{speed.peak_memory_bytes / 2**30:.2f} GiB",
        "loss": f"{speed.loss:.4f} per token",
    }
    return "\n".join(f"{name:<14} {value}" for name, value in values.items())


def _parts(
    settings: config.Config, batches: list[types.Batch], *, vocab_size: int
) -> int:
    """The parts that training would compute batches of these shapes in."""
    wanted = settings.training.accumulate_steps
    if wanted != microbatching.AUTO:
        return int(wanted)
    by_bucket = {
        batching.Bucket(length=max(_shape(made)[1:]), rows=_shape(made)[0]): made
        for made in batches
    }
    state = step.create_state(settings, vocab_size=vocab_size)

    def train_step_in(num_microbatches: int) -> Callable[..., Any]:
        update = step.train_step(
            settings, vocab_size=vocab_size, parts=num_microbatches
        )
        return parallel.over_devices(update, donate_state=True)

    return microbatching.plan(
        settings,
        parallel.replicate(state),
        lambda bucket: by_bucket[bucket],
        list(by_bucket),
        vocab_size=vocab_size,
        previous=1,
        train_step_in=train_step_in,
    ).num_microbatches


def _shape(batch: types.Batch) -> tuple[int, int, int]:
    rows, source = batch.source.shape
    return rows, source, batch.target_out.shape[1]


def _flops(settings: config.Config, batch: types.Batch, vocab_size: int) -> float:
    rows, source, target = _shape(batch)
    draws = 2 if settings.training.r_drop else 1
    return draws * cost.update_flops(
        settings.model, vocab_size=vocab_size, rows=rows, source=source, target=target
    )
