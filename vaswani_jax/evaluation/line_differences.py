"""Find the lines on which two systems differ most, and the words that differ."""

import dataclasses
import difflib
import itertools
import math
import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from typing import Literal

import sacrebleu

from vaswani_jax.core import locales
from vaswani_jax.evaluation.line_tables import Lines

Side = Literal["both", "first", "second"]
# Scores that differ by less are equal.
TIES = 1e-9
LETTER = locales.LETTERS_WITHOUT_SPACES
# A letter of a script without spaces, or the characters between such letters.
PART = re.compile(f"{LETTER.pattern}|[^{LETTER.pattern[1:-1]}]+")


@dataclasses.dataclass(frozen=True)
class DiffSpan:
    """Words that both outputs share, or that only one has.

    Each letter of a script without spaces counts as a word.

    Attributes:
        side: The outputs that have the words.
        text: The words.
        space: The outputs that have white space before them; None if neither has.
    """

    side: Side
    text: str
    space: Side | None = "both"

    def has_space(self, side: Side) -> bool:
        """Return whether an output has white space before the words."""
        return self.space in ("both", side)


@dataclasses.dataclass(frozen=True)
class LineDifference:
    """A line that two systems translate differently.

    Attributes:
        line: Its number, from 1.
        source: The source line.
        reference: Its reference.
        first: chrF2 of the first system's output, the mean of its runs.
        second: chrF2 of the second's.
        spans: The words of both outputs.
    """

    line: int
    source: str
    reference: str
    first: float
    second: float
    spans: list[DiffSpan]

    def output(self, side: Side) -> list[DiffSpan]:
        """Return the spans of one of the outputs."""
        return [span for span in self.spans if span.side in ("both", side)]


@dataclasses.dataclass(frozen=True)
class PairOfSystems:
    """Differences between two systems line by line, by the chrF2 of each line.

    Attributes:
        first: The number of a system, from 0.
        second: The number of another.
        num_first_better: Lines that the first translates better.
        num_second_better: Lines that the second translates better.
        num_equal: Lines of equal scores.
        first_better: The lines with the largest differences in favour of the first.
        second_better: The lines in favour of the second.
    """

    first: int
    second: int
    num_first_better: int
    num_second_better: int
    num_equal: int
    first_better: list[LineDifference]
    second_better: list[LineDifference]


def line_scores(
    outputs: Sequence[str], references: Sequence[str], *, lowercase: bool
) -> list[float]:
    """Return chrF2 of each line."""
    metric = sacrebleu.CHRF(lowercase=lowercase)
    return [
        float(metric.sentence_score(output, [reference]).score)
        for output, reference in zip(outputs, references, strict=True)
    ]


@dataclasses.dataclass(frozen=True)
class TypicalOutputs:
    """An output of each line that stands for those of all runs of a system.

    Attributes:
        outputs: The output whose chrF2 is nearest to the mean of the runs.
        scores: The mean chrF2.
    """

    outputs: list[str]
    scores: list[float]


def choose_typical_outputs(
    runs: Sequence[Sequence[str]], references: Sequence[str], *, lowercase: bool
) -> TypicalOutputs:
    """Return the output of each line that is nearest to the mean of a system's runs."""
    scores = [line_scores(outputs, references, lowercase=lowercase) for outputs in runs]
    typical, means = [], []
    for line in range(len(references)):
        by_run = [of_run[line] for of_run in scores]
        mean = math.fsum(by_run) / len(by_run)
        nearest = min(range(len(runs)), key=lambda n: abs(by_run[n] - mean))
        typical.append(runs[nearest][line])
        means.append(mean)
    return TypicalOutputs(typical, means)


def compare_pair(
    lines: Lines,
    scores: Sequence[Sequence[float]],
    *,
    first: int,
    second: int,
    num_lines: int,
    find_number: Callable[[int], int] = int,
) -> PairOfSystems:
    """Compare two systems line by line.

    Args:
        lines: The text and all outputs.
        scores: `line_scores` of each system.
        first: The number of a system, from 0.
        second: The number of another.
        num_lines: The most lines to return in favour of each.
        find_number: Returns the number to show of a line, which it gets counted from 1.
    """
    differences = [
        second_score - first_score
        for first_score, second_score in zip(scores[first], scores[second], strict=True)
    ]
    order = sorted(
        range(len(differences)), key=lambda number: (differences[number], number)
    )

    def describe(number: int) -> LineDifference:
        outputs = (lines.systems[system][number] for system in (first, second))
        return LineDifference(
            line=find_number(number + 1),
            source=lines.source[number],
            reference=lines.references[number],
            first=scores[first][number],
            second=scores[second][number],
            spans=word_difference(*outputs),
        )

    worse = [number for number in order if differences[number] < -TIES]
    better = [number for number in reversed(order) if differences[number] > TIES]
    return PairOfSystems(
        first=first,
        second=second,
        num_first_better=len(worse),
        num_second_better=len(better),
        num_equal=len(differences) - len(worse) - len(better),
        first_better=list(map(describe, worse[:num_lines])),
        second_better=list(map(describe, better[:num_lines])),
    )


def word_difference(first: str, second: str) -> list[DiffSpan]:
    """Return the words of two lines, in the order of both.

    White space alone is no difference.

    >>> [(p.side, p.text) for p in word_difference("a b c", "a x c")]
    [('both', 'a'), ('first', 'b'), ('second', 'x'), ('both', 'c')]
    >>> [(p.side, p.text) for p in word_difference("很高兴。", "很开心。")]
    [('both', '很'), ('first', '高兴'), ('second', '开心'), ('both', '。')]
    """
    first_words, second_words = _split(first), _split(second)
    matcher = difflib.SequenceMatcher(
        a=[word.text for word in first_words],
        b=[word.text for word in second_words],
        autojunk=False,
    )
    spans: list[DiffSpan] = []
    for kind, start, end, second_start, second_end in matcher.get_opcodes():
        words = first_words[start:end]
        other_words = second_words[second_start:second_end]
        if kind == "equal":
            spans += _shared_spans(words, other_words)
            continue
        if words:
            spans.append(_span("first", words))
        if other_words:
            spans.append(_span("second", other_words))
    return spans


@dataclasses.dataclass(frozen=True)
class _Word:
    """A word, or a letter of a script without spaces.

    Attributes:
        text: Its characters.
        has_space: True if white space stands before it.
    """

    text: str
    has_space: bool


def _split(line: str) -> list[_Word]:
    words: list[_Word] = []
    for text in line.split():
        parts: list[str] = []
        for part in PART.findall(text):
            # A vowel sign cannot be shown without its letter.
            if parts and unicodedata.category(part[0]).startswith("M"):
                parts[-1] += part
            else:
                parts.append(part)
        # Words of the other output may stand before the first word of this one.
        has_space = bool(words) or (len(parts) == 1 and not LETTER.match(text))
        words += [_Word(part, has_space and n == 0) for n, part in enumerate(parts)]
    return words


def _span(side: Side, words: Sequence[_Word]) -> DiffSpan:
    text = "".join(
        f"{' ' if n and word.has_space else ''}{word.text}"
        for n, word in enumerate(words)
    )
    return DiffSpan(side, text, side if words[0].has_space else None)


def _shared_spans(
    words: Sequence[_Word], other_words: Sequence[_Word]
) -> Iterator[DiffSpan]:
    """Yield equal words, in a span of their own where only one output has a space."""
    pairs = zip(words, other_words, strict=True)
    starts = [
        n
        for n, (word, other) in enumerate(pairs)
        if n == 0 or word.has_space != other.has_space
    ]
    for start, end in itertools.pairwise([*starts, len(words)]):
        span = _span("both", words[start:end])
        if words[start].has_space != other_words[start].has_space:
            side: Side = "first" if words[start].has_space else "second"
            span = dataclasses.replace(span, space=side)
        yield span
