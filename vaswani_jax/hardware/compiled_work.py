"""Count what a compiled program computes, writes and copies into other layouts."""

import dataclasses
import math
from collections.abc import Collection

from vaswani_jax.hardware import communication, hlo

# What a computation may hold that only moves numbers.
MOVES = {"parameter", "copy", "transpose", "bitcast", "reshape", "tuple"}
FLOATS = ("f32", "bf16", "f16")


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


def count_work(module: hlo.Module, name: str = "") -> Work:
    """Return the work of a computation, by default that of the whole program."""
    num_instructions = num_kernels = cycles = without = 0
    for instruction, times in module.scheduled(name):
        num_instructions += 1
        if instruction.is_kernel:
            num_kernels += times
            cycles += times * instruction.computing_cycles
            is_silent = not instruction.estimated_cycles
            if is_silent and not communication.kind_and_phase(module, instruction)[0]:
                without += times * _written_bytes(module, instruction)
    return Work(num_instructions, num_kernels, cycles, without)


def _written_bytes(module: hlo.Module, instruction: hlo.Instruction) -> int:
    if instruction.opcode == "dynamic-update-slice":
        # Where the array must stay as it was, a copy of it is an instruction before.
        return hlo.num_bytes(module.shapes[instruction.operands[1]])
    return hlo.num_bytes(instruction.shape)


@dataclasses.dataclass(frozen=True)
class Relayout:
    """A copy of an array into another order of axes or other tiles."""

    name: str
    num_bytes: int


def find_relayouts(
    module: hlo.Module, *, sizes: Collection[int], elements: Collection[int] = ()
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
        for array in hlo.arrays(instruction.shape):
            is_activation = not set(sizes).isdisjoint(array.sizes)
            is_gradient = math.prod(array.sizes) in elements
            if array.dtype in FLOATS and (is_activation or is_gradient):
                result.append(Relayout(instruction.name, array.num_bytes))
    return result


def _only_moves(module: hlo.Module, instruction: hlo.Instruction) -> bool:
    if instruction.opcode == "transpose":
        return True
    if instruction.opcode == "copy":
        source = module.shapes.get(instruction.operands[0], "")
        layouts = [array.layout for array in hlo.arrays(instruction.shape)]
        return [array.layout for array in hlo.arrays(source)] != layouts
    opcodes = {inner.opcode for inner in module.inside(instruction)}
    return (
        instruction.opcode == "fusion"
        and opcodes <= MOVES
        and not opcodes.isdisjoint({"copy", "transpose"})
    )
