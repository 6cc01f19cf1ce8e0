"""Compare systems on one text: whether they differ, where, and in which lines."""

import dataclasses
import string
from collections.abc import Sequence
from typing import Any

from vaswani_jax.core.config import DataConfig
from vaswani_jax.evaluation import (
    bleu,
    intervals,
    line_differences,
    line_tables,
    randomization,
    significance,
)
from vaswani_jax.evaluation import metrics as metrics_module
from vaswani_jax.evaluation.line_differences import PairOfSystems
from vaswani_jax.evaluation.line_tables import Lines, Table
from vaswani_jax.evaluation.word_counts import WordCounts

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
    """A system: the outputs of a run or of several seeds, or those of a file.

    Attributes:
        name: A run or a file; no other system of a comparison has the same.
        outputs: For each run a line for each reference; the runs differ in their seeds.
        origin: Where the outputs come from, in words.
    """

    name: str
    outputs: list[list[str]]
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
        line_numbers: The number of each line, from 1, in the text that it was chosen
            from; by default they are counted.
    """

    name: str
    source: list[str]
    references: list[str]
    data: DataConfig
    training_words: WordCounts | None = None
    line_numbers: Sequence[int] = ()

    def find_number(self, line: int) -> int:
        """Return the number that a line has in the text that it was chosen from.

        Args:
            line: Its number among the lines that are compared, from 1.
        """
        return self.line_numbers[line - 1] if self.line_numbers else line


@dataclasses.dataclass(frozen=True)
class SystemComparison:
    """The result of a comparison of systems.

    Attributes:
        text: The name of the text.
        num_lines: Its lines.
        references: The checksum of these references; `evaluate` prints that of all
            lines of a text.
        systems: Name and origin of each system, in the order of their letters.
        num_seeds: The number of runs of each system.
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
    num_seeds: list[int]
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

    @property
    def has_seeds(self) -> bool:
        """True if a system has several runs."""
        return max(self.num_seeds) > 1

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
            {"name": name, "origin": origin, "seeds": count}
            for (name, origin), count in zip(
                self.systems, record.pop("num_seeds"), strict=True
            )
        ]
        record["level"], record["seed"] = significance.LEVEL, self.seed
        for scores, score_record in zip(self.scores, record["scores"], strict=True):
            for difference, entry in zip(
                scores.differences, score_record["differences"], strict=True
            ):
                entry["verdict"] = difference.verdict
                entry["better"] = scores.better(difference)
                entry["seeds_overlap"] = scores.seeds_overlap(difference)
            for spread, entry in zip(
                scores.spreads, score_record["spreads"], strict=True
            ):
                entry["deviation"] = spread.deviation
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
    test: str = "",
    num_lines: int = 5,
) -> SystemComparison:
    """Compare systems on one text.

    Systems of several seeds are compared by their means, see `randomization`. The
    tables have the means of the runs. Each line shows the output whose chrF2 is nearest
    to the system's mean.

    Args:
        systems: At least two, at most `MAX_SYSTEMS`, with an output for each reference.
        text: The text.
        metrics: Names of `METRICS`; by default BLEU, and chrF2 of detokenized text.
        test: "randomization", the default, or "bootstrap", sacreBLEU's, which cannot
            compare several seeds.
        num_lines: The most lines to list in favour of each system of a pair.

    Raises:
        ValueError: The text has no such score or too many lines, the test cannot
            compare seeds, or SACREBLEU_SEED is no seed.
    """
    num_seeds = [len(system.outputs) for system in systems]
    score_metrics, test = choose_scores(
        text, metrics=metrics, test=test, has_seeds=max(num_seeds) > 1
    )
    lines = Lines(
        text.source,
        text.references,
        [outputs for system in systems for outputs in system.outputs],
    )
    return SystemComparison(
        text=text.name,
        num_lines=len(text.references),
        references=bleu.lines_checksum(text.references),
        systems=[(system.name, system.origin) for system in systems],
        num_seeds=num_seeds,
        test=test,
        draws=significance.DRAWS[test],
        scores=[
            _compare_scores(systems, text, metric=metric, test=test)
            for metric in score_metrics
        ],
        tables=[
            _renumber(line_tables.average_runs(table, num_seeds), text)
            for table in _tables(lines, text, metric=score_metrics[0])
        ],
        training_text=text.training_words.origin if text.training_words else "",
        pairs=_pairs(systems, text, num_lines=num_lines),
    )


def choose_scores(
    text: Text, *, metrics: Sequence[str], test: str, has_seeds: bool
) -> tuple[list[metrics_module.Metric], str]:
    """Return the metrics of a comparison and the name of its test; see `compare`.

    Raises:
        ValueError: As `compare`.
    """
    if len(text.references) > intervals.MAX_LINES:
        raise ValueError(
            f"{text.name} has {len(text.references):,} lines; at most "
            f"{intervals.MAX_LINES:,} can be compared: the tests would need gigabytes "
            "of memory; compare a part of them"
        )
    seed = metrics_module.read_seed()  # Refuse a wrong one before systems are scored.
    test = _choose_test(test, has_seeds=has_seeds)
    if test == significance.BOOTSTRAP and seed != "none" and int(seed) == 0:
        raise ValueError(
            f"with {metrics_module.SEED_VARIABLE}=0, sacreBLEU's paired bootstrap has "
            "other draws each time: set another seed, or 'none' if you want that"
        )
    return choose_metrics(metrics, references=text.references, data=text.data), test


def _choose_test(test: str, *, has_seeds: bool) -> str:
    """Return the name of the test; see `compare`."""
    test = test or significance.RANDOMIZATION
    if test not in significance.DRAWS:
        raise ValueError(f"the test is {' or '.join(significance.DRAWS)}, not {test!r}")
    if has_seeds and test == significance.BOOTSTRAP:
        raise ValueError(
            f"test {test!r} cannot compare several seeds: leave it out or use "
            f"{significance.RANDOMIZATION}"
        )
    return test


def _compare_scores(
    systems: Sequence[System],
    text: Text,
    *,
    metric: metrics_module.Metric,
    test: str,
) -> significance.MetricComparison:
    if test == significance.RANDOMIZATION:
        return randomization.compare(
            [system.outputs for system in systems], text.references, metric=metric
        )
    return significance.compare(
        [outputs for system in systems for outputs in system.outputs],
        text.references,
        metric=metric,
    )


def _renumber(table: Table, text: Text) -> Table:
    rows = [
        dataclasses.replace(
            row,
            lines=row.lines
            and [list(map(text.find_number, numbers)) for numbers in row.lines],
        )
        for row in table.rows
    ]
    return dataclasses.replace(table, rows=rows)


def _tables(lines: Lines, text: Text, *, metric: metrics_module.Metric) -> list[Table]:
    # The words of the main score. In text without spaces that is chrF2, whose words are
    # characters.
    word_metric = metrics_module.find_metrics(text.references, data=text.data)[0]
    tokenize = line_tables.tokenizer_of(word_metric)
    tables = [line_tables.score_by_length(lines, metric=metric, tokenize=tokenize)]
    if words := text.training_words:
        tables.append(
            line_tables.score_by_frequency(
                lines, counts=words.counts, tokenize=words.tokenize
            )
        )
    return [
        *tables,
        line_tables.count_kept(lines),
        line_tables.count_faults(
            lines,
            tokenize=tokenize,
            splits_into_words=line_tables.counts_words(word_metric),
        ),
    ]


def _pairs(
    systems: Sequence[System], text: Text, *, num_lines: int
) -> list[PairOfSystems]:
    """Compare each pair of systems line by line, by the mean chrF2 of their runs."""
    shown_systems = [
        line_differences.choose_typical_outputs(
            system.outputs, text.references, lowercase=text.data.lowercase_scores
        )
        for system in systems
    ]
    lines = Lines(
        text.source,
        text.references,
        [shown_system.outputs for shown_system in shown_systems],
    )
    return [
        line_differences.compare_pair(
            lines,
            [shown_system.scores for shown_system in shown_systems],
            first=first,
            second=second,
            num_lines=num_lines,
            find_number=text.find_number,
        )
        for first in range(len(systems))
        for second in range(first + 1, len(systems))
    ]
