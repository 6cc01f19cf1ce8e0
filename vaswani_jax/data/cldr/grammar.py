"""Join phrases into lines that say the same in two locales.

A line is one phrase, a list of phrases, or two or three with punctuation between them.
A person can type every line: spaces that do not break become plain spaces, and marks
of direction are left out.
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

from vaswani_jax.data.cldr import phrases

if TYPE_CHECKING:
    import babel

# Templates of joined phrases: weight, kinds of phrases in each gap, punctuation.
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
# Templates of lists: weight, kinds of listed phrases, style of the CLDR.
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
    """A phrase in both locales. Its label is its kind and code."""

    source: str
    target: str
    label: str


@dataclasses.dataclass(frozen=True)
class Template:
    """A line with gaps.

    Attributes:
        weight: How often it is drawn, relative to the others.
        gaps: The kinds of pieces that may fill each gap.
        source: The line in the source locale; {0} is the first gap.
        target: The line in the target locale.
    """

    weight: float
    gaps: tuple[tuple[str, ...], ...]
    source: str
    target: str


@dataclasses.dataclass(frozen=True)
class Line:
    """A line in both locales, with its pieces and its template."""

    source: str
    target: str
    pieces: tuple[Piece, ...]
    template: Template

    def atoms(self) -> set[str]:
        """Return what a model must know to translate it: words, labels, template."""
        atoms = {f"template {self.template.source} {self.template.target}"}
        for piece in self.pieces:
            atoms.add(piece.label)
            atoms.update(f"source {word}" for word in _WORD.findall(piece.source))
            atoms.update(f"target {word}" for word in _WORD.findall(piece.target))
        return atoms

    def is_combination(self) -> bool:
        """Return True if it is more than one name."""
        return len(self.pieces) > 1 or any(map(str.isdigit, self.source))


@dataclasses.dataclass(frozen=True)
class Grammar:
    """All lines of two locales.

    Attributes:
        pools: The pieces of each kind. A source text has one target text.
        templates: The lines that pieces can fill.
    """

    pools: dict[str, list[Piece]]
    templates: list[Template]

    def max_lines(self) -> int:
        """Return the number of ways to fill a template; some give the same line."""
        return sum(
            math.prod(
                sum(len(self.pools[kind]) for kind in gap) for gap in template.gaps
            )
            for template in self.templates
        )

    def draw(self, rng: random.Random) -> Iterator[Line]:
        """Yield random lines without end; a line may come again."""
        cumulative = list(
            itertools.accumulate(template.weight for template in self.templates)
        )
        while True:
            [template] = rng.choices(self.templates, cum_weights=cumulative)
            pieces = tuple(
                rng.choice(self.pools[rng.choice(kinds)]) for kinds in template.gaps
            )
            if len(set(pieces)) == len(pieces):
                yield Line(
                    template.source.format(*(piece.source for piece in pieces)),
                    template.target.format(*(piece.target for piece in pieces)),
                    pieces,
                    template,
                )


def make_grammar(
    *, source: babel.Locale, target: babel.Locale, rng: random.Random
) -> Grammar:
    """Return the lines of two locales, without phrases that have two translations.

    Args:
        source: The locale to translate from.
        target: The locale to translate to.
        rng: Draws the dates and numbers of the phrases.
    """
    pieces: list[tuple[str, Piece]] = []
    translations = collections.defaultdict(set)
    for phrase in phrases.all_phrases(rng):
        source_text = phrase_text(phrase, source)
        target_text = phrase_text(phrase, target)
        if source_text and target_text:
            piece = Piece(source_text, target_text, f"{phrase.kind} {phrase.code}")
            pieces.append((phrase.kind, piece))
            translations[source_text].add(target_text)
    pools: dict[str, dict[str, Piece]] = collections.defaultdict(dict)
    for kind, piece in pieces:
        if len(translations[piece.source]) == 1:
            pools[kind].setdefault(piece.source, piece)
    templates: dict[object, Template] = {}
    for template in _templates(source, target):
        gaps = [[kind for kind in gap if kind in pools] for gap in template.gaps]
        if all(gaps):
            # If a locale has one word for "and" and "or", the first template stays.
            templates.setdefault(
                (template.gaps, template.source),
                dataclasses.replace(template, gaps=tuple(map(tuple, gaps))),
            )
    return Grammar(
        {kind: list(pool.values()) for kind, pool in pools.items()},
        list(templates.values()),
    )


def phrase_text(phrase: phrases.Phrase, locale: babel.Locale) -> str | None:
    """Return a phrase as a person types it, or None if the locale lacks its words."""
    try:
        text = _typed(phrase.write(locale=locale))
    except LookupError:
        return None
    # Babel writes the code of what has no name.
    return text if text and phrase.code not in text.split() else None


def _typed(text: str) -> str:
    return text.translate(_TYPED).strip()


def _templates(source: babel.Locale, target: babel.Locale) -> Iterator[Template]:
    """Yield all templates, whether or not the locales have pieces for them."""
    for weight, gaps, pattern in JOINED:
        kinds = tuple(tuple(gap.split("|")) for gap in gaps)
        yield Template(weight, kinds, pattern, pattern)
    for weight, name, style in LISTED:
        for kind, size in itertools.product(name.split("|"), (2, 3)):
            try:
                patterns = [
                    _typed(phrases.list_pattern(size, style, locale=locale))
                    for locale in (source, target)
                ]
            except LookupError:
                continue
            yield Template(weight, ((kind,),) * size, *patterns)
    moments = [
        _typed(str(locale.datetime_formats["medium"]).replace("'", ""))
        for locale in (source, target)
    ]
    yield Template(2.0, (("time",), ("date",)), *moments)
