"""Section 5.2: whether a batch fits the devices, and into how many parts if not."""

import contextlib
import dataclasses
import hashlib
import json
import pathlib
from collections.abc import Callable
from typing import Any

import jax

from vaswani_jax.core import (
    compilation_cache,
    config,
    memory,
    parallel,
    processes,
    types,
)
from vaswani_jax.data import batching
from vaswani_jax.training import step

AUTO = "auto"
# The rest is for fragments, for evaluation and for what else runs on a host.
USABLE = 0.9


@dataclasses.dataclass(frozen=True)
class Plan:
    """How the batches will be computed, in bytes of one device."""

    run: Callable[..., Any]  # the step, over devices
    parts: int
    state: int  # parameters and the optimizer's two moments
    step: int  # activations, gradients and all else that a step needs
    available: int

    def __str__(self) -> str:
        return (
            f"memory of a device: {self.state / 2**20:,.0f} MiB of parameters and "
            f"moments, {self.step / 2**20:,.0f} MiB for a step in {self.parts} "
            f"part(s); {self.available / 2**20:,.0f} MiB available"
        )

    def warning(self) -> str:
        """What to do about a step that needs more than there is; empty if it fits."""
        if self.state + self.step <= self.available:
            return ""
        return (
            "warning: a step needs more memory than is available; a smaller batch, "
            "config.training.accumulate_steps=auto or config.model.rematerialize=True "
            "needs less"
        )


def largest(
    settings: config.Config,
    buckets: list[batching.Bucket],
    *,
    vocab_size: int,
    parts: int,
) -> batching.Bucket:
    """The batch shape that needs the most memory: logits and attention weights.

    Which one depends on the rows of padding that devices and parts add.
    """
    model = settings.model

    def size(bucket: batching.Bucket) -> int:
        widths = 2 * model.d_ff + 12 * model.d_model + bucket.length * model.num_heads
        row = vocab_size + 2 * model.num_layers * widths
        rows = parallel.computed_rows(bucket.rows, num_microbatches=parts)
        return rows * bucket.length * row

    return max(buckets, key=size)


def empty_rows(buckets: list[batching.Bucket], *, parts: int) -> str:
    """Which shape is computed with the most rows of padding, because devices and parts
    get as many rows each; empty if none is."""

    def computed(bucket: batching.Bucket) -> float:
        return parallel.computed_rows(bucket.rows, num_microbatches=parts) / bucket.rows

    worst = max(buckets, key=computed)
    if computed(worst) == 1:
        return ""
    rows = parallel.computed_rows(worst.rows, num_microbatches=parts)
    return (
        f"{parallel.num_devices()} device(s) with {parts} part(s) of as many rows each "
        f"compute {rows:,} rows of {worst.length} tokens for {worst.rows:,}: "
        f"{computed(worst) - 1:.0%} more, the most of all shapes"
    )


def plan(
    settings: config.Config,
    state: step.TrainState,
    empty_batch: Callable[[batching.Bucket], types.Batch],
    buckets: list[batching.Bucket],
    *,
    vocab_size: int,
    parts_before: int,
) -> Plan:
    """The memory of the largest step, from its compiled program.

    The compilation is not lost: `run` has it, or no compilation was needed because
    the directory of compiled programs says what it found. With `accumulate_steps`
    "auto", parts are doubled until a step fits, from `parts_before`, those of the run
    that is resumed: it goes on to the same digits.

    Raises:
        ValueError: Not even single rows fit.
    """
    available = memory.available_bytes(state)
    wanted = settings.training.accumulate_steps
    parts = parts_before if wanted == AUTO else int(wanted)
    while True:
        bucket = largest(settings, buckets, vocab_size=vocab_size, parts=parts)
        run = parallel.over_devices(
            step.train_step(settings, vocab_size=vocab_size, parts=parts),
            donate_state=True,
        )
        rows = parallel.split_rows(empty_batch(bucket), num_microbatches=parts)
        work = (settings.model, settings.optimizer, settings.training, vocab_size)
        needed = _needed((*work, parts), run, state, rows)
        found = Plan(run, parts, needed.state, needed.step, available)
        if wanted != AUTO or found.state + found.step <= USABLE * available:
            return found
        if parts >= bucket.rows / parallel.num_devices():
            raise ValueError(
                f"config.training.accumulate_steps=auto: {found}; not even single rows "
                f"of {bucket.length} tokens fit"
            )
        parts *= 2


def _needed(
    work: tuple[Any, ...], run: Callable[..., Any], state: Any, rows: Any
) -> memory.NeededBytes:
    """`memory.needed_bytes`, remembered beside the compiled programs.

    An entry belongs to this source, this compiler, these devices and this work.
    """
    directory = compilation_cache.directory()
    if directory is None:
        return memory.needed_bytes(run, state, rows)
    shapes = [(leaf.shape, leaf.dtype) for leaf in jax.tree.leaves(rows)]
    key = repr(
        (work, shapes, parallel.describe(), compilation_cache.compiler(), _sources())
    )
    file = directory / f"memory-{hashlib.sha256(key.encode()).hexdigest()[:32]}.json"
    try:
        return memory.NeededBytes(**json.loads(file.read_text()))
    except (OSError, ValueError, TypeError):
        pass  # Not there, or cut off: it may be deleted at any time.
    found = memory.needed_bytes(run, state, rows)
    if processes.is_main_process():
        # As the compiled programs beside it: what cannot be kept is found again.
        with contextlib.suppress(OSError):
            directory.mkdir(parents=True, exist_ok=True)
            file.write_text(json.dumps(found._asdict()))
    return found


def _sources() -> str:
    """A fingerprint of this package: what it computes decides what it needs."""
    digest = hashlib.sha256()
    package = pathlib.Path(__file__).parents[1]
    for path in sorted(package.rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()
