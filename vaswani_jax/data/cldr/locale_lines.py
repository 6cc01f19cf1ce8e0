"""Section 5.1, the embedded corpus: phrases of the CLDR put together into lines.

A line says the same in two locales. It is one phrase, a list of them as the locale
writes lists, or a few with neutral punctuation between them. Spaces that do not break
become plain spaces and marks of direction are left out, so that a person can type
every line; the rest is as CLDR has it.
"""

from __future__ import annotations

import collections
import dataclasses
import itertools
import math
import random
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from vaswani_jax.data.cldr import locale_phrases

if TYPE_CHECKING:
    import babel

# How often, what may stand in each place, and the punctuation between.
NAME = "territory|language|dialect"
AMOUNT = "percent|price|sum|compact|long unit|short unit"
JOINED = (
    (2.0, ("date",), "{0}"),
    (0.5, ("period",), "{0}"),
    (1.5, ("interval",), "{0}"),
    (0.5, ("time|percent|compact",), "{0}"),
    (1.0, ("relative|duration",), "{0}"),
    (2.0, ("sum|price|long unit|short unit",), "{0}"),
    (0.5, (NAME,), "{0}"),
    (7.0, (NAME, AMOUNT), "{0}: {1}"),
    (2.0, (NAME, "date|period|relative"), "{0}: {1}"),
    (2.0, ("date|period", "duration|relative"), "{0} – {1}"),
    (2.0, ("date|period", NAME), "{0} – {1}"),
    (2.0, ("duration", "sum|price"), "{0}; {1}"),
    (1.0, ("weekday|month", "time|percent|compact"), "{0}: {1}"),
    (1.0, ("territory", AMOUNT, AMOUNT), "{0}: {1}; {2}"),
    (1.0, ("date", "duration", "sum|price"), "{0} – {1} – {2}"),
)
# How often, what is listed, and in which of CLDR's styles.
LISTED = (
    (0.4, "territory|language|month|weekday|sum|long unit", "standard"),
    (0.2, "territory|language|month|weekday|long unit", "or"),
    (0.2, "long unit|short unit", "unit"),
)

_SPACES = dict.fromkeys(map(ord, "\u00a0\u2009\u202f"), " ")
_MARKS = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
_TYPED = _SPACES | dict.fromkeys(map(ord, _MARKS), "")
_WORD = re.compile(r"\d+|[^\W\d_]+")


@dataclasses.dataclass(frozen=True)
class Piece:
    """A phrase in both locales; its label is its kind and code."""

    source: str
    target: str
    label: str


@dataclasses.dataclass(frozen=True)
class Shape:
    """A line with gaps.

    Attributes:
        weight: How often it is drawn, relative to the others.
        places: For each gap the kinds of pieces that may fill it.
        source: The line in the source locale; {0} is the first gap.
        target: The same in the target locale.
    """

    weight: float
    places: tuple[tuple[str, ...], ...]
    source: str
    target: str


@dataclasses.dataclass(frozen=True)
class Line:
    """A line in both locales, and what it is made of."""

    source: str
    target: str
    pieces: tuple[Piece, ...]
    shape: Shape

    def atoms(self) -> set[str]:
        """What one must have seen to know the line: labels, words, and the shape."""
        atoms = {f"shape {self.shape.source} {self.shape.target}"}
        for piece in self.pieces:
            atoms.add(piece.label)
            atoms.update(f"source {word}" for word in _WORD.findall(piece.source))
            atoms.update(f"target {word}" for word in _WORD.findall(piece.target))
        return atoms

    def is_combination(self) -> bool:
        """Whether there is more to it than one name."""
        return len(self.pieces) > 1 or any(map(str.isdigit, self.source))


@dataclasses.dataclass(frozen=True)
class Corpus:
    """All lines that can be made for two locales.

    Attributes:
        pools: The pieces of each kind; no source text of a piece has two targets.
        shapes: What they may be put together to.
    """

    pools: dict[str, list[Piece]]
    shapes: list[Shape]

    def most_lines(self) -> int:
        """How many ways there are to fill a shape; a few of them give one line."""
        return sum(
            math.prod(
                sum(len(self.pools[kind]) for kind in place) for place in shape.places
            )
            for shape in self.shapes
        )

    def draw(self, rng: random.Random) -> Iterator[Line]:
        """Lines without end; one may come again."""
        cumulative = list(itertools.accumulate(shape.weight for shape in self.shapes))
        while True:
            [shape] = rng.choices(self.shapes, cum_weights=cumulative)
            pieces = tuple(
                rng.choice(self.pools[rng.choice(kinds)]) for kinds in shape.places
            )
            if len(set(pieces)) == len(pieces):
                yield Line(
                    shape.source.format(*(piece.source for piece in pieces)),
                    shape.target.format(*(piece.target for piece in pieces)),
                    pieces,
                    shape,
                )


def corpus(source: babel.Locale, target: babel.Locale, rng: random.Random) -> Corpus:
    """What both locales can say, without what has two translations.

    Args:
        source: The locale to translate from.
        target: The locale to translate to.
        rng: Draws the dates and numbers to write about.
    """
    pieces: list[tuple[str, Piece]] = []
    translations = collections.defaultdict(set)
    for phrase in locale_phrases.all_phrases(rng):
        source_text, target_text = (
            phrase_text(phrase, source),
            phrase_text(phrase, target),
        )
        if source_text and target_text:
            piece = Piece(source_text, target_text, f"{phrase.kind} {phrase.code}")
            pieces.append((phrase.kind, piece))
            translations[source_text].add(target_text)
    pools: dict[str, dict[str, Piece]] = collections.defaultdict(dict)
    for kind, piece in pieces:
        if len(translations[piece.source]) == 1:
            pools[kind].setdefault(piece.source, piece)
    shapes: dict[object, Shape] = {}
    for shape in _shapes(source, target):
        places = [[kind for kind in place if kind in pools] for place in shape.places]
        if all(places):
            # Where a locale has one word for "and" and "or", the first shape stays.
            shapes.setdefault(
                (shape.places, shape.source),
                dataclasses.replace(shape, places=tuple(map(tuple, places))),
            )
    return Corpus(
        {kind: list(pool.values()) for kind, pool in pools.items()},
        list(shapes.values()),
    )


def phrase_text(phrase: locale_phrases.Phrase, locale: babel.Locale) -> str | None:
    """The phrase as a person of the locale types it, None if it lacks the words."""
    try:
        text = _typed(phrase.write(locale=locale))
    except LookupError:
        return None
    # Where babel has no name it writes the code.
    return text if text and phrase.code not in text.split() else None


def _typed(text: str) -> str:
    return text.translate(_TYPED).strip()


def _shapes(source: babel.Locale, target: babel.Locale) -> Iterator[Shape]:
    """All kinds of lines, whether or not the locales have the pieces for them."""
    for weight, places, pattern in JOINED:
        kinds = tuple(tuple(place.split("|")) for place in places)
        yield Shape(weight, kinds, pattern, pattern)
    for weight, listed, style in LISTED:
        for kind, size in itertools.product(listed.split("|"), (2, 3)):
            try:
                patterns = [
                    _typed(locale_phrases.list_pattern(size, style, locale=locale))
                    for locale in (source, target)
                ]
            except LookupError:
                continue
            yield Shape(weight, ((kind,),) * size, *patterns)
    moments = [
        _typed(str(locale.datetime_formats["medium"]).replace("'", ""))
        for locale in (source, target)
    ]
    yield Shape(2.0, (("time",), ("date",)), *moments)
