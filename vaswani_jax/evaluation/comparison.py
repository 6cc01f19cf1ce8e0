"""Compare systems on one text: whether they differ, where, and in which lines."""

import dataclasses
import string
from collections.abc import Mapping, Sequence
from typing import Any

from vaswani_jax.core.config import DataConfig
from vaswani_jax.evaluation import (
    bleu,
    intervals,
    line_differences,
    line_tables,
    significance,
)
from vaswani_jax.evaluation import metrics as metrics_module
from vaswani_jax.evaluation.line_differences import PairOfSystems
from vaswani_jax.evaluation.line_tables import Lines, Table

LETTERS = string.ascii_uppercase
MAX_SYSTEMS = 10
# Options, and the names of their scores, without _lc.
METRICS = {
    "bleu": ("sacrebleu", "tokenized_bleu"),
    "chrf": ("chrf",),
    "chrf++": ("chrf++",),
    "ter": ("ter",),
}
DEFAULT_METRICS = ("bleu", "chrf")


@dataclasses.dataclass(frozen=True)
class System:
    """A system: the outputs of a run, or those of a file.

    Attributes:
        name: A run or a file; no other system of a comparison has the same.
        outputs: A line for each reference.
        origin: Where the outputs come from, in words.
    """

    name: str
    outputs: list[str]
    origin: str


@dataclasses.dataclass(frozen=True)
class Text:
    """The text that systems are compared on.

    Attributes:
        name: "valid", "test" or the file of the references.
        source: The source lines.
        references: A reference for each.
        data: The form of the text, the language, and whether scores ignore case.
        training_words: How often each word is in the training text, and where that
            was counted; None if there is none.
    """

    name: str
    source: list[str]
    references: list[str]
    data: DataConfig
    training_words: "WordCounts | None" = None


@dataclasses.dataclass(frozen=True)
class WordCounts:
    """The counts of words in a text.

    Attributes:
        counts: The number of each word.
        origin: The counted text, in words.
    """

    counts: Mapping[str, int]
    origin: str


@dataclasses.dataclass(frozen=True)
class SystemComparison:
    """The result of a comparison of systems.

    Attributes:
        text: The name of the text.
        num_lines: Its lines.
        references: The checksum of the references, as `evaluate` prints it.
        systems: Name and origin of each system, in the order of their letters.
        test: "bootstrap" or "randomization".
        draws: How many resamples or random exchanges the test draws.
        scores: The scores of one metric and their test, for each metric.
        tables: The tables by length, frequency and fault.
        training_text: Where the frequencies were counted; "" if there are none.
        pairs: How each pair of systems differs line by line.
    """

    text: str
    num_lines: int
    references: str
    systems: list[tuple[str, str]]
    test: str
    draws: int
    scores: list[significance.MetricComparison]
    tables: list[Table]
    training_text: str
    pairs: list[PairOfSystems]

    @property
    def letters(self) -> str:
        """A letter for each system."""
        return LETTERS[: len(self.systems)]

    def format(self) -> str:
        """Return it as lines of text, without the details of JSON."""
        from vaswani_jax.evaluation import comparison_text  # It imports this module.

        return comparison_text.format_comparison(self)

    @property
    def seed(self) -> str:
        """The seed of the generators that drew the lines."""
        interval = self.scores[0].scores[0].interval
        return interval.seed if interval else ""

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON has it; systems are numbered from 0."""
        record = dataclasses.asdict(self)
        record["systems"] = [
            {"name": name, "origin": origin} for name, origin in self.systems
        ]
        record["level"], record["seed"] = significance.LEVEL, self.seed
        for scores, written in zip(self.scores, record["scores"], strict=True):
            for difference, entry in zip(
                scores.differences, written["differences"], strict=True
            ):
                entry["verdict"] = difference.verdict
                entry["better"] = scores.better(difference)
        return record


def choose_metrics(
    names: Sequence[str], *, references: Sequence[str], data: DataConfig
) -> list[metrics_module.Metric]:
    """Return the metrics that options name; all of `DEFAULT_METRICS` for none.

    Raises:
        ValueError: A name is unknown, or the text has no such score.
    """
    available = metrics_module.find_metrics(references, data=data)
    result = []
    for name in names or DEFAULT_METRICS:
        if name not in METRICS:
            raise ValueError(f"a metric is one of {', '.join(METRICS)}, not {name!r}")
        matching = [
            metric
            for metric in available
            if metric.name.removesuffix("_lc") in METRICS[name]
        ]
        if not matching and names:
            raise ValueError(
                f"this text has no {name}: its scores are "
                f"{', '.join(metric.name for metric in available)}"
            )
        result += matching
    return result


def compare(
    systems: Sequence[System],
    text: Text,
    *,
    metrics: Sequence[str] = (),
    test: str = significance.BOOTSTRAP,
    num_lines: int = 5,
) -> SystemComparison:
    """Compare systems on one text.

    Args:
        systems: At least two, at most `MAX_SYSTEMS`.
        text: The text.
        metrics: Names of `METRICS`; by default BLEU, and chrF2 of detokenized text.
        test: "bootstrap" or "randomization", sacreBLEU's paired tests.
        num_lines: The most lines to list in favour of each system of a pair.

    Raises:
        ValueError: The number of systems or of the lines of one is wrong, or the text
            has no such score.
    """
    if not 2 <= len(systems) <= MAX_SYSTEMS:
        raise ValueError(
            f"2 to {MAX_SYSTEMS} systems can be compared, got {len(systems)}"
        )
    for system in systems:
        if len(system.outputs) != len(text.references):
            raise ValueError(
                f"{system.name} has {len(system.outputs):,} lines, {text.name} has "
                f"{len(text.references):,} references: each needs one output"
            )
    if len(text.references) > intervals.MAX_LINES:
        raise ValueError(
            f"{text.name} has {len(text.references):,} lines; at most "
            f"{intervals.MAX_LINES:,} can be compared: the tests would need gigabytes "
            "of memory; compare a part of them"
        )
    if test not in significance.CODES:
        raise ValueError(f"the test is {' or '.join(significance.CODES)}, not {test!r}")
    score_metrics = choose_metrics(metrics, references=text.references, data=text.data)
    lines = Lines(text.source, text.references, [system.outputs for system in systems])
    scores = [
        significance.compare(lines.systems, lines.references, metric=metric, test=test)
        for metric in score_metrics
    ]
    return SystemComparison(
        text=text.name,
        num_lines=len(text.references),
        references=bleu.references_checksum(text.references),
        systems=[(system.name, system.origin) for system in systems],
        test=test,
        draws=significance.DRAWS[test],
        scores=scores,
        tables=_tables(lines, text, metric=score_metrics[0]),
        training_text=text.training_words.origin if text.training_words else "",
        pairs=_pairs(lines, lowercase=text.data.lowercase_scores, num_lines=num_lines),
    )


def _tables(lines: Lines, text: Text, *, metric: metrics_module.Metric) -> list[Table]:
    tokenize = line_tables.tokenizer_of(metric)
    tables = [line_tables.score_by_length(lines, metric=metric, tokenize=tokenize)]
    if text.training_words:
        counts = text.training_words.counts
        tables.append(
            line_tables.score_by_frequency(lines, counts=counts, tokenize=tokenize)
        )
    return [
        *tables,
        line_tables.count_kept(lines),
        line_tables.count_faults(lines, tokenize=tokenize),
    ]


def _pairs(lines: Lines, *, lowercase: bool, num_lines: int) -> list[PairOfSystems]:
    scores = [
        line_differences.line_scores(outputs, lines.references, lowercase=lowercase)
        for outputs in lines.systems
    ]
    return [
        line_differences.compare_pair(
            lines, scores, first=first, second=second, num_lines=num_lines
        )
        for first in range(len(lines.systems))
        for second in range(first + 1, len(lines.systems))
    ]
