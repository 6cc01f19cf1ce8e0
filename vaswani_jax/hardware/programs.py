"""Compile the train step and the search for devices that are not here."""

import dataclasses
import time
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from vaswani_jax.core import config, memory, parallel, types
from vaswani_jax.core.memory import NeededBytes
from vaswani_jax.data import batching
from vaswani_jax.hardware import hlo
from vaswani_jax.hardware.communication import Collective, find_collectives
from vaswani_jax.hardware.compiled_work import (
    Relayout,
    Work,
    count_work,
    find_relayouts,
)
from vaswani_jax.inference import generate
from vaswani_jax.model import cost
from vaswani_jax.training import step

# The fields of XLA's CompiledMemoryStats that tell the memory of one device.
MEMORY_FIELDS = (
    "argument_size_in_bytes",
    "output_size_in_bytes",
    "alias_size_in_bytes",
    "temp_size_in_bytes",
    "generated_code_size_in_bytes",
)
# Without a GPU nothing is tuned, and Triton's default tiles fit no product of a search.
SEARCH_OPTIONS = {"gpu": {"xla_gpu_enable_triton_gemm": False}, "tpu": {}, "cpu": {}}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Program:
    """Facts of the compiler about one program.

    Attributes:
        rows: Rows of one device.
        source_length: Source tokens of a row.
        target_length: Target tokens of a row; None for a search.
        compile_seconds: Time to compile it, on this machine at its load.
        memory: Bytes by the names of MEMORY_FIELDS.
        needed: The memory of a device.
        flops: Operations of one device, None if the compiler counts none.
        work: All that it does.
        turns: What one turn does of each loop whose number of turns is unknown.
        collectives: Communication between devices.
        relayouts: Copies of activations and gradients into another layout.
    """

    rows: int
    source_length: int
    target_length: int | None
    compile_seconds: float
    memory: dict[str, int]
    needed: NeededBytes
    flops: float | None
    work: Work
    turns: list[Work]
    collectives: list[Collective]
    relayouts: list[Relayout]

    @property
    def collective_bytes(self) -> int:
        """Bytes of the results of all communication."""
        return sum(collective.num_bytes for collective in self.collectives)

    def as_dict(self) -> dict[str, Any]:
        """Return what `from_dict` reads, for JSON."""
        return {**dataclasses.asdict(self), "needed": self.needed._asdict()}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "Program":
        """Return the program that `as_dict` has written."""
        parts = {
            "work": Work(**values["work"]),
            "turns": [Work(**record) for record in values["turns"]],
            "needed": NeededBytes(**values["needed"]),
            "collectives": [Collective(**record) for record in values["collectives"]],
            "relayouts": [Relayout(**record) for record in values["relayouts"]],
        }
        return cls(**{**values, **parts})


def train_step(
    settings: config.Config,
    *,
    bucket: batching.Bucket,
    num_microbatches: int,
    vocab_size: types.VocabSize,
) -> Program:
    """Compile the update for one shape of batches; see `parallel.targeting`.

    Args:
        settings: The run's.
        bucket: The shape of a global batch.
        num_microbatches: How many parts each device's rows are computed in.
        vocab_size: V.
    """
    rows = rows_of_a_device(bucket.rows, num_microbatches=num_microbatches)
    state = _state(settings, vocab_size=vocab_size)
    source, target = _ids(rows, bucket.source_length), _ids(rows, bucket.target_length)
    is_packed = settings.data.batching == "packed"
    segments = types.Segments(source, target) if is_packed else None
    batch = types.Batch(source, target, target, segments)
    make_train_step = step.make_train_steps(settings, vocab_size=vocab_size)
    part = rows // num_microbatches
    return _compile(
        lambda: make_train_step(num_microbatches).lower(state, batch),  # type: ignore[attr-defined]
        state=state,
        rows=rows,
        source_length=bucket.source_length,
        target_length=bucket.target_length,
        activations=sorted(
            {
                *_axes(part, bucket.source_length),
                *_axes(part, bucket.target_length),
            }
        ),
        gradients=[
            leaf.size for leaf in jax.tree.leaves(state.params) if leaf.ndim > 1
        ],
        options={},
    )


def search(
    settings: config.Config, *, rows: int, length: int, vocab_size: types.VocabSize
) -> Program:
    """Compile the search for the best translation; see `parallel.targeting`.

    Args:
        settings: The run's.
        rows: Sentences of a global batch.
        length: Source tokens of each.
        vocab_size: V.
    """
    params = (_state(settings, vocab_size=vocab_size).params,)
    rows = rows_of_a_device(rows, num_microbatches=1)
    generator = generate.make_generator(
        settings, (settings.model,), vocab_size=vocab_size, n_best=1
    )
    sentences = generate.Rows(_ids(rows, length), _ids(rows, 0), _ids(rows, 2))
    return _compile(
        lambda: parallel.over_rows(generator).lower(params, sentences),  # type: ignore[attr-defined]
        state=params,
        rows=rows,
        source_length=length,
        target_length=None,
        activations=_axes(rows, length) + _axes(rows * settings.search.beam_size, 1),
        gradients=(),
        options=SEARCH_OPTIONS[parallel.platform()],
    )


def state_bytes(settings: config.Config, *, vocab_size: types.VocabSize) -> int:
    """Return the bytes of parameters, moments and any moving average."""
    return memory.size_in_bytes(_state(settings, vocab_size=vocab_size))


def rows_of_a_device(rows: int, *, num_microbatches: int) -> int:
    """Return how many rows of a global batch each device computes."""
    num_rows = parallel.computed_rows(rows, num_microbatches=num_microbatches)
    return num_rows // parallel.num_devices()


def update_flops(
    settings: config.Config, *, bucket: batching.Bucket, vocab_size: types.VocabSize
) -> float:
    """Return the operations of an update on a global batch; see `cost.update_flops`.

    If parameters are frozen, only the forward pass counts: which gradients others need
    depends on where they lie.
    """
    count = cost.forward_flops if settings.optimizer.frozen else cost.update_flops
    draws = 2 if settings.training.r_drop else 1
    return draws * count(
        settings.model,
        vocab_size=vocab_size,
        rows=bucket.rows,
        source=bucket.source_length,
        target=bucket.target_length,
    )


def _state(settings: config.Config, *, vocab_size: types.VocabSize) -> step.TrainState:
    """Return the shapes of the state, which is not computed."""
    state = step.placed_shapes(settings, vocab_size=vocab_size)
    return jax.tree.map(
        lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype), state
    )


def _ids(rows: int, length: int) -> Any:
    shape = (parallel.num_devices(), rows, length)
    return jax.ShapeDtypeStruct(shape, jnp.int32)


def _axes(rows: int, length: int) -> list[int]:
    """Return sizes of axes that activations alone have: rows and their tokens.

    A few rows are too common a size, and the tokens of one row are a table's length. A
    search's decoder has rows of one token, as many as hypotheses.
    """
    if rows > 4:
        return [rows, rows * length]
    return [rows * length] if rows > 1 else []


def _compile(
    lower: Callable[[], Any],
    *,
    state: Any,
    rows: int,
    source_length: int,
    target_length: int | None,
    activations: Sequence[int],
    gradients: Sequence[int],
    options: dict[str, Any],
) -> Program:
    lowered = lower()
    start = time.monotonic()
    compiled = lowered.compile(compiler_options=options or None)
    compile_seconds = time.monotonic() - start
    module = hlo.parse(compiled.as_text())
    analysis = compiled.memory_analysis()
    return Program(
        rows=rows,
        source_length=source_length,
        target_length=target_length,
        compile_seconds=compile_seconds,
        memory={name: int(getattr(analysis, name)) for name in MEMORY_FIELDS},
        needed=memory.needed_by(compiled, state=state),
        flops=_flops(compiled),
        work=count_work(module),
        turns=[count_work(module, loop.called) for loop in module.endless_loops()],
        collectives=find_collectives(module),
        relayouts=find_relayouts(module, sizes=activations, elements=gradients),
    )


def _flops(compiled: Any) -> float | None:
    """Return what XLA counts, or None for GPUs that are not here."""
    try:
        analysis = compiled.cost_analysis() or {}
    except RuntimeError:
        return None
    flops = analysis.get("flops")
    return float(flops) if flops and flops > 0 else None
