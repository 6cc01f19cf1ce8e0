"""Read the text of a compiled program: its instructions, and what they tell."""

import dataclasses
import functools
import math
import re
from collections.abc import Iterator

SHAPE = re.compile(r"\b(pred|token|[a-z]+\d+\w*)\[([\d,]*)\](?:\{([^}]*)\})?")
INSTRUCTION = re.compile(r"^\s+(ROOT )?%?([\w.\-]+) = (.*?) ([a-z][\w\-]*)\((.*)$")
COMPUTATION = re.compile(r"^(ENTRY )?%?([\w.\-]+) .*\{\s*$")
BITS = {"pred": 8, "token": 0, "s4": 4, "u4": 4}
# The opcodes of communication.
COLLECTIVES = ("all-reduce", "reduce-scatter", "all-gather")
# Instructions that compute nothing: names of values, and what waits for a copy.
NO_WORK = {
    *("after-all", "bitcast", "conditional", "constant", "domain", "get-tuple-element"),
    *("opt-barrier", "parameter", "partition-id", "replica-id", "tuple", "while"),
    *("async-start", "async-update", "async-done", "call"),
    *("copy-start", "copy-done", "slice-start", "slice-done"),
}
# A result of so many bytes is a number or two: no kernel worth counting.
SCALAR_BYTES = 16


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
    """One instruction: `NAME = SHAPE OPCODE(DETAILS`."""

    name: str
    shape: str
    opcode: str
    details: str

    @property
    def operands(self) -> list[str]:
        """The names of its operands."""
        depth = end = 0
        while depth >= 0 and end < len(self.details):
            depth += (self.details[end] == "(") - (self.details[end] == ")")
            end += 1
        return re.findall(r"%([\w.\-]+)", self.details[:end])

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
    def computing_cycles(self) -> int:
        """The estimate of a computation; communication has a time of its own."""
        is_alone = self.opcode.removesuffix("-start") in COLLECTIVES
        return 0 if is_alone else self.estimated_cycles

    @property
    def is_kernel(self) -> bool:
        """True if it computes more than a number, or has an estimate."""
        is_view = 'custom_call_target="ConcatBitcast"' in self.details
        if self.opcode in NO_WORK or is_view:
            return False
        return num_bytes(self.shape) > SCALAR_BYTES or self.estimated_cycles > 0

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
        match = re.search(pattern, self.details)
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
