"""Section 5.1, the embedded corpus: a translation task that needs no download.

Both sides of a pair are the same dates, amounts and names, written in two locales by
the Unicode CLDR through the `babel` package. Spaces that do not break become plain
spaces and marks of direction are left out, so that a person can type every line; the
rest is as CLDR has it.
"""

from __future__ import annotations

import bisect
import collections
import dataclasses
import itertools
import math
import random
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from vaswani_jax.data import cldr_phrases

if TYPE_CHECKING:
    from babel import Locale

# Counts the changes to what the generator writes, for the fingerprint of the data.
RECIPE = 1
# How often a line may be one already drawn before there are no more to draw.
MOST_REPEATS = 10_000

NAME = "territory|language|dialect"
AMOUNT = "percent|price|sum|compact|long unit|short unit"
LISTED = ("territory", "language", "month", "weekday", "sum", "long unit", "short unit")
# How often, what stands where, and the neutral punctuation between.
JOINED = (
    (3, ("date",), "{0}"),
    (2, ("interval",), "{0}"),
    (1, ("time|percent|compact",), "{0}"),
    (2, ("relative|duration",), "{0}"),
    (3, ("sum|price|long unit|short unit",), "{0}"),
    (1, (NAME,), "{0}"),
    (7, (NAME, AMOUNT), "{0}: {1}"),
    (2, (NAME, "date|relative"), "{0}: {1}"),
    (2, ("date", "duration|relative"), "{0} – {1}"),
    (2, ("date", NAME), "{0} – {1}"),
    (2, ("duration", "sum|price"), "{0}; {1}"),
    (1, ("weekday|month", "time|percent|compact"), "{0}: {1}"),
    (1, ("territory", AMOUNT, AMOUNT), "{0}: {1}; {2}"),
    (1, ("date", "duration", "sum|price"), "{0} – {1} – {2}"),
)

_SPACES = dict.fromkeys(map(ord, "\u00a0\u2009\u202f"), " ")
_MARKS = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
_TYPED = _SPACES | dict.fromkeys(map(ord, _MARKS), "")
# A run of letters or of digits. A mark on a letter is part of the word.
_WORD = re.compile(r"\d+|[^\W\d_]+")


@dataclasses.dataclass(frozen=True)
class Piece:
    """A phrase in both languages.

    Attributes:
        source: Its text in the source locale.
        target: Its text in the target locale.
        atoms: What a reader must know for it: its code, and the words of both sides.
    """

    source: str
    target: str
    atoms: frozenset[str]


@dataclasses.dataclass(frozen=True)
class Shape:
    """A kind of line: what stands in each place, and what stands between.

    Attributes:
        weight: How often it is drawn, relative to the others.
        places: For each place the kinds of pieces that may stand there.
        source: The line in the source locale, with {0} for the first place.
        target: The same in the target locale.
    """

    weight: float
    places: tuple[tuple[str, ...], ...]
    source: str
    target: str


@dataclasses.dataclass(frozen=True)
class Line:
    """A line in both languages, and what it is made of."""

    source: str
    target: str
    pieces: tuple[Piece, ...]

    def is_combination(self) -> bool:
        """Whether its parts can be seen elsewhere: all but a name that stands alone."""
        return len(self.pieces) > 1 or any(map(str.isdigit, self.source))
