"""Planning, batches and resuming on a corpus of WMT14 En-Fr's size, timed.

    python -m tests.benchmarks.plan_epoch --directory=runs/36m --pairs=36000000

Writes a synthetic corpus in the token-file format once (about 4 GB for 36M pairs),
then times, in a process of its own for each mode, what a start, a resume three epochs
later and a batch take, with the peak of the memory: of one text, and of five corpora
from 100,000 pairs to most of them.
"""

import argparse
import contextlib
import itertools
import json
import pathlib
import subprocess
import sys
import time
from fractions import Fraction
from typing import Any

import numpy as np

from tests.benchmarks import anonymous_memory
from vaswani_jax.data import batching, mixture, packing, token_files

CHUNK = 500_000
MAX_LENGTH = 256
# Buckets with one length of both sides, with one of each, and packed rows.
MODES = "shared", "separate", "packed"
# Of five corpora: their sizes, as shares of the pairs, and their weights.
SHARES = (30, 4, 1.5, 0.4, 0.1)
WEIGHTS = (4, 3, 2, 1, 1)


def write(directory: pathlib.Path, pairs: int) -> None:
    """Random ids; log-normal lengths, those of the two sides correlated."""
    directory.mkdir(parents=True, exist_ok=True)
    written = directory / "written"
    written.unlink(missing_ok=True)
    generator = np.random.default_rng(1)
    with contextlib.ExitStack() as stack:
        files = []
        for side in ("source", "target"):
            ids, offsets = (
                stack.enter_context(open(directory / f"train.{side}.{ending}", "wb"))
                for ending in ("uint16", "offsets")
            )
            offsets.write(np.zeros(1, token_files.OFFSET_TYPE).tobytes())
            files.append([ids, offsets, 0])
        _write(files, generator, pairs)
    # A corpus that was cut off, or of another size, is written again.
    written.write_text(str(pairs))


def _write(files: list[Any], generator: np.random.Generator, pairs: int) -> None:
    for start in range(0, pairs, CHUNK):
        count = min(CHUNK, pairs - start)
        both = generator.normal(3.2, 0.6, count)
        for parts in files:
            log_lengths = both + generator.normal(0, 0.15, count)
            lengths = np.clip(np.exp(log_lengths).astype(np.int64), 1, MAX_LENGTH - 1)
            ends = parts[2] + np.cumsum(lengths)
            parts[0].write(
                generator.integers(4, 32_000, lengths.sum(), dtype=np.uint16).tobytes()
            )
            parts[1].write(ends.astype(token_files.OFFSET_TYPE).tobytes())
            parts[2] = int(ends[-1])


def mix(num_pairs: int) -> mixture.Mixture:
    """Two stages of five corpora; each epoch has as many pairs as all have."""
    sizes, *stages = (
        tuple(mixture.divide_proportionally(num_pairs, list(map(Fraction, weights))))
        for weights in (SHARES, WEIGHTS, WEIGHTS[::-1])
    )
    quotas = map(mixture.Quotas, (0, 10_000), stages)
    names = tuple(f"corpus{number}" for number in range(len(sizes)))
    return mixture.Mixture(names, sizes, (1,) * len(sizes), tuple(quotas))


def measure(
    directory: pathlib.Path, mode: str, *, epochs: int, is_mixed: bool
) -> dict[str, float]:
    """Seconds and bytes of one mode, from the start of an epoch's middle."""
    memory = anonymous_memory.Watch()
    start_time, start_cpu_time = time.perf_counter(), time.process_time()
    pairs = token_files.TokenPairs(
        token_files.TokenFile.open(directory / "train.source"),
        token_files.TokenFile.open(directory / "train.target"),
    )
    budget: dict[str, Any] = {
        "source_tokens": 25_000,
        "target_tokens": 25_000,
        "seed": 1,
        "mixture": mix(len(pairs.source)) if is_mixed else None,
    }
    if mode == "packed":
        batches = packing.PackedBatches(pairs, row_length=MAX_LENGTH, **budget)
    else:
        batches = batching.BucketedBatches(
            pairs,
            num_buckets=8,
            bucket_lengths=mode,
            max_length=MAX_LENGTH,
            shuffle=True,
            **budget,
        )
    start = epochs * batches.batches_per_epoch + 12_345
    batches.batch_at(start)
    first = time.perf_counter() - start_time
    first_cpu = time.process_time() - start_cpu_time
    seconds = []
    for step in range(start + 1, start + 201):
        start_time = time.perf_counter()
        batches.batch_at(step)
        seconds.append(time.perf_counter() - start_time)
    return {
        "first_batch_seconds": first,
        "first_batch_cpu_seconds": first_cpu,
        "batch_seconds_median": float(np.median(seconds)),
        "batch_seconds_90_percent": float(np.quantile(seconds, 0.9)),
        "peak_bytes": memory.peak_bytes,
        "padding_share": batches.padding_share,
        "batches_per_epoch": batches.batches_per_epoch,
    }


def main() -> None:
    """Write, then measure each mode alone."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--directory", type=pathlib.Path, required=True)
    parser.add_argument("--pairs", type=int, default=36_000_000)
    parser.add_argument(
        "--mode", choices=MODES, help="Measure only this, of a corpus that was written"
    )
    parser.add_argument("--epochs", type=int, default=0)
    parser.add_argument("--corpora", type=int, choices=(1, 5), default=1)
    arguments = parser.parse_args()
    if arguments.mode:
        figures = measure(
            arguments.directory,
            arguments.mode,
            epochs=arguments.epochs,
            is_mixed=arguments.corpora > 1,
        )
        print(json.dumps(figures, indent=1))
        return
    written = arguments.directory / "written"
    if not written.exists() or written.read_text() != str(arguments.pairs):
        write(arguments.directory, arguments.pairs)
    for mode, corpora, epochs in itertools.product(MODES, (1, 5), (0, 3)):
        print(f"{mode}, corpora: {corpora}, after {epochs} epochs", flush=True)
        command = [sys.executable, "-m", "tests.benchmarks.plan_epoch"]
        command += [f"--directory={arguments.directory}", f"--mode={mode}"]
        command += [f"--epochs={epochs}", f"--corpora={corpora}"]
        subprocess.run(command, check=True)


if __name__ == "__main__":
    main()
