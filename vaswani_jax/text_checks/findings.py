"""Findings of the checks of text, each with the settings that fix it."""

import dataclasses
import enum
from collections.abc import Sequence

from vaswani_jax.core import types

# Pairs or lines that a finding shows.
NUM_EXAMPLES = 3
# Characters of a line that are shown.
NUM_SHOWN = 70


class Severity(enum.StrEnum):
    """The weight of a finding: `vaswani check` ends with status 2 if one is serious."""

    SERIOUS = "serious"
    MINOR = "minor"


@dataclasses.dataclass(frozen=True)
class Example:
    """A line or a pair that a finding shows, as a message in `str`.

    Attributes:
        number: The number of its line in its text, from 1.
        text: Its text, as a message can show it.
        side: The side that it is of; "" for a pair.
        split: The split that it is in, if that is not the finding's.
        corpus: The corpus that it is in, if `split` is given.
        location: Its file and line, if its text has several files.
    """

    number: int
    text: str
    side: str = ""
    split: str = ""
    corpus: str = ""
    location: str = ""

    def __str__(self) -> str:
        """Return its location and its text."""
        words = [types.SPLIT_NAMES[self.split]] if self.split else []
        words += [self.corpus] if self.corpus else []
        words.append(self.location or f"line {self.number:,}")
        return f"{' '.join(words)}: {self.text}"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Finding:
    """Something wrong with a text.

    Attributes:
        kind: Its name, as "misaligned".
        severity: Whether it makes training or scores worthless, or only worse.
        split: The split that it is about.
        corpus: The corpus of the training text that it is about; "" without
            `data.corpora`, or if it is about several.
        message: What is wrong, in words, with numbers.
        share: The share of lines or pairs that it concerns.
        remedies: Settings or commands that fix it.
        lines: First and last line of the parts that it concerns, from 1.
        locations: Files and lines of these parts, if the text has several files.
        examples: Some of the lines or pairs.
    """

    kind: str
    severity: Severity
    split: str
    message: str
    share: float
    remedies: Sequence[str]
    corpus: str = ""
    lines: Sequence[tuple[int, int]] = ()
    locations: Sequence[str] = ()
    examples: Sequence[Example] = ()


def severity_of(share: float, *, minor: float, serious: float) -> Severity | None:
    """Return the severity of a share of lines; None if it is too small to matter.

    >>> severity_of(0.02, minor=0.01, serious=0.1)
    <Severity.MINOR: 'minor'>
    """
    if share >= serious:
        return Severity.SERIOUS
    return Severity.MINOR if share >= minor else None


def percent(share: float) -> str:
    """Return a share as a percentage that is 0.0% only for 0.

    >>> percent(0.123), percent(0.0004), percent(0.00001)
    ('12.3%', '0.04%', 'under 0.01%')
    """
    if 0 < share < 0.0001:
        return "under 0.01%"
    return f"{share:.1%}" if share == 0 or share >= 0.001 else f"{share:.2%}"


def shorten(line: str, *, center: int = 0) -> str:
    """Return a part of a line, as a message can show it.

    Args:
        line: The line.
        center: The index of a character that must be shown.
    """
    begin = min(max(0, center - NUM_SHOWN // 2), max(0, len(line) - NUM_SHOWN))
    shown = line[begin : begin + NUM_SHOWN]
    shown = f"{'...' * (begin > 0)}{shown}{'...' * (begin + NUM_SHOWN < len(line))}"
    return "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in shown)


def pair_example(number: int, source: str, target: str) -> Example:
    """Return a pair as an example of a finding."""
    return Example(number, f"{shorten(source)} | {shorten(target)}")
