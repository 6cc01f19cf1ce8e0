"""Section 6.1's sentences in batches of few shapes, since each shape is compiled."""

import collections
from collections.abc import Callable, Iterator, Sequence

import numpy as np
from jaxtyping import Int

# Rows of a batch are one of these or the full number.
ROWS = (1, 16)


def padded_length(tokens: int) -> int:
    """The next of 16, 32, 64, 96, 128, 192, 256, 384, ...

    Padding costs the encoder alone.

    >>> [padded_length(n) for n in (3, 17, 33, 65, 100, 129)]
    [16, 32, 64, 96, 128, 192]
    """
    length = 16
    while length < tokens:
        power = 1 << (length.bit_length() - 1)
        length += power if length < 64 else power // 2
    return length


def of_one_shape(
    shapes: Sequence[tuple[int, ...]], *, full: Callable[[tuple[int, ...]], int]
) -> Iterator[tuple[list[int], tuple[int, ...], int]]:
    """What is padded alike together: places, their shape, and the batch's rows.

    The longest come first, so that a batch that is too large fails at once.

    Args:
        shapes: The padded lengths of each item.
        full: The most rows of a batch of a shape.
    """
    groups: dict[tuple[int, ...], list[int]] = collections.defaultdict(list)
    for place, shape in enumerate(shapes):
        groups[shape].append(place)
    for shape in sorted(groups, reverse=True):
        places, most = groups[shape], max(1, full(shape))
        for start in range(0, len(places), most):
            chunk = places[start : start + most]
            yield chunk, shape, next((n for n in ROWS if len(chunk) <= n < most), most)


def padded(
    several: Sequence[Sequence[int]], *, rows: int, length: int
) -> Int[np.ndarray, "N T"]:
    """Ids as an array, with `PAD_ID` where there are none."""
    found = np.zeros((rows, length), np.int32)
    for row, ids in zip(found, several, strict=False):
        row[: len(ids)] = ids
    return found
