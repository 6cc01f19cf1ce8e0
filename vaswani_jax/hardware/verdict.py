"""Judge a run on some hardware: does it fit, the compiler's facts, estimates."""

import dataclasses
from collections.abc import Callable
from typing import Any

from vaswani_jax.core import config, memory, parallel
from vaswani_jax.data import batching
from vaswani_jax.hardware import (
    chips,
    compiled_work,
    compiler,
    estimates,
    hlo,
    origins,
    programs,
    topology,
    workload,
)
from vaswani_jax.hardware.workload import Workload
from vaswani_jax.inference import padding
from vaswani_jax.training import microbatching, step

# The share of a GPU's memory that JAX takes (XLA_PYTHON_CLIENT_MEM_FRACTION).
GPU_SHARE = 0.75
# A TPU's registers and tiles have so many numbers in a row.
TILE = 128
# A search of a length is compiled for a full batch and for what is left, in fewer rows
# (`padding.ROWS`).
SEARCHES_OF_A_LENGTH = 2


def judge(work: Workload, hardware: topology.Hardware) -> dict[str, Any]:
    """Return facts, estimates and where each number comes from, as JSON can hold them.

    Args:
        work: The run.
        hardware: What to compile for.

    Raises:
        ImportError: The compiler is not installed.
        ValueError: The settings cannot run there.
    """
    devices = topology.devices(hardware)
    with parallel.targeting(hardware.chip.platform, devices):
        step.check_settings(work.settings)
        version = compiler.version(devices[0])
        return _judge(work, hardware, compiler.Compiler(work, hardware, version))


def available_bytes(chip: chips.Chip) -> int:
    """Return the memory of a device that a run may use."""
    share = GPU_SHARE if chip.platform == "gpu" else 1
    return int(chip.memory_bytes * share)


def search_shape(settings: config.Config, *, length: int) -> tuple[int, int]:
    """Return sentences and source tokens of a full batch of a search."""
    search = settings.search
    padded = min(padding.padded_length(length), search.max_source_tokens)
    tokens = search.source_tokens_per_batch * 4 // max(4, search.beam_size)
    return max(1, tokens // padded), padded


@dataclasses.dataclass(frozen=True)
class _Steps:
    """The compiled steps of a plan.

    Attributes:
        plan: The parts of a batch, and the most memory of its compiled shapes.
        compiled: The step of each shape that the compiler accepts.
        reason: Why a step does not fit; "" if the compiler accepts them all.
    """

    plan: microbatching.Plan
    compiled: dict[batching.Bucket, programs.Program]
    reason: str


def _compile_steps(
    work: Workload, programs_of: compiler.Compiler, *, available: int
) -> _Steps:
    compiled: dict[tuple[batching.Bucket, int], programs.Program] = {}
    refusals: dict[tuple[batching.Bucket, int], compiler.RefusedError] = {}

    def compile_step(bucket: batching.Bucket, number: int) -> memory.NeededBytes:
        try:
            program = programs_of.train_step(bucket, number)
        except compiler.RefusedError as error:
            refusals[bucket, number] = error
            state = programs.state_bytes(work.settings, vocab_size=work.vocab_size)
            return memory.NeededBytes(state, max(available, error.num_bytes))
        compiled[bucket, number] = program
        return program.needed

    try:
        plan = microbatching.choose(
            work.settings,
            buckets=[shape.bucket for shape in work.shapes],
            num_shapes=work.num_shapes,
            vocab_size=work.vocab_size,
            previous=1,
            available_bytes=available,
            needed_bytes=compile_step,
        )
    except microbatching.DoesNotFitError as error:
        return _Steps(error.plan, {}, str(error))
    step_bytes = plan.step_bytes
    if plan.fits:
        for bucket in work.judged:
            if (bucket, plan.num_microbatches) not in compiled:
                needed_bytes = compile_step(bucket, plan.num_microbatches)
                step_bytes = max(step_bytes, needed_bytes.step)
    reasons = [
        str(error)
        for (_, number), error in refusals.items()
        if number == plan.num_microbatches
    ]
    return _Steps(
        dataclasses.replace(plan, step_bytes=step_bytes),
        {
            bucket: program
            for (bucket, number), program in compiled.items()
            if number == plan.num_microbatches
        },
        next(iter(reasons), ""),
    )


def _judge(
    work: Workload, hardware: topology.Hardware, programs_of: compiler.Compiler
) -> dict[str, Any]:
    available = available_bytes(hardware.chip)
    num_steps = len({work.commonest, *work.judged})
    if not work.all_shapes and len(work.shapes) > 1:
        num_steps += 1  # The largest.
    programs_of.expect(num_steps + 1)
    steps = _compile_steps(work, programs_of, available=available)
    rows, length = search_shape(work.settings, length=_sentence_length(work))
    search, refusal = None, None
    try:
        search = programs_of.search(rows=rows, length=length)
    except compiler.RefusedError as error:
        refusal = error
    fit = _fit(work, hardware.chip, steps, search=search, refusal=refusal)
    result = {
        "hardware": hardware.name,
        "device_kind": hardware.chip.device_kind,
        "num_chips": hardware.num_chips,
        "num_devices": hardware.num_devices,
        "compiler": programs_of.version,
        **fit,
        "steps": [
            _step_facts(steps.compiled[shape.bucket], hardware, batches=shape.batches)
            for shape in work.shapes
            if shape.bucket in steps.compiled
        ],
        "search": search and _search_facts(search, hardware.chip),
        **_expectations(work, hardware, steps),
        "notes": _notes(work, hardware),
        "recommendations": _recommendations(work, hardware, steps.plan),
    }
    return {**result, "origin": origins.find_origins(result, hardware.chip)}


def _sentence_length(work: Workload) -> int:
    """Return the padded source tokens of usual sentences; a packed row has several."""
    settings = work.settings
    length = work.commonest.source_length
    if settings.data.batching == "packed":
        length = workload.usual_length(settings.data)
    return min(length, settings.search.max_source_tokens)


def _fit(
    work: Workload,
    chip: chips.Chip,
    steps: _Steps,
    *,
    search: programs.Program | None,
    refusal: compiler.RefusedError | None,
) -> dict[str, Any]:
    """Return whether the run fits a device, with how much room, and what would fit.

    Args:
        work: The run.
        chip: The device.
        steps: Those of training.
        search: The compiled search; None if the compiler refuses it.
        refusal: The refusal; None if there is a search.
    """
    plan, available = steps.plan, available_bytes(chip)
    num_search_shapes = _num_search_shapes(work.settings)
    search_bytes = search.needed.step if search else 0
    search_programs = search.needed.program * num_search_shapes if search else 0
    if refusal:
        search_bytes = max(available, refusal.num_bytes)
    search_reason = str(refusal or "")
    needed_bytes = plan.state_bytes + max(plan.step_bytes, search_bytes)
    needed_bytes += plan.program_bytes + search_programs
    search_fits = not refusal and plan.state_bytes + search_bytes <= available
    fits = not (steps.reason or search_reason) and needed_bytes <= available
    return {
        "fits": fits,
        "reason": steps.reason or search_reason,
        "how_to_fit": "" if fits else _how_to_fit(steps, search_fits=search_fits),
        "num_microbatches": plan.num_microbatches,
        "num_shapes": work.num_shapes,
        "num_search_shapes": num_search_shapes,
        "memory": {
            "available_bytes": available,
            "needed_bytes": needed_bytes,
            "free_bytes": available - needed_bytes,
            "state_bytes": plan.state_bytes,
            "step_bytes": plan.step_bytes,
            "step_programs_bytes": plan.program_bytes,
            "search_bytes": search_bytes,
            "search_programs_bytes": search_programs,
        },
    }


def _num_search_shapes(settings: config.Config) -> int:
    """Return how many shapes of a search evaluations compile.

    Sentences have the padded lengths of the training data's.
    """
    longest = min(settings.data.max_length, settings.search.max_source_tokens)
    lengths = {padding.padded_length(length) for length in range(1, longest + 1)}
    return SEARCHES_OF_A_LENGTH * len(lengths)


def _how_to_fit(steps: _Steps, *, search_fits: bool) -> str:
    if steps.reason.endswith(microbatching.HOW_TO_FIT_A_ROW):
        return ""  # The reason says it.
    if steps.reason or not steps.plan.fits:
        return microbatching.HOW_TO_FIT
    if not search_fits:
        return (
            "a search needs more memory than is available; a smaller "
            "config.search.source_tokens_per_batch or config.search.beam_size needs "
            "less"
        )
    return (
        "with the programs of all shapes there is too little memory; "
        "config.data.batching=packed has one shape, a smaller config.data.num_buckets "
        "fewer, and a smaller config.search.source_tokens_per_batch needs less"
    )


def _step_facts(
    program: programs.Program, hardware: topology.Hardware, *, batches: int
) -> dict[str, Any]:
    """Return what the compiler says of a step, and what is expected of it."""
    communication = program.collectives
    facts = {
        "rows": program.rows,
        "length": program.source_length,
        "target_length": program.target_length,
        "batches_per_epoch": batches or None,
        **_compiled(program),
        "communication": {
            "count": len(communication),
            "bytes": program.collective_bytes,
            "asynchronous": sum(transfer.is_asynchronous for transfer in communication),
            "overlapped": sum(transfer.is_overlapped for transfer in communication),
            "hidden_cycles": sum(transfer.hidden_cycles for transfer in communication),
            "hidden_kernels": sum(
                transfer.hidden_kernels for transfer in communication
            ),
            "kinds": {
                kind: sum(transfer.kind == kind for transfer in communication)
                for kind in hlo.COLLECTIVES
            },
        },
    }
    expected = estimates.step_time(
        program, hardware.chip, num_devices=hardware.num_devices
    )
    if expected:
        facts["expected"] = {
            "computing_seconds": expected.computing,
            "communication_seconds": expected.communication,
            "exposed_communication_seconds": expected.exposed,
            "step_seconds": expected.seconds,
        }
    return facts


def _search_facts(program: programs.Program, chip: chips.Chip) -> dict[str, Any]:
    return {
        "rows": program.rows,
        "length": program.source_length,
        **_compiled(program),
        "loops": [
            {**_work(turn), "expected_seconds": estimates.work_seconds(turn, chip)}
            for turn in program.turns
        ],
    }


def _compiled(program: programs.Program) -> dict[str, Any]:
    return {
        "compile_seconds": program.compile_seconds,
        "memory": program.memory,
        "flops": program.flops,
        **_work(program.work),
        "relayouts": {
            "count": len(program.relayouts),
            "bytes": sum(relayout.num_bytes for relayout in program.relayouts),
        },
    }


def _work(work: compiled_work.Work) -> dict[str, Any]:
    return {
        "instructions": work.num_instructions,
        "kernels": work.num_kernels,
        "estimated_cycles": work.estimated_cycles or None,
        "bytes_without_cycles": work.bytes_without_cycles,
    }


def _expectations(
    work: Workload, hardware: topology.Hardware, steps: _Steps
) -> dict[str, Any]:
    """Return estimates of the run, or only bounds where there are no cycles.

    They are of the commonest shape; of all, weighted by their batches, if all were
    compiled.
    """
    weights = {
        shape.bucket: shape.batches
        for shape in work.shapes
        if shape.bucket in steps.compiled and shape.bucket in work.judged
    }
    if not any(weights.values()):  # No data is prepared.
        weights = dict.fromkeys(weights, 1)
    if not weights:
        return {}
    chip, num_devices = hardware.chip, hardware.num_devices

    def mean(value: Callable[[batching.Bucket], float]) -> float:
        total = sum(weights.values())
        return sum(value(b) * weight for b, weight in weights.items()) / total

    def flops(bucket: batching.Bucket) -> float:
        return programs.update_flops(
            work.settings, bucket=bucket, vocab_size=work.vocab_size
        )

    def least(bucket: batching.Bucket) -> float:
        return estimates.least_step_seconds(
            steps.compiled[bucket],
            chip,
            update_flops=flops(bucket),
            num_devices=num_devices,
        )

    times = {
        bucket: estimates.step_time(
            steps.compiled[bucket], chip, num_devices=num_devices
        )
        for bucket in weights
    }
    bounds = {"least_step_seconds": mean(least), "model_flops": mean(flops)}
    if not all(times.values()):
        return {"bounds": bounds}
    tokens = work.target_tokens or mean(
        lambda bucket: bucket.rows * bucket.target_length
    )
    run = estimates.run(
        mean(lambda bucket: times[bucket].seconds),  # type: ignore[union-attr]
        chip,
        num_chips=hardware.num_chips,
        update_flops=mean(flops),
        target_tokens=tokens,
        num_steps=work.settings.training.num_steps,
        dollars_per_hour=work.dollars_per_hour,
    )
    expected = {f"expected_{name}": value for name, value in vars(run).items()}
    return {"bounds": bounds, **expected}


def _notes(work: Workload, hardware: topology.Hardware) -> list[str]:
    """Return what the figures leave out."""
    result = [
        "memory leaves out the programs of the validation's loss, one for each of its "
        "shapes: they are not compiled"
    ]
    if work.target_tokens is None:
        result.append(
            "no data is prepared: one shape stands for all, and padding counts as "
            "target tokens"
        )
    if work.settings.optimizer.frozen:
        result.append(
            "parameters are frozen: of the model's operations, only those of the "
            "forward pass count"
        )
    if hardware.num_slices > 1:
        result.append(
            f"{hardware.num_slices} slices of {hardware.chip.largest_slice:,} chips: "
            "estimates leave out the slower network between them"
        )
    return result


def _recommendations(
    work: Workload, hardware: topology.Hardware, plan: microbatching.Plan
) -> list[str]:
    """Return settings that fit TPUs better; each makes another run."""
    data = work.settings.data
    if hardware.chip.platform != "tpu":
        return []
    result = []
    if (
        data.batching == "buckets"
        and data.bucket_lengths == "shared"
        and work.num_shapes > 1
    ):
        result.append(
            f"config.data.batching=packed has one shape to compile instead of "
            f"{work.num_shapes}"
        )
    bucket = work.commonest
    number = plan.num_microbatches
    longer = max(bucket.source_length, bucket.target_length)

    def tokens(rows: int) -> int:
        rows = programs.rows_of_a_device(rows, num_microbatches=number)
        return rows // number * longer

    unit = TILE * hardware.num_devices * number
    budget = min(data.source_tokens_per_batch, data.target_tokens_per_batch)
    rounded = budget // unit * unit
    rows = batching.rows_within(rounded, length=longer) if rounded else 0
    if rows and tokens(bucket.rows) % TILE and not tokens(rows) % TILE:
        result.append(
            "config.data.source_tokens_per_batch and target_tokens_per_batch of "
            f"{rounded} give each device {tokens(rows):,} tokens of length "
            f"{longer}, a multiple of {TILE}, instead of {tokens(bucket.rows):,}"
        )
    return result
