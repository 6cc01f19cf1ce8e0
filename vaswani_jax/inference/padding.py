"""Put sentences into batches of few shapes, since each shape is compiled."""

import collections
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Int

# A batch has one of these numbers of rows, or the most that its shape may have.
ROWS = (1, 16)


class Group(NamedTuple):
    """Sentences that make a batch.

    Attributes:
        indices: Which sentences they are.
        shape: The padded lengths of each of them.
        num_rows: The rows of the batch, at least as many as sentences.
    """

    indices: list[int]
    shape: tuple[int, ...]
    num_rows: int


def padded_length(num_tokens: int) -> int:
    """Return the next of 16, 32, 64, 96, 128, 192, 256, 384, ...

    Padding costs the encoder alone.

    >>> [padded_length(n) for n in (3, 17, 33, 65, 100, 129)]
    [16, 32, 64, 96, 128, 192]
    """
    length = 16
    while length < num_tokens:
        power = 1 << (length.bit_length() - 1)
        length += power if length < 64 else power // 2
    return length


def group_by_shape(
    shapes: Sequence[tuple[int, ...]], *, max_rows: Callable[[tuple[int, ...]], int]
) -> Iterator[Group]:
    """Yield batches of sentences that are padded alike.

    The longest come first, so that a batch that is too large fails at once.

    Args:
        shapes: The padded lengths of each sentence.
        max_rows: The most rows of a batch of a shape.
    """
    by_shape: dict[tuple[int, ...], list[int]] = collections.defaultdict(list)
    for index, shape in enumerate(shapes):
        by_shape[shape].append(index)
    for shape in sorted(by_shape, reverse=True):
        indices, most = by_shape[shape], max(1, max_rows(shape))
        for start in range(0, len(indices), most):
            chunk = indices[start : start + most]
            fitting = (rows for rows in ROWS if len(chunk) <= rows < most)
            yield Group(chunk, shape, next(fitting, most))


def pad(
    sentences: Sequence[Sequence[int]], *, rows: int, length: int
) -> Int[np.ndarray, "{rows} {length}"]:
    """Return ids as an array, with `PAD_ID` where there are none."""
    array = np.zeros((rows, length), np.int32)
    for row, ids in zip(array, sentences, strict=False):
        row[: len(ids)] = ids
    return array
