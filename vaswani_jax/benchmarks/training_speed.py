"""Measure a training step: seconds, tokens, operations, memory, padding."""

import dataclasses
import re
import statistics
import time
from collections.abc import Callable

import jax
import numpy as np

from vaswani_jax.benchmarks import devices
from vaswani_jax.core import config, memory, parallel, rules, types
from vaswani_jax.data import batching
from vaswani_jax.hardware import programs
from vaswani_jax.model import cost
from vaswani_jax.training import loss, microbatching, step


@dataclasses.dataclass(frozen=True)
class TrainingSpeed:
    """The costs of a training step; times in seconds, rates per second.

    Rates are over the sum of all steps' times, whose shapes may differ.
    """

    device: str
    num_devices: int
    dtype: str
    parameters: int
    shapes: list[str]  # rows x source tokens x target tokens of the batches timed
    num_microbatches: int  # of each batch
    steps: int
    step_seconds: float  # median
    target_tokens_per_second: float
    flops_per_second: float  # of the model's matrix products, padding included
    peak_flops_per_second: float  # all devices, from a data sheet or measured
    peak_from: str
    model_flops_utilization: float
    first_step_seconds: float  # sum over the shapes: compilation and one step
    compile_seconds: float  # sum over the shapes: first step minus second step
    host_share: float  # of a step's time, for making and dividing a batch
    padding_share: float
    step_memory_bytes: int  # of a device as compiled: its state and the largest step
    peak_memory_bytes: int  # on a CPU of the whole process, its compiler included
    loss: float  # per token, of the last step
    all_step_seconds: list[float]


@dataclasses.dataclass
class Timer:
    """Times training steps, one after another.

    Attributes:
        state: The state after the last update, on the devices.
        train_step: The update over all devices.
        num_microbatches: How many parts of a batch it computes in turn.
    """

    state: step.TrainState
    train_step: Callable[..., tuple[step.TrainState, step.StepMetrics]]
    num_microbatches: int

    def seconds(self, batch: types.Batch) -> tuple[float, loss.LossSums]:
        """Return the seconds of one update, from host rows to host sums."""
        start = time.perf_counter()
        rows = parallel.split_rows(batch, num_microbatches=self.num_microbatches)
        self.state, metrics = self.train_step(self.state, rows)
        jax.block_until_ready(self.state)
        sums = parallel.gather(metrics.sums)
        return time.perf_counter() - start, sums

    def memory_bytes(self, batch: types.Batch) -> int:
        """Return what a device holds and what an update needs, as compiled."""
        rows = parallel.split_rows(batch, num_microbatches=self.num_microbatches)
        return sum(memory.needed_bytes(self.train_step, state=self.state, rows=rows))


def make_timer(
    settings: config.Config, *, vocab_size: types.VocabSize, num_microbatches: int
) -> Timer:
    """Return a timer of steps from random parameters, which are on the devices."""
    state = step.create_state(settings, vocab_size=vocab_size)
    state = step.place_on_devices(settings, state)
    make_train_step = step.make_train_steps(settings, vocab_size=vocab_size)
    return Timer(state, make_train_step(num_microbatches), num_microbatches)


def random_batch(
    *, rows: int, source: int, target: int, vocab_size: types.VocabSize, seed: int
) -> types.Batch:
    """Return random ids that fill every row, without padding."""
    generator = np.random.default_rng(seed)

    def ids(length: int, size: int) -> np.ndarray:
        tokens = generator.integers(types.UNK_ID + 1, size, (rows, length))
        tokens[:, -1] = types.EOS_ID
        return tokens.astype(np.int32)

    target_out = ids(target, types.num_target_subwords(vocab_size))
    target_in = np.roll(target_out, 1, axis=1)
    target_in[:, 0] = types.BOS_ID
    source_ids = ids(source, types.num_source_subwords(vocab_size))
    return types.Batch(source_ids, target_in, target_out)


def same_batch(
    shape: str, model: config.ModelConfig, *, vocab_size: types.VocabSize
) -> Callable[[int], types.Batch]:
    """Return a function that gives every step the same random batch.

    Raises:
        ValueError: The shape is not ROWSxSOURCExTARGET, or does not fit the model.
    """
    if not re.fullmatch(r"[1-9]\d*x[1-9]\d*x[1-9]\d*", shape):
        raise ValueError(f"--shape must be ROWSxSOURCExTARGET, got {shape!r}")
    rows, source, target = map(int, shape.split("x"))
    rules.check_length(f"--shape={shape}", max(source, target), model=model)
    for length in (source, target):
        rules.check_fused_length(f"--shape={shape}", length, model=model)
    batch = random_batch(
        rows=rows, source=source, target=target, vocab_size=vocab_size, seed=0
    )
    return lambda step: batch


def measure(
    settings: config.Config,
    batch_at: Callable[[int], types.Batch],
    *,
    vocab_size: types.VocabSize,
    steps: int,
) -> TrainingSpeed:
    """Time `steps` updates after a warm-up on each of their shapes.

    Args:
        settings: Of the training.
        batch_at: Returns the batch of a step; its time does not count.
        vocab_size: V.
        steps: How many updates to time.
    """
    start = time.perf_counter()
    batches = [batch_at(index) for index in range(steps)]
    host_seconds = time.perf_counter() - start
    by_shape = {_shape(batch): batch for batch in batches}
    num_microbatches = _num_microbatches(
        settings, list(by_shape.values()), vocab_size=vocab_size
    )
    timer = make_timer(
        settings, vocab_size=vocab_size, num_microbatches=num_microbatches
    )
    first = [timer.seconds(batch)[0] for batch in by_shape.values()]
    # The second step of a program still warms caches.
    second = [timer.seconds(batch)[0] for batch in by_shape.values()]
    timed = [timer.seconds(batch) for batch in batches]
    seconds = [elapsed for elapsed, _ in timed]
    flops = sum(_flops(settings, batch, vocab_size=vocab_size) for batch in batches)
    tokens = sum(float(sums.tokens) for _, sums in timed)
    peak, peak_from = devices.peak(settings.model.dtype)
    start = time.perf_counter()
    split_batches = [
        parallel.split_rows(batch, num_microbatches=num_microbatches)
        for batch in batches
    ]
    host_seconds += time.perf_counter() - start
    # Devices and microbatches get equal numbers of rows: some have only padding.
    positions = sum(rows.source.size + rows.target_out.size for rows in split_batches)
    real = sum(
        int((side != types.PAD_ID).sum())
        for batch in batches
        for side in (batch.source, batch.target_out)
    )
    return TrainingSpeed(
        device=parallel.device_kind(),
        num_devices=parallel.num_devices(),
        dtype=settings.model.dtype,
        parameters=cost.count_parameters(settings.model, vocab_size=vocab_size),
        shapes=sorted("x".join(map(str, shape)) for shape in by_shape),
        num_microbatches=num_microbatches,
        steps=steps,
        step_seconds=statistics.median(seconds),
        target_tokens_per_second=tokens / sum(seconds),
        flops_per_second=flops / sum(seconds),
        peak_flops_per_second=peak,
        peak_from=peak_from,
        model_flops_utilization=flops / sum(seconds) / peak,
        first_step_seconds=sum(first),
        compile_seconds=sum(first) - sum(second),
        host_share=host_seconds / sum(seconds),
        padding_share=1 - real / positions,
        peak_memory_bytes=devices.peak_memory_bytes(),
        # After the peak: it may compile.
        step_memory_bytes=max(map(timer.memory_bytes, by_shape.values())),
        loss=loss.per_token(timed[-1][1])["loss"],
        all_step_seconds=seconds,
    )


def format_speed(speed: TrainingSpeed) -> str:
    """Return a table with a line for each figure."""
    figures = {
        "device": f"{speed.num_devices} x {speed.device}, {speed.dtype}",
        "parameters": f"{speed.parameters:,}",
        "shapes": f"{', '.join(speed.shapes)} (rows x source x target tokens)",
        "microbatches": f"{speed.num_microbatches} of a batch",
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
    return "\n".join(f"{name:<14} {figure}" for name, figure in figures.items())


def _num_microbatches(
    settings: config.Config, batches: list[types.Batch], *, vocab_size: types.VocabSize
) -> int:
    """Return how many microbatches training would make of these batches."""
    setting = settings.training.accumulate_steps
    if setting != microbatching.AUTO:
        return int(setting)
    by_bucket = {batching.Bucket(*_shape(batch)): batch for batch in batches}
    state = step.create_state(settings, vocab_size=vocab_size)
    return microbatching.plan(
        settings,
        state=step.place_on_devices(settings, state),
        empty_batch=lambda bucket: by_bucket[bucket],
        buckets=list(by_bucket),
        vocab_size=vocab_size,
        previous=1,
        make_train_step=step.make_train_steps(settings, vocab_size=vocab_size),
    ).num_microbatches


def _shape(batch: types.Batch) -> tuple[int, int, int]:
    rows, source = batch.source.shape
    return rows, source, batch.target_out.shape[1]


def _flops(
    settings: config.Config, batch: types.Batch, *, vocab_size: types.VocabSize
) -> float:
    bucket = batching.Bucket(*_shape(batch))
    return programs.update_flops(settings, bucket=bucket, vocab_size=vocab_size)
