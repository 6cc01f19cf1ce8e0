"""The difference of two systems, Holm's method, and sacreBLEU's paired bootstrap."""

import dataclasses
import itertools
from collections.abc import Sequence
from typing import Any

from sacrebleu import significance

from vaswani_jax.evaluation import metrics
from vaswani_jax.evaluation.bleu import Score
from vaswani_jax.evaluation.spread import Spread

# The tests, and how often each draws.
RANDOMIZATION, BOOTSTRAP = "randomization", "bootstrap"
DRAWS = {RANDOMIZATION: 10_000, BOOTSTRAP: 1_000}
LEVEL = 0.05


@dataclasses.dataclass(frozen=True)
class Difference:
    """Two systems and the test of their difference.

    Attributes:
        first: The number of a system, from 0.
        second: The number of another.
        value: The second's score minus the first's.
        num_lines: The number of lines whose statistics for the score differ.
        p_value: The probability, from 0 to 1, that equal systems differ at least as
            much.
        corrected_p_value: The same, corrected for the number of comparisons.
        interval: The ends of the 95% interval of `value`, from a bootstrap over the
            lines; None with sacreBLEU's bootstrap.
    """

    first: int
    second: int
    value: float
    num_lines: int
    p_value: float
    corrected_p_value: float
    interval: tuple[float, float] | None = None

    @property
    def is_significant(self) -> bool:
        """True if the corrected p-value is below `LEVEL`."""
        return self.corrected_p_value < LEVEL

    @property
    def verdict(self) -> str:
        """The words "different" or "no difference"."""
        return "different" if self.is_significant else "no difference"


@dataclasses.dataclass(frozen=True)
class MetricComparison:
    """The scores of all systems by one metric, and the test of each pair.

    Attributes:
        metric: The name of the score.
        lower_is_better: True for an error rate.
        scores: A score of each system, with its interval.
        differences: One of each pair.
        spreads: The scores of the runs of each system, whose mean is its score.
    """

    metric: str
    lower_is_better: bool
    scores: list[Score]
    differences: list[Difference]
    spreads: list[Spread]

    def seeds_overlap(self, difference: Difference) -> bool:
        """Return whether a seed of the worse system is as good as one of the better."""
        first, second = (
            self.spreads[number].values
            for number in (difference.first, difference.second)
        )
        if max(len(first), len(second)) == 1:
            return False
        return max(first) >= min(second) and max(second) >= min(first)

    def better(self, difference: Difference) -> int | None:
        """Return the number of the better system; None if there is no difference."""
        if not difference.is_significant:
            return None
        is_second = (difference.value > 0) != self.lower_is_better
        return difference.second if is_second else difference.first


class _Statistics:
    """A metric of sacreBLEU that counts the n-grams or edits of each system once."""

    def __init__(self, scorer: Any) -> None:
        self._scorer = scorer
        self._statistics: dict[tuple[str, ...], Any] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._scorer, name)

    def _extract_corpus_statistics(
        self, hypotheses: Sequence[str], references: Sequence[Sequence[str]]
    ) -> Any:
        key = tuple(hypotheses)
        if key not in self._statistics:
            self._statistics[key] = self._scorer._extract_corpus_statistics(
                hypotheses, references
            )
        return self._statistics[key]

    def of_lines(self, lines: Sequence[str]) -> Any:
        """Return the statistics of each line of a system that was scored."""
        return self._statistics[tuple(lines)]


def compare(
    systems: Sequence[Sequence[str]],
    references: Sequence[str],
    *,
    metric: metrics.Metric,
) -> MetricComparison:
    """Score systems, and test each pair of them by sacreBLEU's paired bootstrap.

    Its p-value is too small: where a difference exceeds its standard deviation, it is
    about that of a one-sided test. Equal systems have a p-value of 1 here, where
    sacreBLEU gives the smallest one possible. If m lines differ, their differences have
    2^m choices of signs, of which two are as extreme as the systems themselves, so the
    p-value is at least 2^(1 - m).

    Args:
        systems: The outputs of each system, a line for each reference.
        references: The references.
        metric: The score.
    """
    statistics = _Statistics(metric.scorer)
    caching_metric = dataclasses.replace(metric, scorer=statistics)
    scores = [
        caching_metric.score(outputs, references, resamples=metrics.RESAMPLES)
        for outputs in systems
    ]
    prepared_outputs = [metric.prepare(outputs) for outputs in systems]
    pairs, values = [], []
    for first in range(len(systems) - 1):
        paired_test = _paired_test(
            prepared_outputs[first:], metric.prepare(references), scorer=statistics
        )
        for second, p_value in enumerate(paired_test, start=first + 1):
            num_lines = sum(
                list(first_line) != list(second_line)
                for first_line, second_line in zip(
                    *(
                        statistics.of_lines(prepared_outputs[n])
                        for n in (first, second)
                    ),
                    strict=True,
                )
            )
            pairs.append((first, second, num_lines))
            values.append(min(1.0, max(p_value, 2.0 ** (1 - num_lines))))
    differences = [
        Difference(
            first=first,
            second=second,
            value=scores[second].value - scores[first].value,
            num_lines=num_lines,
            p_value=p_value,
            corrected_p_value=corrected_p_value,
        )
        for (first, second, num_lines), p_value, corrected_p_value in zip(
            pairs, values, holm(values), strict=True
        )
    ]
    return MetricComparison(
        metric.name,
        metric.lower_is_better,
        scores,
        differences,
        spreads=[Spread([score.value]) for score in scores],
    )


def _paired_test(
    systems: Sequence[Sequence[str]],
    references: Sequence[str],
    *,
    scorer: Any,
) -> list[float]:
    """Return sacreBLEU's p-value of each system but the first, against the first."""
    with metrics.without_messages():
        paired: Any = significance.PairedTest(
            [(str(number), outputs) for number, outputs in enumerate(systems)],
            {"": scorer},
            [references],
            test_type="bs",
            n_samples=DRAWS[BOOTSTRAP],
        )
        _, table = paired()
    [[_, *results]] = [column for name, column in table.items() if name != "System"]
    return [float(result.p_value) for result in results]


def holm(p_values: Sequence[float]) -> list[float]:
    """Return p-values corrected for their number, by Holm's step-down method.

    The smallest of n is multiplied by n, the next by n - 1, and so on; none becomes
    smaller than the one before it.

    >>> [round(p, 2) for p in holm([0.01, 0.04, 0.03])]
    [0.03, 0.06, 0.06]
    """
    order = sorted(range(len(p_values)), key=p_values.__getitem__)
    products = (
        min(1.0, (len(order) - rank) * p_values[index])
        for rank, index in enumerate(order)
    )
    corrected_values = dict(
        zip(order, itertools.accumulate(products, max), strict=True)
    )
    return [corrected_values[index] for index in range(len(order))]
