"""Find text that makes scores or training meaningless, while it is prepared.

Held-out pairs that are training pairs, too, and targets that equal their sources.
"""

import logging
from collections.abc import Iterator, Mapping, Sequence

from vaswani_jax.core import types

Pair = tuple[str, str]
# A few short pairs, as "Yes." and "Ja.", are in every large text.
LARGE_SHARE = 0.1

logger = logging.getLogger(__name__)


class Overlap:
    """Counts pairs as they pass; of all text, only the held-out pairs are in memory."""

    def __init__(self, held_out: Mapping[str, Sequence[Pair]]) -> None:
        """Take the pairs of each split but the training text's."""
        self._held_out = held_out
        self._held_out_pairs = {pair for pairs in held_out.values() for pair in pairs}
        self._trained: set[Pair] = set()
        self._num_pairs = self._num_copies = 0

    def watch(self, pairs: Iterator[Pair]) -> Iterator[Pair]:
        """Yield the training pairs, and note those that are held out or copies."""
        for pair in pairs:
            if pair in self._held_out_pairs:
                self._trained.add(pair)
            self._num_pairs += 1
            self._num_copies += _is_copy(pair)
            yield pair

    def log(self, *, may_copy: bool) -> None:
        """Log held-out pairs that were trained on; warn if they are many.

        Args:
            may_copy: Whether targets that equal their sources are as they should be.
        """
        for split, pairs in self._held_out.items():
            count = sum(pair in self._trained and all(pair) for pair in pairs)
            note = (
                f"{count:,} of {len(pairs):,} {types.SPLIT_NAMES[split]} pairs are "
                "also training pairs"
            )
            if count > LARGE_SHARE * len(pairs):
                logger.warning(f"{note}: scores on them say little about other text")
            elif count:
                logger.info(note)
        if may_copy:
            return
        copies = {"train": (self._num_copies, self._num_pairs)}
        for split, pairs in self._held_out.items():
            copies[split] = (sum(map(_is_copy, pairs)), len(pairs))
        for split, (count, total) in copies.items():
            if 2 * count > total:
                logger.warning(
                    f"{count:,} of {total:,} {types.SPLIT_NAMES[split]} pairs have the "
                    "same text as source and as target"
                )


def _is_copy(pair: Pair) -> bool:
    source, target = pair
    return source == target != ""
