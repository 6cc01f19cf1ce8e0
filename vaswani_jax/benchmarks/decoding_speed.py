"""Measure the speed of beam search: sentences and tokens a second by batch size."""

import dataclasses
import statistics
import time
from collections.abc import Callable, Sequence

import jax
import numpy as np

from vaswani_jax.benchmarks import devices
from vaswani_jax.core import config, parallel, types
from vaswani_jax.inference import generate
from vaswani_jax.training import step


@dataclasses.dataclass(frozen=True)
class DecodingSpeed:
    """The speed of decoding at one batch size; times in seconds, rates per second."""

    device: str
    num_devices: int
    dtype: str
    batch: int  # sentences
    beam_size: int
    source_tokens: int  # of each sentence, the end mark counted
    output_tokens: int
    batch_seconds: float  # median
    sentences_per_second: float
    output_tokens_per_second: float
    first_batch_seconds: float  # compilation and one batch
    peak_memory_bytes: int  # of the process so far
    all_batch_seconds: list[float]


def make_timer(
    settings: config.Config,
    *,
    vocab_size: types.VocabSize,
    batch: int,
    source_tokens: int,
    output_tokens: int,
) -> Callable[[], float]:
    """Return a function that searches, and returns the seconds of one batch.

    They count from ids on the host to ids on the host. The parameters are random, and
    all outputs have exactly `output_tokens`.
    """
    search = dataclasses.replace(
        settings.search,
        min_tokens=output_tokens,
        max_tokens=output_tokens,
        max_extra_tokens=max(1, output_tokens - source_tokens),
        legal_trees=False,  # No tree has so many symbols for any source.
    )
    settings = dataclasses.replace(settings, search=search)
    state = step.create_state(settings, vocab_size=vocab_size)
    params = (parallel.replicate(state.params),)
    generator = generate.make_generator(
        settings, (settings.model,), vocab_size=vocab_size, n_best=1
    )
    run = parallel.over_rows(generator)
    shape = (batch, source_tokens)
    size = types.num_source_subwords(vocab_size)
    ids = np.random.default_rng(0).integers(types.UNK_ID + 1, size, shape)
    ids[:, -1] = types.EOS_ID
    all_rows = generate.Rows(
        ids.astype(np.int32),
        np.zeros((batch, 0), np.int32),
        np.zeros((batch, 2), np.int32),
    )

    def time_search() -> float:
        start = time.perf_counter()
        rows = parallel.split_rows(all_rows, num_microbatches=1)
        hypotheses = run(params, rows)
        tokens = parallel.join_rows(jax.device_get(hypotheses.tokens))
        seconds = time.perf_counter() - start
        lengths = (tokens[:batch, 0] != types.PAD_ID).sum(axis=1)
        assert (lengths == output_tokens).all(), lengths
        return seconds

    return time_search


def measure(
    settings: config.Config,
    *,
    vocab_size: types.VocabSize,
    batches: Sequence[int],
    source_tokens: int,
    output_tokens: int,
    repeats: int,
) -> list[DecodingSpeed]:
    """Time searches of several batch sizes in turn, after a warm-up of each."""
    timers = [
        make_timer(
            settings,
            vocab_size=vocab_size,
            batch=batch,
            source_tokens=source_tokens,
            output_tokens=output_tokens,
        )
        for batch in batches
    ]
    first, memory = [], []
    for timer in timers:
        first.append(timer())
        memory.append(devices.peak_memory_bytes())
    turns = [[timer() for timer in timers] for _ in range(repeats)]
    speeds = []
    for index, batch in enumerate(batches):
        seconds = [turn[index] for turn in turns]
        median = statistics.median(seconds)
        speeds.append(
            DecodingSpeed(
                device=parallel.device_kind(),
                num_devices=parallel.num_devices(),
                dtype=settings.model.dtype,
                batch=batch,
                beam_size=settings.search.beam_size,
                source_tokens=source_tokens,
                output_tokens=output_tokens,
                batch_seconds=median,
                sentences_per_second=batch / median,
                output_tokens_per_second=batch * output_tokens / median,
                first_batch_seconds=first[index],
                peak_memory_bytes=memory[index],
                all_batch_seconds=seconds,
            )
        )
    return speeds


def format_speeds(speeds: Sequence[DecodingSpeed]) -> str:
    """Return a table with a line for each batch size."""
    setup = speeds[0]
    lines = [
        f"{setup.num_devices} x {setup.device}, {setup.dtype}; beam {setup.beam_size}, "
        f"{setup.source_tokens} source and {setup.output_tokens} output tokens",
        "batch   seconds   sentences/s   tokens/s   first batch   memory so far",
    ]
    for speed in speeds:
        lines.append(
            f"{speed.batch:5d} {speed.batch_seconds:9.3f}"
            f" {speed.sentences_per_second:13.1f}"
            f" {speed.output_tokens_per_second:10.0f}"
            f" {speed.first_batch_seconds:11.1f} s"
            f" {speed.peak_memory_bytes / 2**30:11.2f} GiB"
        )
    return "\n".join(lines)
