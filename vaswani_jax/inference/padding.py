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


def shortest_length(num_tokens: Sequence[int]) -> int:
    """Return the length that the shortest sentences are padded to for a search.

    Without batches of 16 tokens a search needs one program less, and padding costs the
    encoder alone. Sentences that are all as short, or few, keep their shape.

    >>> shortest_length([3] * 17), shortest_length([3] * 16 + [17])
    (16, 32)
    """
    shortest, next_length = padded_length(1), padded_length(padded_length(1) + 1)
    has_longer = max(num_tokens, default=0) > shortest
    return next_length if has_longer and len(num_tokens) > ROWS[-1] else shortest


def group_by_shape(
    shapes: Sequence[tuple[int, ...]], *, max_rows: Callable[[tuple[int, ...]], int]
) -> Iterator[Group]:
    """Yield batches of sentences that are padded alike.

    The longest come first, so that a batch that is too large fails at once. Of few
    sentences all join the longest: a program for one more shape takes longer to load
    than padding to compute. Shorter sentences also take rows of a small batch that
    would be padding.

    Args:
        shapes: The padded lengths of each sentence.
        max_rows: The most rows of a batch of a shape.
    """
    by_shape: dict[tuple[int, ...], list[int]] = collections.defaultdict(list)
    for index, shape in enumerate(shapes):
        by_shape[shape].append(index)
    order = sorted(by_shape, reverse=True)
    for rank, shape in enumerate(order):
        most = max(1, max_rows(shape))
        # They differ in the first length alone, which costs little.
        shorter = [by_shape[s] for s in order[rank + 1 :] if s[1:] == shape[1:]]
        while by_shape[shape]:
            chunk = _take(by_shape[shape], most)
            num_sentences = len(chunk) + sum(map(len, shorter))
            if num_sentences > ROWS[-1]:
                num_sentences = len(chunk)
            fitting = (rows for rows in ROWS if num_sentences <= rows < most)
            num_rows = next(fitting, most)
            if num_rows <= ROWS[-1]:
                for indices in shorter:
                    chunk += _take(indices, num_rows - len(chunk))
            yield Group(chunk, shape, num_rows)


def _take(indices: list[int], count: int) -> list[int]:
    """Remove the first few indices and return them."""
    first = indices[:count]
    del indices[:count]
    return first


def pad(
    sentences: Sequence[Sequence[int]], *, rows: int, length: int
) -> Int[np.ndarray, "{rows} {length}"]:
    """Return ids as an array, with `PAD_ID` where there are none."""
    array = np.zeros((rows, length), np.int32)
    for row, ids in zip(array, sentences, strict=False):
        row[: len(ids)] = ids
    return array
