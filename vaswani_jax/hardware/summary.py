"""Say a verdict in words: facts first, then estimates."""

from collections.abc import Collection
from typing import Any


def describe(verdict: dict[str, Any]) -> str:
    """Return a verdict as lines that name the compiler's fields or the rule.

    Args:
        verdict: What `verdict.judge` returns, with "launch".
    """
    blocks = [
        f"{verdict['hardware']}: {verdict['num_devices']} x {verdict['device_kind']}, "
        "compiled, not run",
        _table("fits", _memory(verdict).items()),
    ]
    if verdict["steps"] or verdict["search"]:
        blocks.append(_table("facts of the compiler, of one device", _facts(verdict)))
    if "expected_mfu" in verdict:
        blocks.append(_table("estimates, not measured", _estimates(verdict).items()))
    elif "bounds" in verdict:
        seconds = verdict["bounds"]["least_step_seconds"]
        figures = [
            ("step", f"at least {_time(seconds)} (products at the peak, or memory)")
        ]
        blocks.append(_table("bound; no estimate without cycles or a clock", figures))
    notes = [f"note: {text}" for text in verdict["notes"]]
    notes += [f"consider: {text}" for text in verdict["recommendations"]]
    blocks.append("\n".join([*notes, f"launch: {verdict['launch']}"]))
    return "\n\n".join(blocks)


def _memory(verdict: dict[str, Any]) -> dict[str, str]:
    memory = verdict["memory"]
    available, free = memory["available_bytes"], memory["free_bytes"]
    if verdict["fits"]:
        answer = f"yes, {_bytes(free)} of {_bytes(available)} left"
    else:
        answer = f"no, {_bytes(-free)} too little" if free < 0 else "no"
    figures = {
        "fits": answer,
        "because": verdict["reason"],
        "to fit": verdict["how_to_fit"],
        "parts": f"{verdict['num_microbatches']} of a batch (accumulate_steps)",
        "state": f"{_bytes(memory['state_bytes'])}, parameters and moments",
        "step": f"{_bytes(memory['step_bytes'])} (argument + output - alias + temp "
        "- state)",
        "step programs": _code(memory["step_programs_bytes"])
        + f" (generated_code x {verdict['num_shapes']} shapes)",
        "search": f"{_bytes(memory['search_bytes'])}, instead of the step's",
        "its programs": _code(memory["search_programs_bytes"])
        + f" (generated_code x {verdict['num_search_shapes']} shapes)",
    }
    return {name: text for name, text in figures.items() if text}


def _facts(verdict: dict[str, Any]) -> list[tuple[str, str]]:
    figures = []
    for step in verdict["steps"]:
        figures += [
            (f"step {_shape(step)}", _program(step)),
            ("  communication", _communication(step)),
            ("  relayouts", _relayouts(step)),
        ]
    if search := verdict["search"]:
        figures += [
            (f"search {search['rows']} x {search['length']}", _program(search)),
            ("  relayouts", _relayouts(search)),
        ]
        for number, loop in enumerate(search["loops"], start=1):
            seconds = loop["expected_seconds"]
            expected = f", expected {_time(seconds)}" if seconds else ""
            figures.append(
                (f"  turn of loop {number}", f"{loop['kernels']:,} kernels{expected}")
            )
    return figures


def _shape(step: dict[str, Any]) -> str:
    lengths = dict.fromkeys((step["length"], step["target_length"]))
    return " x ".join(map(str, (step["rows"], *lengths)))


def _program(program: dict[str, Any]) -> str:
    parts = [f"{program['kernels']:,} kernels"]
    if program["flops"]:
        parts.append(f"{program['flops'] / 1e9:,.1f} G flops")
    if program["estimated_cycles"]:
        parts.append(f"{program['estimated_cycles']:,} estimated_cycles")
    parts.append(f"compiled in {program['compile_seconds']:.0f} s")
    return ", ".join(parts)


def _communication(step: dict[str, Any]) -> str:
    communication = step["communication"]
    kinds = ", ".join(
        f"{count} {kind}" for kind, count in communication["kinds"].items() if count
    )
    overlap = "overlapped with nothing"
    if communication["overlapped"]:
        overlap = (
            f"{communication['overlapped']} of them overlapped with "
            f"{communication['hidden_kernels']:,} kernels, "
            f"{communication['hidden_cycles']:,} estimated_cycles"
        )
    if not kinds:
        return "none"
    size = _bytes(communication["bytes"])
    return f"{kinds} (latency is left out), {size}, {overlap}"


def _relayouts(program: dict[str, Any]) -> str:
    relayouts = program["relayouts"]
    return (
        f"{relayouts['count']} copies of activations or gradients, "
        f"{_bytes(relayouts['bytes'])}"
    )


def _estimates(verdict: dict[str, Any]) -> dict[str, str]:
    hours = verdict["expected_hours"]
    tokens = verdict["expected_target_tokens_per_second"]
    figures = {
        "step": f"{_time(verdict['expected_step_seconds'])} (cycles / clock, and what "
        "communication is not hidden)",
        "target tokens": f"{tokens:,.0f} a second",
        "MFU": f"{verdict['expected_mfu']:.1%}",
        "all steps": f"{hours:.2f} hours, {verdict['expected_device_hours']:.1f} "
        "device-hours",
    }
    if verdict["expected_dollars"] is not None:
        figures["cost"] = f"{verdict['expected_dollars']:,.2f} dollars"
    return figures


def _table(head: str, figures: Collection[tuple[str, str]]) -> str:
    width = max(len(name) for name, _ in figures)
    return "\n".join([head, *(f"  {k:<{width}}  {v}" for k, v in figures)])


def _bytes(size: int) -> str:
    unit, divisor = ("GB", 1e9) if abs(size) >= 1e8 else ("MB", 1e6)
    return f"{size / divisor:,.2f} {unit}"


def _code(size: int) -> str:
    return _bytes(size) if size else "not told"


def _time(seconds: float) -> str:
    return f"{seconds * 1e3:,.2f} ms"
