"""Count where systems differ: by length and frequency, and by kinds of faults."""

import bisect
import collections
import dataclasses
import itertools
import math
import operator
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal

from vaswani_jax.core import locales
from vaswani_jax.evaluation import metrics

# The first word count of each row of a table, and the first frequency.
LENGTHS = (1, 6, 11, 16, 21, 31, 41)
FREQUENCIES = (0, 1, 2, 5, 10, 100, 1000)
# Full-width marks separate the digits of a number only if these are full-width, too:
# "2007，300人" is a year, a comma and a count.
FULL_WIDTH_MARK = "(?<=[０-９])[．，](?=[０-９])"
# The separators of thousands and of decimals; ٬ and ٫ are those of Arabic. A plain
# space separates thousands or numbers.
NUMBER = re.compile(
    r"(?:(?<!\d)[0-9]{1,3}(?: [0-9]{3})+(?!\d)"
    rf"|\d+(?:(?:[.,٬\u00a0\u202f]|{FULL_WIDTH_MARK})\d{{3}})*)"
    rf"(?:(?:[.,٫]|{FULL_WIDTH_MARK})\d+)?"
)
WORD = re.compile(r"[^\W\d_][\w'’-]*")
# The lengths of sequences whose repetition is a fault. Shorter repetitions are correct:
# 谢谢 in Chinese, 100100 in any language.
REPEATED_WORDS = range(1, 5)
REPEATED_CHARACTERS = range(4, 17)
CHARACTER_TOKENIZERS = ("zh", "char")
# Lines that a row names as examples.
MAX_EXAMPLES = 20

Tokenizer = Callable[[str], list[str]]


@dataclasses.dataclass(frozen=True)
class Row:
    """A row of a table.

    Attributes:
        label: What the row counts.
        count: How many lines or words it has.
        values: A value of each system; None where it has no meaning.
        lines: For each system the first lines, from 1, that have the fault.
    """

    label: str
    count: int
    values: list[float | None]
    lines: list[list[int]] | None = None


@dataclasses.dataclass(frozen=True)
class Table:
    """A table with a column for each system.

    Attributes:
        key: Its name in JSON.
        title: What its values are.
        unit: What the rows count.
        form: The values' form: numbers with decimals, percentages or counts.
        rows: The rows; none if the text has nothing to count.
    """

    key: str
    title: str
    unit: str
    form: Literal["score", "share", "count"]
    rows: list[Row]

    def format_value(self, value: float | None) -> str:
        """Return a value as text.

        >>> Table("", "", "", "share", []).format_value(0.5)
        '50.0 %'
        """
        if value is None:
            return "-"
        if self.form == "share":
            return f"{100 * value:.1f} %"
        if self.form == "count":  # The mean of several seeds may be no whole number.
            return f"{value:,.0f}" if value.is_integer() else f"{value:,.1f}"
        return f"{value:.2f}"


@dataclasses.dataclass(frozen=True)
class Lines:
    """The lines of a text and of all systems.

    Attributes:
        source: The source lines.
        references: A reference for each.
        systems: The outputs of each system.
    """

    source: list[str]
    references: list[str]
    systems: list[list[str]]


def average_runs(table: Table, num_seeds: Sequence[int]) -> Table:
    """Return a table with a column for each system from one with a column for each run.

    A value is the mean of the system's runs; None if a run's value is None. A fault's
    lines are those of any run.

    Args:
        table: A table of all runs, system by system.
        num_seeds: The number of runs of each system.
    """
    ends = list(itertools.accumulate(num_seeds))
    columns = [
        slice(end - count, end) for count, end in zip(num_seeds, ends, strict=True)
    ]
    rows = [
        dataclasses.replace(
            row,
            values=[_mean(row.values[runs]) for runs in columns],
            lines=row.lines
            and [
                sorted(set(itertools.chain(*row.lines[runs])))[:MAX_EXAMPLES]
                for runs in columns
            ],
        )
        for row in table.rows
    ]
    return dataclasses.replace(table, rows=rows)


def _mean(values: Sequence[float | None]) -> float | None:
    numbers = [value for value in values if value is not None]
    if len(numbers) < len(values):
        return None
    return math.fsum(numbers) / len(numbers)


def tokenizer_of(metric: metrics.Metric) -> Tokenizer:
    """Return what splits a line into the words that a metric counts.

    For a metric that counts none, such as chrF2, the words are characters.
    """
    tokenize = getattr(metric.scorer, "tokenizer", " ".join)
    lowercase = getattr(metric.scorer, "lowercase", False)

    def words(line: str) -> list[str]:
        [line] = metric.prepare([line.lower() if lowercase else line])
        return str(tokenize(line.rstrip())).split()

    return words


def counts_words(metric: metrics.Metric) -> bool:
    """Return whether a metric counts words; if not, it counts characters."""
    tokenizer = getattr(metric.scorer, "tokenizer", None)
    return tokenizer is not None and tokenizer.signature() not in CHARACTER_TOKENIZERS


def score_by_length(
    lines: Lines, *, metric: metrics.Metric, tokenize: Tokenizer
) -> Table:
    """Return the scores of lines, by the number of words in their references."""
    lengths = [len(tokenize(line)) for line in lines.references]
    members: list[list[int]] = [[] for _ in LENGTHS]
    for number, length in enumerate(lengths):
        members[_row_of(length, LENGTHS)].append(number)
    rows = []
    for label, numbers in zip(_labels(LENGTHS), members, strict=True):
        if numbers:
            references = [lines.references[n] for n in numbers]
            values: list[float | None] = [
                metric.score(
                    [outputs[n] for n in numbers], references, resamples=0
                ).value
                for outputs in lines.systems
            ]
            rows.append(Row(label, len(numbers), values))
    title = f"score by the number of words in the reference: {metric.name}"
    return Table("length", title, "lines", "score", rows)


def score_by_frequency(
    lines: Lines, *, counts: Mapping[str, int], tokenize: Tokenizer
) -> Table:
    """Return the F1 of words, by their frequency in the training text.

    A word of an output is right as often as it is in the reference, wherever it stands.

    Args:
        lines: The lines.
        counts: How often a word is in the training text.
        tokenize: Splits a line into words.
    """
    references = [collections.Counter(tokenize(line)) for line in lines.references]
    systems = [
        [collections.Counter(tokenize(line)) for line in outputs]
        for outputs in lines.systems
    ]

    def count(texts: Iterable[collections.Counter[str]]) -> collections.Counter[int]:
        """Return the number of words in each row."""
        totals: collections.Counter[int] = collections.Counter()
        for text in texts:
            for word, number in text.items():
                totals[_row_of(counts.get(word, 0), FREQUENCIES)] += number
        return totals

    reference_counts, output_counts = count(references), list(map(count, systems))
    match_counts = [
        count(map(operator.and_, outputs, references)) for outputs in systems
    ]
    rows = []
    for row, label in enumerate(_labels(FREQUENCIES)):
        values: list[float | None] = [
            2 * matches[row] / total
            if (total := reference_counts[row] + words[row])
            else None
            for matches, words in zip(match_counts, output_counts, strict=True)
        ]
        if any(value is not None for value in values):
            rows.append(Row(label, reference_counts[row], values))
    title = "F1 of words by their frequency in the training text"
    return Table("frequency", title, "words", "share", rows)


def _row_of(number: int, starts: Sequence[int]) -> int:
    """Return the index of a number's row; 0 for one below the first start.

    >>> [_row_of(number, (1, 6, 11)) for number in (0, 1, 5, 6, 40)]
    [0, 0, 0, 1, 2]
    """
    return max(0, bisect.bisect_right(starts, number) - 1)


def _labels(starts: Sequence[int]) -> list[str]:
    """Return the label of each row.

    >>> _labels((0, 1, 6, 1000))
    ['0', '1 to 5', '6 to 999', '1,000 or more']
    """
    ends = [
        f"{low:,}" if end == low + 1 else f"{low:,} to {end - 1:,}"
        for low, end in itertools.pairwise(starts)
    ]
    return [*ends, f"{starts[-1]:,} or more"]


def count_kept(lines: Lines) -> Table:
    """Return the share of numbers and names that the outputs keep.

    Only those that both source and reference have count. Numbers are equal if their
    digits are: 1,500 and 1.500. 1 500 is one number if the reference has it, or else
    two. A name is a capitalised word that is not the first word of the source line; it
    may begin a line of the target.
    """
    numbers, names = [], []
    for source, reference in zip(lines.source, lines.references, strict=True):
        known_numbers = find_numbers(reference)
        numbers.append(_read_numbers(source, known_numbers) & known_numbers)
        names.append(find_names(source) & _count_words(reference))
    rows = []
    for label, expected, find in (
        ("numbers", numbers, find_numbers),
        ("names", names, _count_words),
    ):
        count = sum(words.total() for words in expected)
        values: list[float | None] = []
        missing = []
        for outputs in lines.systems:
            right = [
                (words & find(output)).total()
                for words, output in zip(expected, outputs, strict=True)
            ]
            values.append(sum(right) / count if count else None)
            missing.append(
                _first(
                    words.total() > number
                    for words, number in zip(expected, right, strict=True)
                )
            )
        rows.append(Row(label, count, values, missing))
    title = "numbers and names of source and reference, kept in the output"
    return Table("kept", title, "words", "share", rows)


def find_numbers(line: str) -> collections.Counter[str]:
    """Return the numbers of a line as their digits, those of any script as 0 to 9.

    A plain space may separate thousands, or two numbers; the line has both readings.

    >>> sorted(find_numbers("From 1,500 to 2.5 of 1500"))
    ['1500', '25']
    >>> sorted(find_numbers("２００７, ١٬٥٠٠"))
    ['1500', '2007']
    >>> sorted(find_numbers("1 500"))
    ['1', '1500', '500']
    """
    numbers: collections.Counter[str] = collections.Counter()
    for groups in _split_numbers(line):
        numbers.update(groups)
        if len(groups) > 1:
            numbers["".join(groups)] += 1
    return numbers


def _read_numbers(
    line: str, known_numbers: Mapping[str, int]
) -> collections.Counter[str]:
    """Return a line's numbers; digits around a space are one number if it is known.

    Groups of digits that follow each other are all joined, or none is.

    >>> [sorted(_read_numbers("1 500", {number: 1})) for number in ("1500", "500")]
    [['1500'], ['1', '500']]
    """
    numbers: collections.Counter[str] = collections.Counter()
    for groups in _split_numbers(line):
        number = "".join(groups)
        numbers.update([number] if number in known_numbers else groups)
    return numbers


def _split_numbers(line: str) -> list[list[str]]:
    """Return the digits of each number, in the groups that plain spaces separate."""
    return [
        [
            "".join(
                str(unicodedata.decimal(digit)) for digit in re.sub(r"\D", "", group)
            )
            for group in number.split(" ")
        ]
        for number in NUMBER.findall(line)
    ]


def find_names(line: str) -> collections.Counter[str]:
    """Return the words with a capital, without the first word of the line.

    >>> sorted(find_names("Yesterday Anna saw the EU and Anna"))
    ['Anna', 'EU']
    """
    _, *later_words = _split_words(line) or [""]
    return collections.Counter(word for word in later_words if word[0].isupper())


def _count_words(line: str) -> collections.Counter[str]:
    return collections.Counter(_split_words(line))


def _split_words(line: str) -> list[str]:
    """Return the words of a line; a letter of a script without spaces is a word.

    >>> _split_words("他在Google工作。")
    ['他', '在', 'Google', '工', '作']
    """
    return WORD.findall(locales.LETTERS_WITHOUT_SPACES.sub(r" \g<0> ", line))


def count_faults(
    lines: Lines, *, tokenize: Tokenizer, splits_into_words: bool
) -> Table:
    """Return the numbers of outputs that are empty, copied or repeat themselves.

    Only faults that the reference does not have count. An output repeats itself if a
    sequence of words, of a length in `REPEATED_WORDS`, is there twice in a row. A
    number is added if neither the source nor the reference has it.

    Args:
        lines: The lines.
        tokenize: Splits a line into words.
        splits_into_words: False if it splits a line into characters: the lengths are
            `REPEATED_CHARACTERS`.
    """
    sizes = REPEATED_WORDS if splits_into_words else REPEATED_CHARACTERS
    tests: dict[str, Callable[[str, str, str], bool]] = {
        "empty": lambda source, reference, output: (
            not output.strip() and bool(reference.strip())
        ),
        "copied source": lambda source, reference, output: (
            _normal(output) == _normal(source) != ""
            and _normal(reference) != _normal(source)
        ),
        "repeated words": lambda source, reference, output: (
            repeats(tokenize(output), sizes) and not repeats(tokenize(reference), sizes)
        ),
        "added numbers": lambda source, reference, output: _adds_numbers(
            output, find_numbers(reference) | find_numbers(source)
        ),
    }
    rows = []
    for label, has_fault in tests.items():
        numbers: list[float | None] = []
        examples = []
        for outputs in lines.systems:
            faulty = [
                has_fault(*texts)
                for texts in zip(lines.source, lines.references, outputs, strict=True)
            ]
            numbers.append(float(sum(faulty)))
            examples.append(_first(faulty))
        rows.append(Row(label, len(lines.references), numbers, examples))
    return Table("faults", "outputs with a fault", "lines", "count", rows)


def _adds_numbers(line: str, known_numbers: Mapping[str, int]) -> bool:
    """Return whether a line has a number that is not known.

    >>> [_adds_numbers("1 500", {number: 1}) for number in ("1500", "500")]
    [False, True]
    """
    return bool(_read_numbers(line, known_numbers).keys() - known_numbers.keys())


def repeats(words: Sequence[str], sizes: Iterable[int] = REPEATED_WORDS) -> bool:
    """Return whether words of a number in `sizes` occur twice in a row.

    Punctuation alone does not count.

    >>> repeats("a b a b".split()), repeats("a b , ,".split())
    (True, False)
    """
    for size in sizes:
        for start in range(len(words) - 2 * size + 1):
            first = words[start : start + size]
            if first == words[start + size : start + 2 * size] and any(
                map(str.isalnum, "".join(first))
            ):
                return True
    return False


def _normal(line: str) -> str:
    return " ".join(line.casefold().split())


def _first(faulty: Iterable[bool]) -> list[int]:
    """Return the numbers of the first lines, from 1, that have a fault."""
    numbers = [number for number, is_faulty in enumerate(faulty, start=1) if is_faulty]
    return numbers[:MAX_EXAMPLES]
