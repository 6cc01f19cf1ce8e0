"""The shapes of a server's programs: few, since each is compiled before it is ready."""

import dataclasses
from collections.abc import Mapping
from typing import NamedTuple

from vaswani_jax.core.config import SearchConfig

# Padded tokens of a sentence; those of longer ones are the most that a piece may have.
SOURCE_LENGTHS = (16, 32, 64, 128)
# The rows of a batch on each device, if its tokens allow them.
ROWS = (1, 4, 16, 64)
# On a CPU a row costs nearly as much in a larger batch, and the others wait for it.
CPU_ROWS = 16
CPU_TOKENS = 512
# A CPU computes rows of padding, too: a batch that is less full than this is cut.
CPU_FULLNESS = 0.75
# Sentences with a prefix or with phrases have few programs: of two lengths, for one row
# and for the most.
CONSTRAINED_SOURCE_LENGTH, PREFIX_LENGTH = 64, 32
CONSTRAINED_ROWS = 16
# C and L: the most different phrases of a sentence, and the most tokens of each.
PHRASES = (8, 16)
# Padded tokens of each side of a pair that is scored, and its rows on each device.
PAIR_ROWS = {32: (1, 8), 128: (1,)}


class Lengths(NamedTuple):
    """Padded tokens of the sentences of a batch and of their prefixes.

    Sentences with phrases have room for prefixes, too.
    """

    source: int
    prefix: int


@dataclasses.dataclass(frozen=True)
class Shapes:
    """The shapes of all programs of a model.

    Attributes:
        search_rows: The numbers of rows of a search, ascending, by its lengths. The
            lengths are ascending, too.
        pair_rows: The numbers of rows of a pass over pairs, by the tokens of a side.
        fullness: The least share of a batch's rows that are sentences, where fewer
            rows could be chosen.
    """

    search_rows: Mapping[Lengths, tuple[int, ...]]
    pair_rows: Mapping[int, tuple[int, ...]]
    fullness: float

    def lengths(
        self, *, source: int, prefix: int, has_phrases: bool = False
    ) -> Lengths:
        """Return the lengths that a sentence is padded to.

        Args:
            source: Its tokens, with the end mark.
            prefix: The tokens of its prefix.
            has_phrases: Whether its translations must have phrases.
        """
        return next(
            lengths
            for lengths in self.search_rows
            if source <= lengths.source
            and prefix <= lengths.prefix
            and (prefix > 0 or has_phrases) == bool(lengths.prefix)
        )

    def num_sentences(self, num_waiting: int, lengths: Lengths) -> int:
        """Return how many of the waiting sentences of equal lengths share a batch."""
        choices = self.search_rows[lengths]
        if num_waiting >= choices[-1]:
            return choices[-1]
        enough = next(rows for rows in choices if rows >= num_waiting)
        if num_waiting >= self.fullness * enough:
            return num_waiting
        fitting = [rows for rows in choices if rows <= num_waiting]
        return fitting[-1] if fitting else num_waiting

    def num_rows(self, num_sentences: int, lengths: Lengths) -> int:
        """Return the rows of a batch of so many sentences."""
        return next(rows for rows in self.search_rows[lengths] if rows >= num_sentences)

    def pair_length(self, num_tokens: int) -> int:
        """Return the padded length of a pair whose longer side has so many tokens."""
        return next(length for length in self.pair_rows if num_tokens <= length)


def shapes(
    search: SearchConfig,
    *,
    num_devices: int,
    is_cpu: bool,
    allows_constraints: bool,
    longest_pair: int,
) -> Shapes:
    """Return the shapes for a model.

    Args:
        search: Its settings.
        num_devices: How many devices share each batch.
        is_cpu: Whether the devices are those of a CPU.
        allows_constraints: True if requests may ask for prefixes and phrases.
        longest_pair: The most tokens of each side of a pair that is scored.
    """
    longest = search.max_source_tokens
    most_tokens = CPU_TOKENS if is_cpu else search.source_tokens_per_batch
    most_rows = CPU_ROWS if is_cpu else ROWS[-1]

    def rows_of(length: int) -> tuple[int, ...]:
        return tuple(
            rows * num_devices
            for rows in ROWS
            if rows == 1 or (rows <= most_rows and rows * length <= most_tokens)
        )

    sources = [length for length in SOURCE_LENGTHS if length < longest]
    search_rows = {
        Lengths(length, 0): rows_of(length) for length in (*sources, longest)
    }
    if allows_constraints:
        usual = Lengths(
            min(CONSTRAINED_SOURCE_LENGTH, longest), min(PREFIX_LENGTH, longest)
        )
        most = CONSTRAINED_ROWS * num_devices
        choices = [rows for rows in rows_of(usual.source) if rows <= most]
        search_rows[usual] = (choices[0], *choices[1:][-1:])
        search_rows.setdefault(Lengths(longest, longest), (choices[0],))
    pair_rows = {
        length: tuple(n * num_devices for n in rows)
        for length, rows in PAIR_ROWS.items()
        if length < longest_pair
    }
    pair_rows[longest_pair] = (num_devices,)
    return Shapes(search_rows, pair_rows, CPU_FULLNESS if is_cpu else 0.0)
