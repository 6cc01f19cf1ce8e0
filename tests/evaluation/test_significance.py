"""The bootstrap is sacreBLEU's, and agrees with resampling written out in NumPy."""

import pathlib
import re
import subprocess
import sys

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies

from tests import settings
from vaswani_jax.evaluation import bleu, metrics, significance

REFERENCES = [f"Das ist der Satz {n}, und er ist wahr." for n in range(40)]
# The first is wrong in a word of every third line, the second of every second.
FIRST = [
    line.replace("wahr", "falsch") if n % 3 == 0 else line
    for n, line in enumerate(REFERENCES)
]
SECOND = [
    line.replace("ist der", "war der") if n % 2 else line
    for n, line in enumerate(REFERENCES)
]


def metric_named(name: str, form: str = "detokenized") -> metrics.Metric:
    data = settings.small_settings(
        **{"data.text_form": form, "data.target_locale": "de"}
    ).data
    found = metrics.find_metrics(REFERENCES, data=data)
    return next(metric for metric in found if metric.name == name)


def compare(
    systems: list[list[str]], name: str = "sacrebleu"
) -> significance.MetricComparison:
    return significance.compare(systems, REFERENCES, metric=metric_named(name))


def test_p_values_are_those_of_the_command_line(tmp_path: pathlib.Path) -> None:
    for name, lines in (("first", FIRST), ("second", SECOND), ("refs", REFERENCES)):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines))
    words = [sys.executable, "-m", "sacrebleu", "refs", "-i", "first", "second"]
    words += ["-m", "bleu", "chrf", "-f", "text", "--paired-bs"]
    printed = subprocess.run(words, cwd=tmp_path, capture_output=True, check=True)
    # Its JSON of a bootstrap fails; text has four digits.
    p_values = re.findall(r"p = ([\d.]+)", printed.stdout.decode())
    assert len(p_values) == 2
    for name, expected in zip(("sacrebleu", "chrf"), p_values, strict=True):
        [difference] = compare([FIRST, SECOND], name).differences
        assert difference.p_value == pytest.approx(float(expected), abs=6e-5)
        assert difference.num_lines > 0


def test_the_bootstrap_agrees_with_resamples_in_numpy() -> None:
    """The difference of resampled texts, centred, against the difference itself."""
    first, second, references = FIRST[:10], SECOND[:10], REFERENCES[:10]
    metric = metric_named("tokenized_bleu", "tokenized")
    [difference] = significance.compare(
        [first, second], references, metric=metric
    ).differences
    differences = []
    for lines in np.random.default_rng(12345).choice(10, size=(1000, 10)):
        one, other, truth = (
            [text[number] for number in lines] for text in (first, second, references)
        )
        differences.append(
            abs(bleu.multi_bleu(other, truth) - bleu.multi_bleu(one, truth))
        )
    centred = np.array(differences) - np.mean(differences)
    # Ties fall to either side of float32.
    counts = [
        np.sum(centred > abs(difference.value) + tie) + 1 for tie in (1e-3, -1e-3)
    ]
    assert counts[0] / 1001 <= difference.p_value <= counts[1] / 1001


@pytest.mark.parametrize("name", ["sacrebleu", "chrf", "ter"])
def test_a_system_and_itself_are_no_different(name: str) -> None:
    comparison = compare([FIRST, list(FIRST)], name)
    [difference] = comparison.differences
    assert (difference.num_lines, difference.value) == (0, 0)
    assert difference.p_value == difference.corrected_p_value == 1
    assert difference.verdict == "no difference"
    assert comparison.better(difference) is None


def test_what_a_metric_does_not_see_is_no_difference() -> None:
    """TER ignores case; sacreBLEU alone gives p = 0.001."""
    upper = [line.upper() for line in FIRST]
    [difference] = compare([FIRST, upper], "ter").differences
    assert (difference.num_lines, difference.verdict) == (0, "no difference")
    [difference] = compare([FIRST, upper], "sacrebleu").differences
    assert difference.verdict == "different"


def test_a_few_lines_are_no_evidence() -> None:
    """Of 2^m exchanges of m lines two are as extreme: sacreBLEU counts none."""
    for count in (1, 5):
        worse = [
            line.replace("wahr", "falsch") if n < count else line
            for n, line in enumerate(REFERENCES)
        ]
        [difference] = compare([REFERENCES, worse]).differences
        assert difference.num_lines == count and difference.value < 0
        assert difference.p_value >= 2.0 ** (1 - count)
        assert difference.verdict == "no difference"


def test_a_clearly_worse_system_is_different_whatever_the_direction() -> None:
    worse = [line.replace("ist", "war") for line in REFERENCES]
    for name in ("sacrebleu", "ter"):
        comparison = compare([worse, FIRST, REFERENCES], name)
        assert [(d.first, d.second) for d in comparison.differences] == [
            (0, 1),
            (0, 2),
            (1, 2),
        ]
        first, second, _ = comparison.differences
        assert [first.verdict, second.verdict] == ["different"] * 2
        assert comparison.better(first) == 1 and comparison.better(second) == 2
        for difference in comparison.differences:
            scores = comparison.scores
            expected = scores[difference.second].value - scores[difference.first].value
            assert difference.value == expected
        corrected = [d.corrected_p_value for d in comparison.differences]
        assert corrected == significance.holm(
            [d.p_value for d in comparison.differences]
        )


def test_holm_s_correction_by_hand() -> None:
    # 0.01 * 4; 0.013 * 3; 0.014 * 2, raised to the one before; 0.19 * 1.
    corrected = significance.holm([0.014, 0.01, 0.19, 0.013])
    assert corrected == pytest.approx([0.04, 0.04, 0.19, 0.04])
    assert significance.holm([0.013, 0.02]) == pytest.approx([0.026, 0.026])
    assert significance.holm([0.6, 0.7]) == [1.0, 1.0]
    assert significance.holm([0.3]) == [0.3] and significance.holm([]) == []


@hypothesis.given(strategies.lists(strategies.floats(0, 1), max_size=8))
def test_holm_lies_between_none_and_bonferroni(p_values: list[float]) -> None:
    corrected = significance.holm(p_values)
    for p_value, after in zip(p_values, corrected, strict=True):
        assert p_value <= after <= min(1, p_value * len(p_values)) or after == max(
            c for p, c in zip(p_values, corrected, strict=True) if p <= p_value
        )
    order = sorted(range(len(p_values)), key=p_values.__getitem__)
    assert [corrected[n] for n in order] == sorted(corrected)
