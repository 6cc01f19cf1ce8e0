"""Choose the sentences of a page for which none are named: validation text."""

from collections.abc import Sequence
from typing import TypeVar

from vaswani_jax.data import prepared

COUNT = 8
# The most lines of a validation set that are considered.
NUM_CANDIDATES = 2000

Item = TypeVar("Item")


def choose(data: prepared.PreparedData, *, count: int, max_tokens: int) -> list[str]:
    """Return source lines of the validation set, spread over its lengths.

    The shortest come first. No line is empty or repeated. Neither a line nor its
    reference has more than `max_tokens` subwords.

    Args:
        data: The prepared data of a run.
        count: How many lines to return, if there are so many.
        max_tokens: The most subwords of either side, the end mark included.

    Raises:
        ValueError: The text has changed since it was prepared.
        OSError: A file is missing.
    """
    if "valid" not in data.counts:
        return []
    vocabulary = data.vocabulary
    pairs = _spread(list(zip(*data.text("valid"), strict=True)), NUM_CANDIDATES)
    sources = vocabulary.encode([source for source, _ in pairs])
    targets = vocabulary.encode([target for _, target in pairs], target=True)
    lengths: dict[str, int] = {}
    for (line, _), source, target in zip(pairs, sources, targets, strict=True):
        if source and max(len(source), len(target)) < max_tokens:
            lengths.setdefault(line, len(source))
    return _spread(sorted(lengths, key=lambda line: lengths[line]), count)


def _spread(items: Sequence[Item], count: int) -> list[Item]:
    """Return at most `count` items, each from the middle of an equal part of all.

    >>> _spread([10, 20, 30, 40, 50, 60], 2), _spread([10, 20], 3)
    ([20, 50], [10, 20])
    """
    if len(items) <= count:
        return list(items)
    return [items[((2 * n + 1) * len(items) - 1) // (2 * count)] for n in range(count)]
