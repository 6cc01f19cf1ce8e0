"""Blocks of consecutive pairs, spread evenly over a text of any length."""

import dataclasses
from collections.abc import Sequence
from typing import TypeVar

Pair = tuple[str, str]
Item = TypeVar("Item")
# A text of at most MAX_BLOCKS is looked at as a whole.
BLOCK_PAIRS = 50
MAX_BLOCKS = 4000


@dataclasses.dataclass(frozen=True)
class Block:
    """Consecutive pairs, or some of them.

    Attributes:
        number: The number of the block in its text, from 0.
        lines: The pairs, each with the number of its line.
    """

    number: int
    lines: Sequence[tuple[int, Pair]]

    @property
    def last_line(self) -> int:
        """The number of its last line."""
        return self.lines[-1][0]


class Sample:
    """Keeps every n-th block of a text; n doubles when there are too many."""

    def __init__(self, *, max_blocks: int = MAX_BLOCKS) -> None:
        """Start with no pair."""
        self._max_blocks = max_blocks
        self._stride = 1
        self._num_blocks = self._num_lines = 0
        self._blocks: list[Block] = []
        self._open: list[tuple[int, Pair]] = []

    def add(self, pair: Pair) -> None:
        """Take the next pair of the text."""
        self._num_lines += 1
        self._open.append((self._num_lines, pair))
        if len(self._open) == BLOCK_PAIRS:
            self._close()

    def blocks(self) -> list[Block]:
        """Return the kept blocks, in order; call it when all pairs were added."""
        if self._open:
            self._close()
        return list(self._blocks)

    def _close(self) -> None:
        if self._num_blocks % self._stride == 0:
            self._blocks.append(Block(self._num_blocks, self._open))
        self._num_blocks += 1
        self._open = []
        if len(self._blocks) > self._max_blocks:
            self._stride *= 2
            self._blocks = [b for b in self._blocks if b.number % self._stride == 0]


def pairs_of(blocks: Sequence[Block]) -> list[Pair]:
    """Return the pairs of blocks, one after the other."""
    return [pair for _, pair in numbered(blocks)]


def numbered(blocks: Sequence[Block]) -> list[tuple[int, Pair]]:
    """Return the pairs of blocks, each with the number of its line."""
    return [line for block in blocks for line in block.lines]


def spread(items: Sequence[Item], size: int) -> list[Item]:
    """Return at most `size` items, spread evenly over all.

    >>> spread(["a", "b", "c", "d"], 2)
    ['a', 'c']
    """
    if len(items) <= size:
        return list(items)
    return [items[number * len(items) // size] for number in range(size)]
