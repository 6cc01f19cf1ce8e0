"""Choose the number of microbatches so that an update fits the memory of a device."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import jax

from vaswani_jax.core import (
    compilation_cache,
    config,
    memory,
    parallel,
    plurals,
    processes,
    types,
)
from vaswani_jax.data import batching
from vaswani_jax.training import step

AUTO = "auto"
# The share of the memory that a step may need. The rest is for fragments, evaluation
# and what else runs on a host.
USABLE = 0.9


# What to do when not even single rows fit.
HOW_TO_FIT_A_ROW = (
    "config.model.rematerialize=True, config.training.shard_optimizer=True (on several "
    "devices) or a smaller model needs less"
)
# What to do when an update needs more memory than there is.
HOW_TO_FIT = (
    "an update needs more memory than is available; a smaller batch, "
    "config.training.accumulate_steps=auto, config.training.shard_optimizer=True (on "
    "several devices) or config.model.rematerialize=True needs less"
)


@dataclasses.dataclass(frozen=True)
class Plan:
    """The parts that a batch is computed in, and the memory of one device.

    Attributes:
        num_microbatches: How many parts.
        state_bytes: Parameters, the optimizer's two moments, and a moving average.
        step_bytes: Activations, gradients and all else that an update needs.
        available_bytes: What there is.
        program_bytes: The compiled steps of all shapes, where they need its memory.
    """

    num_microbatches: int
    state_bytes: int
    step_bytes: int
    available_bytes: int
    program_bytes: int = 0

    @property
    def needed_bytes(self) -> int:
        """All that an update needs."""
        return self.state_bytes + self.step_bytes + self.program_bytes

    @property
    def fits(self) -> bool:
        """True if an update needs no more than there is."""
        return self.needed_bytes <= self.available_bytes

    def __str__(self) -> str:
        programs = f"{self.program_bytes / 2**20:,.0f} MiB of programs, "
        return (
            f"memory of a device: {self.state_bytes / 2**20:,.0f} MiB of parameters "
            f"and moments, {programs if self.program_bytes else ''}"
            f"{self.step_bytes / 2**20:,.0f} MiB for an update in "
            f"{plurals.format_count(self.num_microbatches, 'part')}; "
            f"{self.available_bytes / 2**20:,.0f} MiB available"
        )


class DoesNotFitError(ValueError):
    """Not even single rows fit the memory.

    Attributes:
        plan: The last that was looked at.
    """

    def __init__(self, message: str, plan: Plan) -> None:
        super().__init__(message)
        self.plan = plan


def largest_bucket(
    settings: config.Config,
    buckets: Sequence[batching.Bucket],
    *,
    vocab_size: types.VocabSize,
    num_microbatches: int,
) -> batching.Bucket:
    """Return the batch shape that needs the most memory: logits, attention weights.

    Which one depends on the rows of padding that devices and microbatches add.
    """
    model = settings.model

    def size(bucket: batching.Bucket) -> int:
        source, target = bucket.source_length, bucket.target_length
        width = 2 * model.d_ff + 12 * model.d_model
        encoder = model.encoder_layers * (width + source * model.num_heads)
        # The decoder attends to both sides.
        keys = (source + target) * model.num_heads // 2
        decoder = model.decoder_layers * (width + keys)
        logits = types.num_target_subwords(vocab_size)
        rows = parallel.computed_rows(bucket.rows, num_microbatches=num_microbatches)
        return rows * (source * encoder + target * (decoder + logits))

    return max(buckets, key=size)


def describe_padding(
    buckets: Sequence[batching.Bucket], *, num_microbatches: int
) -> str:
    """Name the shape that gets the largest share of empty rows; "" if none gets any.

    Every device and every microbatch computes the same number of rows.
    """

    def computed(bucket: batching.Bucket) -> int:
        return parallel.computed_rows(bucket.rows, num_microbatches=num_microbatches)

    worst = max(buckets, key=lambda bucket: computed(bucket) / bucket.rows)
    if computed(worst) == worst.rows:
        return ""
    share = computed(worst) / worst.rows - 1
    return (
        f"{plurals.format_count(parallel.num_devices(), 'device')} with "
        f"{plurals.format_count(num_microbatches, 'part')} of as many rows each: "
        f"{computed(worst):,} rows of {worst.describe_tokens()} are computed for "
        f"{worst.rows:,}, {share:.0%} more, the most of all shapes"
    )


def plan(
    settings: config.Config,
    *,
    state: step.TrainState,
    empty_batch: Callable[[batching.Bucket], types.Batch],
    buckets: Sequence[batching.Bucket],
    vocab_size: types.VocabSize,
    previous: int,
    make_train_step: Callable[[int], Callable[..., Any]],
) -> Plan:
    """Choose the number of microbatches by the memory of the largest compiled step.

    With `accumulate_steps` "auto" the number is doubled until a step fits, from
    `previous`: a run that resumes on the same devices continues to the same digits.

    Args:
        settings: The run's settings.
        state: The state, on the devices.
        empty_batch: Returns a batch of padding of some shape.
        buckets: The shapes of the batches.
        vocab_size: V.
        previous: The number before the run resumed; 1 if it is new or on other devices.
        make_train_step: Returns the step over devices for a number of microbatches. It
            is compiled here, unless the directory of compiled programs has the memory
            that it needs.

    Raises:
        DoesNotFitError: Not even single rows fit.
    """
    work = (settings.model, settings.optimizer, settings.training, vocab_size)
    available = memory.available_bytes(state)

    def needed_bytes(bucket: batching.Bucket, number: int) -> memory.NeededBytes:
        rows = parallel.split_rows(empty_batch(bucket), num_microbatches=number)
        try:
            return _needed_bytes(
                (*work, number), make_train_step(number), state=state, rows=rows
            )
        except RuntimeError as error:
            refused_bytes = memory.refused_bytes(error)
            if refused_bytes is None or settings.training.accumulate_steps != AUTO:
                raise
            # A TPU's compiler makes no program that cannot fit.
            state_bytes = memory.size_in_bytes(state)
            return memory.NeededBytes(state_bytes, max(refused_bytes, available))

    return choose(
        settings,
        buckets=buckets,
        num_shapes=len(buckets),
        vocab_size=vocab_size,
        previous=previous,
        available_bytes=available,
        needed_bytes=needed_bytes,
    )


def choose(
    settings: config.Config,
    *,
    buckets: Sequence[batching.Bucket],
    num_shapes: int,
    vocab_size: types.VocabSize,
    previous: int,
    available_bytes: int,
    needed_bytes: Callable[[batching.Bucket, int], memory.NeededBytes],
) -> Plan:
    """Choose the number of microbatches, see `plan`.

    Args:
        settings: The run's settings.
        buckets: The shapes of the batches.
        num_shapes: How many shapes a run compiles; each has a program of its own.
        vocab_size: V.
        previous: The number before the run resumed; 1 if it is new or on other devices.
        available_bytes: Memory of a device.
        needed_bytes: Returns what a step needs for a bucket and a number.

    Raises:
        DoesNotFitError: Not even single rows fit.
    """
    setting = settings.training.accumulate_steps
    number = previous if setting == AUTO else int(setting)
    while True:
        bucket = largest_bucket(
            settings, buckets, vocab_size=vocab_size, num_microbatches=number
        )
        num_bytes = needed_bytes(bucket, number)
        candidate = Plan(
            number,
            num_bytes.state,
            num_bytes.step,
            available_bytes,
            num_bytes.program * num_shapes,
        )
        if setting != AUTO or candidate.needed_bytes <= USABLE * available_bytes:
            return candidate
        if number >= bucket.rows / parallel.num_devices():
            raise DoesNotFitError(
                f"config.training.accumulate_steps=auto: {candidate}; not even single "
                f"rows of {bucket.describe_tokens()} fit {USABLE:.0%} of the available "
                f"memory; {HOW_TO_FIT_A_ROW}",
                candidate,
            )
        number *= 2


def _needed_bytes(
    work: tuple[Any, ...], train_step: Callable[..., Any], *, state: Any, rows: Any
) -> memory.NeededBytes:
    """Return `memory.needed_bytes`, cached beside the compiled programs.

    An entry belongs to one source, compiler, set of devices and kind of work.
    """
    shapes = [(leaf.shape, leaf.dtype) for leaf in jax.tree.leaves(rows)]
    key = repr((work, shapes, parallel.describe(), compilation_cache.compiler()))
    needed_bytes = compilation_cache.remember(
        "memory",
        key,
        lambda: memory.needed_bytes(train_step, state=state, rows=rows)._asdict(),
        keep=processes.is_main_process(),
    )
    return memory.NeededBytes(**needed_bytes)
