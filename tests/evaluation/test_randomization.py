"""Randomisation agrees with the enumeration of all exchanges and with sacreBLEU."""

import itertools
import math

import numpy as np
import pytest
from sacrebleu import significance as sacrebleu_significance

from tests.evaluation import compared
from vaswani_jax.evaluation import bleu, metrics, randomization, significance

REFERENCES = compared.lines(4, seed=5)
# Two seeds of a system, and one or two of another.
FIRST = [compared.with_errors(REFERENCES, share=0.15, seed=n) for n in (1, 2)]
SECOND = [compared.with_errors(REFERENCES, share=0.3, seed=n) for n in (4, 5)]


def multi_bleu_metric() -> metrics.Metric:
    data = compared.scoring(**{"data.text_form": "tokenized"})
    [metric] = metrics.find_metrics(REFERENCES, data=data)
    return metric


def mean_bleu(runs: list[list[str]], references: list[str]) -> float:
    return float(np.mean([bleu.multi_bleu(run, references) for run in runs]))


def exact_p_value(
    first: list[list[str]], second: list[list[str]], references: list[str]
) -> float:
    """Return the share of all exchanges whose means differ as much as the systems'."""
    num_first, runs = len(first), [*first, *second]
    observed = abs(mean_bleu(second, references) - mean_bleu(first, references))
    orders = list(itertools.permutations(range(len(runs))))
    extreme = total = 0
    for choice in itertools.product(orders, repeat=len(references)):
        exchanged = [
            [runs[order[place]][line] for line, order in enumerate(choice)]
            for place in range(len(runs))
        ]
        means = [
            mean_bleu(part, references)
            for part in (exchanged[:num_first], exchanged[num_first:])
        ]
        extreme += abs(means[1] - means[0]) >= observed - 1e-9
        total += 1
    return extreme / total


@pytest.mark.parametrize(
    ("num_second", "num_lines"), [(1, 4), (2, 2)], ids=["two-one", "two-two"]
)
def test_p_values_are_those_of_the_enumeration(num_second: int, num_lines: int) -> None:
    references = REFERENCES[-num_lines:]
    systems = [
        [run[-num_lines:] for run in runs] for runs in (FIRST, SECOND[:num_second])
    ]
    [difference] = randomization.compare(
        systems, references, metric=multi_bleu_metric()
    ).differences
    expected = exact_p_value(*systems, references)
    assert 0.05 < expected < 0.95
    # Four standard deviations of 10,000 draws.
    assert difference.p_value == pytest.approx(expected, abs=0.02)
    values = [mean_bleu(system, references) for system in systems]
    assert difference.value == pytest.approx(values[1] - values[0])


def test_two_single_runs_get_sacrebleus_p_value() -> None:
    references = compared.REFERENCES[:60]
    systems = [
        compared.with_errors(references, share=share, seed=seed)
        for share, seed in ((0.2, 1), (0.23, 2))
    ]
    metric = metrics.find_metrics(references, data=compared.scoring())[0]
    ours = randomization.compare(
        [[system] for system in systems], references, metric=metric
    )
    theirs = sacrebleu_significance.PairedTest(
        [(str(number), system) for number, system in enumerate(systems)],
        {"": metric.scorer},
        [references],
        test_type="ar",
    )
    [_, expected] = next(
        column for name, column in theirs()[1].items() if name != "System"
    )
    [difference] = ours.differences
    assert 0.05 < expected.p_value < 0.95
    assert difference.p_value == pytest.approx(expected.p_value, abs=0.03)
    # Scores and their intervals do not depend on the test.
    by_bootstrap = significance.compare(systems, references, metric=metric)
    assert difference.num_lines == by_bootstrap.differences[0].num_lines
    for score, other in zip(ours.scores, by_bootstrap.scores, strict=True):
        assert (score.name, score.signature) == (other.name, other.signature)
        assert score.value == pytest.approx(other.value)
        assert score.interval and other.interval and score.interval.seed == "12345"
        assert score.interval.mean == pytest.approx(other.interval.mean, rel=1e-5)
        width = other.interval.half_width
        assert score.interval.half_width == pytest.approx(width, rel=1e-4)


def test_ties_count_as_extreme() -> None:
    """Of 20 lines with an edit each, 14 speak for a system and 6 for the other."""
    references = [f"das ist der Satz {number}" for number in range(20)]
    wrong = [line.replace("ist", "war") for line in references]
    first, second = (
        [
            wrong[n] if (n < 14) == is_first else line
            for n, line in enumerate(references)
        ]
        for is_first in (True, False)
    )
    found = metrics.find_metrics(references, data=compared.scoring())
    metric = next(metric for metric in found if metric.name == "ter")
    result = randomization.compare([[first], [second]], references, metric=metric)
    [difference] = result.differences
    extreme = sum(math.comb(20, n) for n in range(21) if abs(2 * n - 20) >= 8)
    assert difference.num_lines == 20
    assert difference.p_value == pytest.approx(extreme / 2**20, abs=0.013)


def test_equal_systems_rarely_differ_significantly() -> None:
    references, metric = compared.lines(40), multi_bleu_metric()
    num_different, num_pairs = 0, 200
    for number in range(num_pairs):
        first, second = (
            randomization.extract(
                metric,
                compared.with_errors(references, share=0.3, seed=2 * number + n),
                references,
            )[None]
            for n in range(2)
        )
        p_value = randomization.compute_p_value(
            metric.scorer,
            first,
            second,
            generator=np.random.default_rng(number),
            draws=199,
        )
        num_different += p_value < significance.LEVEL
    # Ten are expected; so few or so many come once in 2,000 times.
    assert 1 < num_different < 22


def test_intervals_are_those_of_resampled_texts() -> None:
    """Lines are drawn once for all seeds; a resample's score is the mean of theirs."""
    references = compared.REFERENCES[:12]
    systems = [
        [compared.with_errors(references, share=share, seed=n) for n in seeds]
        for share, seeds in ((0.1, (1, 2)), (0.2, (3, 4, 5)))
    ]
    result = randomization.compare(systems, references, metric=multi_bleu_metric())
    differences = []
    for lines in np.random.default_rng(12345).choice(12, size=(1000, 12)):
        means = [
            mean_bleu(
                [[run[n] for n in lines] for run in runs],
                [references[n] for n in lines],
            )
            for runs in systems
        ]
        differences.append(means[1] - means[0])
    [difference] = result.differences
    ordered = np.sort(differences)
    assert difference.interval == pytest.approx((ordered[25], ordered[974]), abs=1e-3)
    assert [spread.values for spread in result.spreads] == [
        pytest.approx([bleu.multi_bleu(run, references) for run in runs])
        for runs in systems
    ]
    means = [spread.mean for spread in result.spreads]
    assert [score.value for score in result.scores] == means
    assert difference.value == means[1] - means[0]


def test_the_same_runs_are_no_difference_in_any_order() -> None:
    metric = metrics.find_metrics(REFERENCES, data=compared.scoring())[0]
    result = randomization.compare([FIRST, FIRST[::-1]], REFERENCES, metric=metric)
    [difference] = result.differences
    assert difference.value == pytest.approx(0)
    assert difference.interval == pytest.approx((0, 0))
    assert difference.p_value == difference.corrected_p_value == 1
    assert result.better(difference) is None


def test_p_values_of_several_pairs_are_corrected() -> None:
    third = [REFERENCES]
    result = randomization.compare(
        [FIRST, SECOND, third], REFERENCES, metric=multi_bleu_metric()
    )
    assert [(d.first, d.second) for d in result.differences] == [(0, 1), (0, 2), (1, 2)]
    assert [d.corrected_p_value for d in result.differences] == significance.holm(
        [d.p_value for d in result.differences]
    )


def test_seeds_overlap_if_one_of_the_worse_system_is_as_good() -> None:
    worse, better = FIRST[0], REFERENCES
    metric = multi_bleu_metric()

    def overlap(*systems: list[list[str]]) -> bool:
        result = randomization.compare(systems, REFERENCES, metric=metric)
        return result.seeds_overlap(result.differences[0])

    assert overlap([worse, better], [better]) and overlap([better], [worse, better])
    assert not overlap([worse, worse], [better]) and not overlap(
        [better, better], [worse]
    )
    single = randomization.compare([[worse], [worse]], REFERENCES, metric=metric)
    assert not single.seeds_overlap(single.differences[0])
