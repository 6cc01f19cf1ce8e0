"""Say where each number of a verdict comes from: a field of the compiler, or a rule."""

import re
from collections.abc import Iterator
from typing import Any

from vaswani_jax.hardware import chips

WORK = {
    "instructions": "as_text(): instructions of the schedule",
    "kernels": "as_text(): instructions that compute more than a number",
    "estimated_cycles": "as_text(): the sum of estimated_cycles",
    "bytes_without_cycles": "as_text(): what kernels without estimated_cycles write",
}
SECONDS = (
    "estimate: estimated_cycles / clock (CLOCK) + 2 x bytes_without_cycles / bytes/s "
    "of memory (CHIP)"
)
COMPILED = {
    "compile_seconds": "a clock around compile(), on this machine at its load",
    "memory.argument_size_in_bytes": "memory_analysis().argument_size_in_bytes",
    "memory.output_size_in_bytes": "memory_analysis().output_size_in_bytes",
    "memory.alias_size_in_bytes": (
        "memory_analysis().alias_size_in_bytes: results in the place of arguments"
    ),
    "memory.temp_size_in_bytes": "memory_analysis().temp_size_in_bytes",
    "memory.generated_code_size_in_bytes": (
        "memory_analysis().generated_code_size_in_bytes: the program itself"
    ),
    "flops": "cost_analysis()['flops'], of one device",
    **WORK,
    "relayouts.count": "as_text(): copies of activations and gradients",
    "relayouts.bytes": "as_text(): copies of activations and gradients",
    "rows": "rows of one device, with those that devices and parts add",
    "length": "source tokens of a row",
}
COMMUNICATION = "as_text(): all-reduce, reduce-scatter, all-gather"
STEP = {
    **COMPILED,
    "target_length": "target tokens of a row",
    "batches_per_epoch": "the plan of the prepared data",
    "communication.count": COMMUNICATION,
    "communication.bytes": f"{COMMUNICATION}; bytes of their results on one device",
    "communication.asynchronous": f"{COMMUNICATION}; those of a start and a done",
    "communication.overlapped": (
        f"{COMMUNICATION}; those with work scheduled between start and done"
    ),
    "communication.hidden_cycles": (
        "as_text(): estimated_cycles scheduled between start and done"
    ),
    "communication.hidden_kernels": (
        "as_text(): kernels scheduled between start and done"
    ),
    "communication.kinds.all-reduce": COMMUNICATION,
    "communication.kinds.reduce-scatter": COMMUNICATION,
    "communication.kinds.all-gather": COMMUNICATION,
    "expected.computing_seconds": SECONDS,
    "expected.communication_seconds": (
        "estimate: bytes that a ring sends / links / bytes/s of a link (LINK); links "
        "by as_text(), two for what products carry, of which it does not tell them; "
        "latency is left out"
    ),
    "expected.exposed_communication_seconds": (
        "estimate: communication_seconds less the estimated cycles between each start "
        "and its done"
    ),
    "expected.step_seconds": "estimate: computing and exposed communication",
}
SEARCH = {
    **COMPILED,
    **{f"loops[].{name}": f"{text}, of one turn" for name, text in WORK.items()},
    "loops[].expected_seconds": f"{SECONDS}, of one turn",
}
ORIGINS = {
    "num_chips": "--hardware",
    "num_devices": "--hardware: chips x JAX devices of a chip",
    "num_microbatches": "config.training.accumulate_steps",
    "num_shapes": "the plan of the prepared data, else config.data.num_buckets",
    "num_search_shapes": (
        "padded lengths up to config.data.max_length x 2: a full batch, and the rest"
    ),
    "memory.available_bytes": "CHIP",
    "memory.needed_bytes": "state + the larger of step and search + programs",
    "memory.free_bytes": "available - needed",
    "memory.state_bytes": "shapes of parameters and moments",
    "memory.step_bytes": (
        "memory_analysis(): argument + output - alias + temp - state, the most of the "
        "compiled shapes; or the size in the compiler's refusal"
    ),
    "memory.step_programs_bytes": (
        "memory_analysis().generated_code_size_in_bytes x num_shapes"
    ),
    "memory.search_bytes": (
        "memory_analysis(): argument + output - alias + temp - parameters; or the size "
        "in the compiler's refusal"
    ),
    "memory.search_programs_bytes": (
        "memory_analysis().generated_code_size_in_bytes x num_search_shapes"
    ),
    "bounds.least_step_seconds": (
        "bound: the larger of model_flops / peak and (argument + output bytes) / "
        "bytes/s of memory (CHIP)"
    ),
    "bounds.model_flops": "table 2's operations of an update (model/cost.py)",
    "expected_step_seconds": "estimate: steps[].expected.step_seconds",
    "expected_target_tokens_per_second": (
        "estimate: target tokens of a batch / expected_step_seconds; without prepared "
        "data padding counts"
    ),
    "expected_mfu": "estimate: model_flops / peak (CHIP) / expected_step_seconds",
    "expected_hours": "estimate: expected_step_seconds x config.training.num_steps",
    "expected_device_hours": "estimate: expected_hours x num_chips",
    "expected_dollars": "estimate: expected_device_hours x --dollars_per_hour",
    **{f"steps[].{name}": text for name, text in STEP.items()},
    **{f"search.{name}": text for name, text in SEARCH.items()},
}


def find_origins(verdict: dict[str, Any], chip: chips.Chip) -> dict[str, str]:
    """Return the origin of each number of a verdict by its path, as steps[].flops.

    Raises:
        KeyError: A number has none.
    """
    paths = dict.fromkeys(number_paths(verdict))
    sheet = {"CHIP": chip.origin, "CLOCK": chip.clock_origin, "LINK": chip.link_origin}
    result = {
        path: re.sub("CHIP|CLOCK|LINK", lambda name: sheet[name[0]], ORIGINS[path])
        for path in paths
    }
    if chip.platform == "gpu":
        result["memory.available_bytes"] += "; JAX takes 75 % of a GPU's memory"
    return result


def number_paths(value: Any, path: str = "") -> Iterator[str]:
    """Yield the path of each number in nested values; of a list's items, as one."""
    if isinstance(value, dict):
        for name, item in value.items():
            yield from number_paths(item, f"{path}.{name}" if path else name)
    elif isinstance(value, list):
        for item in value:
            yield from number_paths(item, f"{path}[]")
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield path
