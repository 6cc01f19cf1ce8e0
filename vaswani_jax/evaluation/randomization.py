"""Test whether systems differ by approximate randomisation, over one or more seeds.

A system's score is the mean of its runs. Each draw flips one coin for each line: the
systems exchange the outputs of all their runs for it, or keep them. The runs of a
system are alike on a line, because they share its difficulty. So a line is exchanged as
a whole, and more seeds do not count as more lines.

Clark, Dyer, Lavie and Smith (2011), "Better Hypothesis Testing for Statistical Machine
Translation: Controlling for Optimizer Instability", compare means of runs, too. But
their program MultEval permutes the runs of a line within each system, then flips a coin
for each line and run. Its p-values are too small where runs are alike.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from vaswani_jax.evaluation import metrics, significance
from vaswani_jax.evaluation.bleu import Interval, Score
from vaswani_jax.evaluation.significance import Difference, MetricComparison
from vaswani_jax.evaluation.spread import Spread

# Axes: R runs, L lines, N statistics of a line, D draws.
# Differences of scores that are equal but for rounding.
TIES = 1e-9
# The memory of the exchanges that are computed at a time.
BLOCK_BYTES = 2**26


def compare(
    systems: Sequence[Sequence[Sequence[str]]],
    references: Sequence[str],
    *,
    metric: metrics.Metric,
) -> MetricComparison:
    """Score systems by the mean of their runs, and test each pair of systems.

    Args:
        systems: The outputs of each run of each system, a line for each reference.
        references: The references.
        metric: The score.

    Raises:
        ValueError: The environment has a wrong seed; see `metrics.read_seed`.
    """
    scorer = metric.scorer
    statistics = [
        np.stack([extract(metric, outputs, references) for outputs in runs])
        for runs in systems
    ]
    spreads = [
        Spread([float(v) for v in _scores(scorer, run_statistics.sum(1))])
        for run_statistics in statistics
    ]
    seed = metrics.read_seed()
    samples = draw_lines(len(references), seed=seed)
    resampled = [
        resample(scorer, run_statistics, samples) for run_statistics in statistics
    ]
    signature = metric.score(systems[0][0], references, resamples=0).signature
    scores = [
        Score(metric.name, spread.mean, signature, _interval(values, seed=seed))
        for spread, values in zip(spreads, resampled, strict=True)
    ]
    pairs = [
        (first, second)
        for first in range(len(systems))
        for second in range(first + 1, len(systems))
    ]
    p_values = [
        compute_p_value(
            scorer,
            statistics[first],
            statistics[second],
            generator=_generator(seed),
        )
        for first, second in pairs
    ]
    differences = [
        Difference(
            first=first,
            second=second,
            value=scores[second].value - scores[first].value,
            num_lines=_count_different(statistics[first], statistics[second]),
            p_value=p_value,
            corrected_p_value=corrected_p_value,
            interval=_bounds(resampled[second] - resampled[first]),
        )
        for (first, second), p_value, corrected_p_value in zip(
            pairs, p_values, significance.holm(p_values), strict=True
        )
    ]
    return MetricComparison(
        metric.name, metric.lower_is_better, scores, differences, spreads
    )


def compute_p_value(
    scorer: Any,
    first: Float[np.ndarray, "F L N"],
    second: Float[np.ndarray, "S L N"],
    *,
    generator: np.random.Generator,
    draws: int = significance.DRAWS[significance.RANDOMIZATION],
) -> float:
    """Return the p-value of a difference of means by approximate randomisation.

    In each draw, the systems exchange the outputs of all their runs for random lines.
    Run k of one system exchanges with run k of the other, so the runs of each are
    repeated up to a common number. The p-value is the share of draws, the systems
    themselves among them, whose means differ at least as much. With different numbers
    of runs it is approximate: means of more runs vary less.

    Args:
        scorer: sacreBLEU's metric.
        first: The statistics of the lines of each run of a system.
        second: Those of another system.
        generator: Draws the exchanges.
        draws: Their number.
    """
    num_runs = math.lcm(len(first), len(second))
    first, second = (
        np.tile(runs, (num_runs // len(runs), 1, 1)).astype(np.float32)
        for runs in (first, second)
    )
    _, L, N = first.shape
    first_sums, second_sums = first.sum(1).ravel(), second.sum(1).ravel()
    # What an exchange of each line adds to the first system's sums, run by run.
    line_changes = np.hstack(list(second - first))

    def differences(exchanges: Float[np.ndarray, "D L"]) -> Float[np.ndarray, " D"]:
        changes = exchanges @ line_changes
        means = [
            _scores(scorer, sums.reshape(-1, N)).reshape(-1, num_runs).mean(1)
            for sums in (first_sums + changes, second_sums - changes)
        ]
        return np.abs(means[1] - means[0])

    [observed_difference] = differences(np.zeros((1, L), np.float32))
    # Sums become lists of Python's numbers for sacreBLEU.
    block = max(1, BLOCK_BYTES // (16 * L + 40 * num_runs * N))
    extreme = 0
    for start in range(0, draws, block):
        D = min(block, draws - start)
        # The systems exchange a line if the first one's number is the larger.
        numbers = generator.random((D, L, 2))
        exchanges = (numbers[..., 0] > numbers[..., 1]).astype(np.float32)
        extreme += int(np.sum(differences(exchanges) >= observed_difference - TIES))
    return (extreme + 1) / (draws + 1)


def draw_lines(num_lines: int, *, seed: str) -> Float[np.ndarray, "D L"]:
    """Return how often each resample has each line: the draws of sacreBLEU."""
    choices = _generator(seed).choice(
        num_lines, size=(metrics.RESAMPLES, num_lines), replace=True
    )
    return np.stack(
        [np.bincount(lines, minlength=num_lines) for lines in choices]
    ).astype(np.float32)


def resample(
    scorer: Any,
    statistics: Float[np.ndarray, "R L N"],
    samples: Float[np.ndarray, "D L"],
) -> Float[np.ndarray, " D"]:
    """Return the mean score of all runs in each resample of the lines."""
    by_run = [
        _scores(scorer, samples @ lines.astype(np.float32)) for lines in statistics
    ]
    return np.mean(by_run, axis=0)


def extract(
    metric: metrics.Metric, outputs: Sequence[str], references: Sequence[str]
) -> Float[np.ndarray, "L N"]:
    """Return what a metric counts in each line."""
    rows = metric.scorer._extract_corpus_statistics(
        metric.prepare(outputs), [metric.prepare(references)]
    )
    return np.array(rows, np.float64)


def _scores(scorer: Any, sums: Float[np.ndarray, "D N"]) -> Float[np.ndarray, " D"]:
    return np.array(
        [scorer._compute_score_from_stats(row).score for row in sums.tolist()],
        np.float64,
    )


def _generator(seed: str) -> np.random.Generator:
    return np.random.default_rng(None if seed == "none" else int(seed))


def _bounds(values: Float[np.ndarray, " D"]) -> tuple[float, float]:
    """Return the ends of the middle 95%, as sacreBLEU chooses them."""
    sorted_values = np.sort(values)
    cut = len(values) // 40
    return float(sorted_values[cut]), float(sorted_values[len(values) - cut - 1])


def _interval(values: Float[np.ndarray, " D"], *, seed: str) -> Interval:
    low, high = _bounds(values)
    return Interval(float(values.mean()), (high - low) / 2, len(values), seed)


def _count_different(
    first: Float[np.ndarray, "F L N"], second: Float[np.ndarray, "S L N"]
) -> int:
    """Return the number of lines on which not all runs have equal statistics."""
    pool = np.concatenate([first, second])
    return int((pool != pool[:1]).any(axis=(0, 2)).sum())
