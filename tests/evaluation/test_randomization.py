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
    """Return the share of all exchanges whose means differ as much as the systems'.

    An exchange gives each system the other's outputs of some lines, those of all runs.
    """
    count = len(first) * len(second)
    systems = [[runs[n % len(runs)] for n in range(count)] for runs in (first, second)]
    values = []
    for choice in itertools.product((0, 1), repeat=len(references)):
        means = []
        for system in (0, 1):
            by_line = [systems[system ^ coin] for coin in choice]
            exchanged = [
                [runs[run][line] for line, runs in enumerate(by_line)]
                for run in range(count)
            ]
            means.append(mean_bleu(exchanged, references))
        values.append(abs(means[1] - means[0]))
    # The first choice exchanges nothing.
    return sum(value >= values[0] - 1e-9 for value in values) / len(values)


@pytest.mark.parametrize(
    ("num_first", "num_second"), [(1, 1), (2, 2), (2, 1), (3, 1), (2, 3)]
)
def test_p_values_are_those_of_the_enumeration(num_first: int, num_second: int) -> None:
    references = compared.lines(7, seed=5)
    systems = [
        [compared.with_errors(references, share=share, seed=n) for n in seeds]
        for share, seeds in (
            (0.2, range(1, 1 + num_first)),
            (0.3, range(4, 4 + num_second)),
        )
    ]
    [difference] = randomization.compare(
        systems, references, metric=multi_bleu_metric()
    ).differences
    expected = exact_p_value(*systems, references)
    assert expected < 1
    # Four standard deviations of 10,000 draws.
    assert difference.p_value == pytest.approx(expected, abs=0.02)
    values = [mean_bleu(system, references) for system in systems]
    assert difference.value == pytest.approx(values[1] - values[0])


@pytest.mark.parametrize(("num_first", "num_second"), [(2, 2), (3, 1), (2, 3)])
def test_repeated_runs_do_not_count_as_more_lines(
    num_first: int, num_second: int
) -> None:
    """The same run again and again is no more evidence than once."""
    references = compared.REFERENCES[:60]
    first, second = (
        compared.with_errors(references, share=share, seed=seed)
        for share, seed in ((0.2, 1), (0.23, 2))
    )
    metric = multi_bleu_metric()
    [single] = randomization.compare(
        [[first], [second]], references, metric=metric
    ).differences
    [repeated] = randomization.compare(
        [[first] * num_first, [second] * num_second], references, metric=metric
    ).differences
    assert 0.05 < single.p_value < 0.95
    assert repeated.p_value == pytest.approx(single.p_value, abs=0.02)


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


def simulate_runs(
    references: list[str], *, num_runs: int, seed: int
) -> list[list[str]]:
    """Return the outputs of runs that are alike: most errors are those of all."""
    outputs = compared.with_errors(references, share=0.3, seed=seed)
    return [
        outputs,
        *(
            compared.with_errors(outputs, share=0.02, seed=1000 * run + seed)
            for run in range(1, num_runs)
        ),
    ]


@pytest.mark.parametrize("num_runs", [1, 2])
def test_equal_systems_rarely_differ_significantly(num_runs: int) -> None:
    references, metric = compared.lines(40), multi_bleu_metric()
    num_different, num_pairs = 0, 200
    for number in range(num_pairs):
        first, second = (
            np.stack(
                [
                    randomization.extract(metric, outputs, references)
                    for outputs in simulate_runs(
                        references, num_runs=num_runs, seed=2 * number + n
                    )
                ]
            )
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
