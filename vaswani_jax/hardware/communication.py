"""Find the communication of a compiled program, and what is computed meanwhile."""

import dataclasses
from collections.abc import Collection

from vaswani_jax.hardware import hlo

# Where a TPU's products begin and cease to carry communication on. It does not say how
# many links that uses: those of a ring in both directions are assumed.
CARRIED = ("AsyncCollectiveStart", "AsyncCollectiveDone")
LINKS_OF_CARRIED = 2


@dataclasses.dataclass(frozen=True)
class Collective:
    """Communication between all devices.

    Attributes:
        kind: One of `hlo.COLLECTIVES`.
        num_bytes: Of its results on one device.
        num_links: How many links of a TPU it uses in parallel.
        is_asynchronous: Whether its start and its end are instructions of their own.
        start_cycles: Estimated cycles of all that is scheduled before its start.
        end_cycles: Estimated cycles of all that is scheduled before its end.
        hidden_kernels: How many kernels are scheduled between its start and its end.
    """

    kind: str
    num_bytes: int
    num_links: int
    is_asynchronous: bool
    start_cycles: int
    end_cycles: int
    hidden_kernels: int

    @property
    def hidden_cycles(self) -> int:
        """Estimated cycles of the computation between its start and its end."""
        return self.end_cycles - self.start_cycles

    @property
    def is_overlapped(self) -> bool:
        """True if anything is computed between its start and its end."""
        return self.hidden_cycles > 0 or self.hidden_kernels > 0


def find_collectives(module: hlo.Module) -> list[Collective]:
    """Return the communication of a program, in the order in which it ends.

    Raises:
        ValueError: An end waits for nothing that has started.
    """
    result: list[Collective] = []
    starts: dict[str, tuple[Collective, int]] = {}
    sources: dict[str, list[str]] = {}
    cycles = kernels = 0
    for instruction, times in module.scheduled():
        sources[instruction.name] = instruction.operands
        kind, phase = kind_and_phase(module, instruction)
        collective = Collective(
            kind=kind,
            num_bytes=hlo.num_bytes(instruction.shape),
            num_links=_num_links(module, instruction),
            is_asynchronous=phase != "whole",
            start_cycles=cycles,
            end_cycles=cycles,
            hidden_kernels=0,
        )
        cycles += instruction.computing_cycles * times
        kernels += instruction.is_kernel and not phase
        if phase == "whole":
            result.append(collective)
        elif phase == "start":
            starts[instruction.name] = collective, kernels
        elif phase == "end":
            name = _start_of(instruction, started=starts, sources=sources)
            start, kernels_before = starts.pop(name)
            result.append(
                dataclasses.replace(
                    start,
                    num_bytes=collective.num_bytes,
                    num_links=max(start.num_links, collective.num_links),
                    end_cycles=collective.end_cycles,
                    hidden_kernels=kernels - kernels_before,
                )
            )
    return result


def kind_and_phase(module: hlo.Module, instruction: hlo.Instruction) -> tuple[str, str]:
    """Return the kind of communication, and "whole", "start", "end" or ""."""
    opcodes = {instruction.opcode}
    inside = module.inside(instruction)
    if instruction.opcode in ("fusion", "async-start"):
        opcodes |= {inner.opcode for inner in inside}
    if instruction.opcode in ("async-update", "async-done"):
        is_end = instruction.opcode == "async-done"
        return "", "end" if is_end and _ends_collective(module, instruction) else ""
    for kind in hlo.COLLECTIVES:
        phases = {f"{kind}-start", f"{kind}-done", kind} & opcodes
        if not phases:
            continue
        phase = "whole" if kind in phases else ""  # "": continues what is started
        if instruction.called.startswith("async_collective_fusion"):
            phase = ""
        elif _calls(inside, CARRIED[0]):
            phase = "start"
        elif _calls(inside, CARRIED[1]):
            phase = "end"
        elif phases == {f"{kind}-start"} or instruction.opcode == "async-start":
            phase = "start"
        elif phases == {f"{kind}-done"}:
            phase = "end"
        is_scatter = kind == "all-reduce" and "scatter" in instruction.called
        return "reduce-scatter" if is_scatter else kind, phase
    return "", ""


def _calls(instructions: list[hlo.Instruction], *targets: str) -> bool:
    """Return whether a custom call of such a name is among the instructions."""
    return any(
        f'custom_call_target="{target}"' in instruction.details
        for instruction in instructions
        for target in targets
    )


def _ends_collective(module: hlo.Module, instruction: hlo.Instruction) -> bool:
    starts = {
        start.name: start
        for computation in module.computations.values()
        for start in computation
        if start.opcode in ("async-start", "async-update")
    }
    name = next(iter(instruction.operands), "")
    while name in starts and starts[name].opcode == "async-update":
        name = next(iter(starts[name].operands), "")
    return name in starts and bool(kind_and_phase(module, starts[name])[0])


def _start_of(
    instruction: hlo.Instruction,
    *,
    started: Collection[str],
    sources: dict[str, list[str]],
) -> str:
    """Return the name of the start that an end waits for."""
    names, visited = list(instruction.operands), set()
    while names:
        name = names.pop(0)
        if name in started:
            return name
        if name not in visited:
            visited.add(name)
            names += sources.get(name, [])
    raise ValueError(
        f"{instruction.name} ends communication that has not started: the text of "
        "compiled programs has changed"
    )


def _num_links(module: hlo.Module, instruction: hlo.Instruction) -> int:
    inside = module.inside(instruction)
    num_links = max([instruction.num_links, *(inner.num_links for inner in inside)])
    is_carried = _calls(inside, *CARRIED)
    return num_links or (LINKS_OF_CARRIED if is_carried else 1)
