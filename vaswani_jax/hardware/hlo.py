"""Read the text of a compiled program: its instructions, and what they tell."""

import dataclasses
import functools
import math
import re
from collections.abc import Collection, Iterator

SHAPE = re.compile(r"\b(pred|token|[a-z]+\d+\w*)\[([\d,]*)\](?:\{([^}]*)\})?")
INSTRUCTION = re.compile(r"^\s+(ROOT )?%?([\w.\-]+) = (.*?) ([a-z][\w\-]*)\((.*)$")
COMPUTATION = re.compile(r"^(ENTRY )?%?([\w.\-]+) .*\{\s*$")
BITS = {"pred": 8, "token": 0, "s4": 4, "u4": 4}
COLLECTIVES = ("all-reduce", "reduce-scatter", "all-gather")
# Where a TPU's products begin and cease to carry communication on. It does not say how
# many links that uses: those of a ring in both directions are assumed.
CARRIED = ("AsyncCollectiveStart", "AsyncCollectiveDone")
LINKS_OF_CARRIED = 2
# Instructions that compute nothing: names of values, and what waits for a copy.
NO_WORK = {
    *("after-all", "bitcast", "conditional", "constant", "domain", "get-tuple-element"),
    *("opt-barrier", "parameter", "partition-id", "replica-id", "tuple", "while"),
    *("async-start", "async-update", "async-done", "call"),
    *("copy-start", "copy-done", "slice-start", "slice-done"),
}
# What a computation may hold that only moves numbers.
MOVES = {"parameter", "copy", "transpose", "bitcast", "reshape", "tuple"}
# A result of so many bytes is a number or two: no kernel worth counting.
SCALAR_BYTES = 16
FLOATS = ("f32", "bf16", "f16")


@dataclasses.dataclass(frozen=True)
class Array:
    """The shape of one array.

    Attributes:
        dtype: Its type, as bf16.
        sizes: Of each axis.
        layout: Order of the axes and tiles in memory, wherever that memory is.
    """

    dtype: str
    sizes: tuple[int, ...]
    layout: str

    @property
    def num_bytes(self) -> int:
        """Bytes of its elements, without those that tiles add."""
        bits = BITS.get(self.dtype)
        if bits is None:
            bits = int(re.findall(r"\d+", self.dtype)[0])
        return math.prod(self.sizes) * bits // 8


def arrays(text: str) -> list[Array]:
    """Return the arrays of a shape, of one or of a tuple.

    >>> [array.num_bytes for array in arrays("(f32[2,3]{1,0:T(8,128)}, bf16[])")]
    [24, 2]
    """
    return [
        Array(
            dtype,
            tuple(int(size) for size in sizes.split(",") if size),
            re.sub(r"S\(\d+\)", "", layout or ""),
        )
        for dtype, sizes, layout in SHAPE.findall(text)
    ]


def num_bytes(text: str) -> int:
    """Return the bytes of all arrays of a shape."""
    return sum(array.num_bytes for array in arrays(text))


@dataclasses.dataclass(frozen=True)
class Instruction:
    """One instruction: `NAME = SHAPE OPCODE(REST`."""

    name: str
    shape: str
    opcode: str
    rest: str

    @property
    def operands(self) -> list[str]:
        """The names of its operands."""
        depth = end = 0
        while depth >= 0 and end < len(self.rest):
            depth += (self.rest[end] == "(") - (self.rest[end] == ")")
            end += 1
        return re.findall(r"%([\w.\-]+)", self.rest[:end])

    @property
    def op_name(self) -> str:
        """The path of the operation in the program that was compiled."""
        return self._attribute(r'op_name="([^"]*)"')

    @property
    def called(self) -> str:
        """The computation that it calls, or the body of a loop; "" for none."""
        name = "to_apply" if self.opcode == "call" else "calls|body"
        return self._attribute(rf"(?:{name})=%?([\w.\-]+)")

    @property
    def estimated_cycles(self) -> int:
        """The cycles that the compiler expects; 0 where it says nothing."""
        return int(self._attribute(r'"estimated_cycles":"(\d+)"') or 0)

    @property
    def trip_count(self) -> int | None:
        """The turns of a loop; None if the compiler does not know."""
        count = self._attribute(r'"known_trip_count":\{"n":"(\d+)"')
        return int(count) if count else None

    @property
    def num_links(self) -> int:
        """The links that a TPU's collective uses in parallel; 0 if it does not say."""
        return int(self._attribute(r"colors:(\d+)") or 0)

    def _attribute(self, pattern: str) -> str:
        match = re.search(pattern, self.rest)
        return match[1] if match else ""


@dataclasses.dataclass(frozen=True)
class Module:
    """A compiled program: its computations by name, each in the order of its schedule.

    Attributes:
        computations: Instructions by the name of their computation.
        entry: The name of the computation that runs.
    """

    computations: dict[str, list[Instruction]]
    entry: str

    @functools.cached_property
    def shapes(self) -> dict[str, str]:
        """The shape of each instruction by its name."""
        return {
            instruction.name: instruction.shape
            for computation in self.computations.values()
            for instruction in computation
        }

    def inside(self, instruction: Instruction) -> list[Instruction]:
        """Return the instructions of what an instruction calls."""
        return self.computations.get(instruction.called, [])

    def scheduled(self, name: str = "") -> Iterator[tuple[Instruction, int]]:
        """Yield what runs, in order, and how often: the entry, and bodies of loops.

        Args:
            name: Another computation than the entry to begin with.
        """
        yield from self._scheduled(name or self.entry, 1)

    def _scheduled(self, name: str, times: int) -> Iterator[tuple[Instruction, int]]:
        for instruction in self.computations[name]:
            yield instruction, times
            if instruction.opcode in ("while", "call"):
                trips = times * (instruction.trip_count or 1)
                yield from self._scheduled(instruction.called, trips)

    def endless_loops(self) -> Iterator[Instruction]:
        """Yield the loops of which the compiler does not know how often they run."""
        for instruction, _ in self.scheduled():
            if instruction.opcode == "while" and instruction.trip_count is None:
                yield instruction


def parse(text: str) -> Module:
    """Return the computations of a compiled program's text.

    Raises:
        ValueError: It is no such text.
    """
    computations: dict[str, list[Instruction]] = {}
    entry, current = "", None
    for line in text.splitlines():
        if not line[:1].isspace():
            head = COMPUTATION.match(line)
            current = None
            if head and not line.startswith("HloModule"):
                current = computations.setdefault(head[2], [])
                entry = head[2] if head[1] else entry
        elif current is not None and (match := INSTRUCTION.match(line)):
            current.append(Instruction(*match.groups()[1:]))
    if not entry:
        raise ValueError("the compiled program has no ENTRY: its text has changed")
    return Module(computations, entry)


@dataclasses.dataclass(frozen=True)
class Collective:
    """Communication between all devices.

    Attributes:
        kind: One of COLLECTIVES.
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


def collectives(module: Module) -> list[Collective]:
    """Return the communication of a program, in the order in which it ends.

    Raises:
        ValueError: An end waits for nothing that has started.
    """
    result: list[Collective] = []
    started: dict[str, tuple[Collective, int]] = {}
    sources: dict[str, list[str]] = {}
    cycles = kernels = 0
    for instruction, times in module.scheduled():
        sources[instruction.name] = instruction.operands
        kind, phase = _collective(module, instruction)
        collective = Collective(
            kind=kind,
            num_bytes=num_bytes(instruction.shape),
            num_links=_num_links(module, instruction),
            is_asynchronous=phase != "whole",
            start_cycles=cycles,
            end_cycles=cycles,
            hidden_kernels=0,
        )
        cycles += _computing_cycles(instruction) * times
        kernels += _is_kernel(instruction) and not phase
        if phase == "whole":
            result.append(collective)
        elif phase == "start":
            started[instruction.name] = collective, kernels
        elif phase == "end":
            name = _start_of(instruction, started=started, sources=sources)
            start, kernels_before = started.pop(name)
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


def _collective(module: Module, instruction: Instruction) -> tuple[str, str]:
    """Return the kind of communication, and "whole", "start", "end" or ""."""
    opcodes = {instruction.opcode}
    inside = module.inside(instruction)
    if instruction.opcode in ("fusion", "async-start"):
        opcodes |= {inner.opcode for inner in inside}
    if instruction.opcode in ("async-update", "async-done"):
        is_end = instruction.opcode == "async-done"
        return "", "end" if is_end and _ends_collective(module, instruction) else ""
    for kind in COLLECTIVES:
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


def _calls(instructions: list[Instruction], *targets: str) -> bool:
    """Return whether a custom call of such a name is among the instructions."""
    return any(
        f'custom_call_target="{target}"' in each.rest
        for each in instructions
        for target in targets
    )


def _ends_collective(module: Module, instruction: Instruction) -> bool:
    starts = {
        start.name: start
        for computation in module.computations.values()
        for start in computation
        if start.opcode in ("async-start", "async-update")
    }
    name = next(iter(instruction.operands), "")
    while name in starts and starts[name].opcode == "async-update":
        name = next(iter(starts[name].operands), "")
    return name in starts and bool(_collective(module, starts[name])[0])


def _start_of(
    instruction: Instruction,
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


def _num_links(module: Module, instruction: Instruction) -> int:
    inside = module.inside(instruction)
    num_links = max([instruction.num_links, *(inner.num_links for inner in inside)])
    is_carried = _calls(inside, *CARRIED)
    return num_links or (LINKS_OF_CARRIED if is_carried else 1)


@dataclasses.dataclass(frozen=True)
class Work:
    """The work of a program, or of one turn of a loop in it.

    Attributes:
        num_instructions: Instructions of the schedule; a loop's count once.
        num_kernels: Those that compute more than a number or have an estimate, as
            often as they run.
        estimated_cycles: The sum of the compiler's estimates.
        bytes_without_cycles: Of what kernels that have no estimate write: their
            results, of an array that is updated in its place the slice alone.
    """

    num_instructions: int
    num_kernels: int
    estimated_cycles: int
    bytes_without_cycles: int


def work(module: Module, name: str = "") -> Work:
    """Return the work of a computation, by default that of the whole program."""
    num_instructions = num_kernels = cycles = without = 0
    for instruction, times in module.scheduled(name):
        num_instructions += 1
        if _is_kernel(instruction):
            num_kernels += times
            cycles += times * _computing_cycles(instruction)
            is_silent = not instruction.estimated_cycles
            if is_silent and not _collective(module, instruction)[0]:
                without += times * _written_bytes(module, instruction)
    return Work(num_instructions, num_kernels, cycles, without)


def _computing_cycles(instruction: Instruction) -> int:
    """Return the estimate of a computation; communication has a time of its own."""
    is_alone = instruction.opcode.removesuffix("-start") in COLLECTIVES
    return 0 if is_alone else instruction.estimated_cycles


def _written_bytes(module: Module, instruction: Instruction) -> int:
    if instruction.opcode == "dynamic-update-slice":
        # Where the array must stay as it was, a copy of it is an instruction before.
        return num_bytes(module.shapes[instruction.operands[1]])
    return num_bytes(instruction.shape)


def _is_kernel(instruction: Instruction) -> bool:
    """Return True for what computes more than a number, or has an estimate."""
    is_view = 'custom_call_target="ConcatBitcast"' in instruction.rest
    if instruction.opcode in NO_WORK or is_view:
        return False
    is_array = num_bytes(instruction.shape) > SCALAR_BYTES
    return is_array or instruction.estimated_cycles > 0


@dataclasses.dataclass(frozen=True)
class Relayout:
    """A copy of an array into another order of axes or other tiles."""

    name: str
    num_bytes: int
    op_name: str


def relayouts(
    module: Module, *, sizes: Collection[int], elements: Collection[int] = ()
) -> list[Relayout]:
    """Return copies of activations and gradients into another layout.

    Args:
        module: The program.
        sizes: An activation has an axis of one of these: the rows of a device, or its
            tokens.
        elements: A gradient has one of these numbers of elements: those of parameters.
    """
    result = []
    for instruction, _ in module.scheduled():
        if not _only_moves(module, instruction):
            continue
        for array in arrays(instruction.shape):
            is_activation = not set(sizes).isdisjoint(array.sizes)
            is_gradient = math.prod(array.sizes) in elements
            if array.dtype in FLOATS and (is_activation or is_gradient):
                result.append(
                    Relayout(instruction.name, array.num_bytes, instruction.op_name)
                )
    return result


def _only_moves(module: Module, instruction: Instruction) -> bool:
    if instruction.opcode == "transpose":
        return True
    if instruction.opcode == "copy":
        source = module.shapes.get(instruction.operands[0], "")
        layouts = [array.layout for array in arrays(instruction.shape)]
        return [array.layout for array in arrays(source)] != layouts
    opcodes = {inner.opcode for inner in module.inside(instruction)}
    return (
        instruction.opcode == "fusion"
        and opcodes <= MOVES
        and not opcodes.isdisjoint({"copy", "transpose"})
    )
