"""Two seeds are no different, half of the pairs is; all parts are there."""

import dataclasses
import json
import pathlib
from typing import Any

import pytest

from tests.evaluation import compared
from vaswani_jax.evaluation import comparison, significance
from vaswani_jax.evaluation.comparison import System, SystemComparison, Text

KEPT = pathlib.Path(__file__).parent / "kept_outputs"
SHARED = pathlib.Path(__file__).parents[3] / "shared/data/scored_outputs"


@pytest.fixture(scope="module")
def result() -> SystemComparison:
    return comparison.compare(
        [*compared.SEEDS, compared.HALF], compared.TEXT, num_lines=2
    )


def test_two_seeds_are_no_different_and_half_of_the_pairs_is(
    result: SystemComparison,
) -> None:
    assert [scores.metric for scores in result.scores] == ["sacrebleu", "chrf"]
    for scores in result.scores:
        verdicts = [difference.verdict for difference in scores.differences]
        assert verdicts == ["no difference", "different", "different"]
        better = [scores.better(difference) for difference in scores.differences]
        assert better == [None, 0, 1]


def test_a_comparison_has_every_table_and_every_pair(result: SystemComparison) -> None:
    assert [table.key for table in result.tables] == [
        "length",
        "frequency",
        "kept",
        "faults",
    ]
    for table in result.tables:
        assert table.rows and all(len(row.values) == 3 for row in table.rows)
    lines = [row.count for row in result.tables[0].rows]
    assert sum(lines) == result.num_lines == 150
    assert [(pair.first, pair.second) for pair in result.pairs] == [
        (0, 1),
        (0, 2),
        (1, 2),
    ]
    for pair in result.pairs:
        assert pair.num_first_better + pair.num_second_better + pair.num_equal == 150
        assert len(pair.first_better) == len(pair.second_better) == 2


def test_json_has_the_verdicts(result: SystemComparison) -> None:
    record: dict[str, Any] = json.loads(json.dumps(result.as_dict(), allow_nan=False))
    assert record["systems"][2] == {
        "name": "half",
        "origin": compared.HALF.origin,
        "seeds": 1,
    }
    assert (record["test"], record["draws"], record["seed"]) == (
        "randomization",
        10_000,
        "12345",
    )
    first, second, _ = record["scores"][0]["differences"]
    assert (first["verdict"], first["better"]) == ("no difference", None)
    assert (second["verdict"], second["better"]) == ("different", 0)
    assert record["pairs"][0]["first_better"][0]["spans"]


@pytest.fixture(scope="module")
def of_seeds() -> SystemComparison:
    return comparison.compare(
        [compared.RECIPE, compared.SAME, compared.HALF], compared.TEXT, num_lines=1
    )


@pytest.fixture(scope="module")
def single() -> SystemComparison:
    """The seeds, each a system of its own."""
    return comparison.compare(compared.SEEDS, compared.TEXT)


def test_a_system_of_seeds_is_compared_by_its_mean(
    of_seeds: SystemComparison, single: SystemComparison
) -> None:
    assert of_seeds.num_seeds == [2, 3, 1] and of_seeds.has_seeds
    assert (of_seeds.test, of_seeds.draws) == ("randomization", 10_000)
    for scores, each in zip(of_seeds.scores, single.scores, strict=True):
        verdicts = [difference.verdict for difference in scores.differences]
        assert verdicts == ["no difference", "different", "different"]
        values = [score.value for score in each.scores]
        assert scores.spreads[0].values == pytest.approx(values)
        assert scores.scores[0].value == pytest.approx(sum(values) / 2)
        for difference in scores.differences:
            assert difference.interval is not None
            low, high = difference.interval
            assert low < difference.value < high
            assert (low < 0 < high) == (difference.verdict == "no difference")


def test_tables_and_lines_of_seeds_have_their_means(
    of_seeds: SystemComparison, single: SystemComparison
) -> None:
    for table, each in zip(of_seeds.tables, single.tables, strict=True):
        for row, other in zip(table.rows, each.rows, strict=True):
            assert len(row.values) == 3
            known = [value for value in other.values if value is not None]
            assert row.values[0] == pytest.approx(sum(known) / 2 if known else None)
    for pair in of_seeds.pairs:
        assert pair.num_first_better + pair.num_second_better + pair.num_equal == 150
        [line] = pair.first_better
        outputs = [
            " ".join(span.text for span in line.output(side))
            for side in ("first", "second")
        ]
        systems = [compared.RECIPE, compared.SAME, compared.HALF]
        for output, number in zip(outputs, (pair.first, pair.second), strict=True):
            runs = systems[number].outputs
            assert output in [run[line.line - 1] for run in runs]


def test_json_has_the_seeds(of_seeds: SystemComparison) -> None:
    record: dict[str, Any] = json.loads(json.dumps(of_seeds.as_dict(), allow_nan=False))
    assert [system["seeds"] for system in record["systems"]] == [2, 3, 1]
    first, _, third = record["scores"][0]["spreads"]
    assert len(first["values"]) == 2 and first["deviation"] > 0
    assert third["deviation"] is None
    assert len(record["scores"][0]["differences"][0]["interval"]) == 2


def test_without_training_text_there_is_no_table_of_frequencies() -> None:
    text = dataclasses.replace(compared.TEXT, training_words=None)
    result = comparison.compare(compared.SEEDS, text, metrics=["chrf"], num_lines=0)
    assert "frequency" not in {table.key for table in result.tables}
    assert result.pairs[0].first_better == [] and result.training_text == ""


@pytest.mark.parametrize(
    ("form", "metric"),
    [("detokenized", "bleu"), ("detokenized", "chrf"), ("tokenized", "chrf")],
)
def test_lines_without_spaces_have_characters_whatever_the_metric(
    form: str, metric: str
) -> None:
    # Chinese, of 6 to 28 characters a line.
    references = ["".join("天气" for _ in line.split()) for line in compared.REFERENCES]
    systems = [
        System(name, [[line[::-1] for line in references]], "made up") for name in "ab"
    ]
    text = dataclasses.replace(
        compared.TEXT,
        references=references,
        data=compared.scoring(
            **{"data.target_locale": "zh_Hans", "data.text_form": form}
        ),
        training_words=None,
    )
    result = comparison.compare(systems, text, metrics=[metric], num_lines=0)
    [table] = [table for table in result.tables if table.key == "length"]
    ranges = {
        "6 to 10": range(6, 11),
        "11 to 15": range(11, 16),
        "16 to 20": range(16, 21),
        "21 to 30": range(21, 31),
    }
    assert {row.label: row.count for row in table.rows} == {
        label: sum(len(line) in lengths for line in references)
        for label, lengths in ranges.items()
    }


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"systems": [compared.RECIPE, compared.HALF], "test": "bootstrap"},
            "test 'bootstrap' cannot compare several seeds: leave it out or use random",
        ),
        ({"test": "t"}, "the test is randomization or bootstrap, not 't'"),
        ({"metrics": ["comet"]}, "a metric is one of bleu, chrf, chrf\\+\\+, ter, not"),
    ],
)
def test_what_makes_no_sense_is_refused(changes: dict[str, Any], message: str) -> None:
    options = {"systems": compared.SEEDS, "text": compared.TEXT, **changes}
    systems, text = options.pop("systems"), options.pop("text")
    with pytest.raises(ValueError, match=message):
        comparison.compare(systems, text, **options)


@pytest.mark.parametrize("test", significance.DRAWS)
def test_a_wrong_seed_is_refused_with_the_options(
    test: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SACREBLEU_SEED", "abc")
    with pytest.raises(ValueError, match=r"SACREBLEU_SEED must be .*, got 'abc'"):
        comparison.choose_scores(compared.TEXT, metrics=[], test=test, has_seeds=False)


def test_the_seed_that_sacrebleu_takes_for_none_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def choose(test: str) -> str:
        return comparison.choose_scores(
            compared.TEXT, metrics=[], test=test, has_seeds=False
        )[1]

    monkeypatch.setenv("SACREBLEU_SEED", "0")
    assert choose(significance.RANDOMIZATION) == significance.RANDOMIZATION
    with pytest.raises(ValueError, match="SACREBLEU_SEED=0, sacreBLEU's paired boot"):
        choose(significance.BOOTSTRAP)
    monkeypatch.setenv("SACREBLEU_SEED", "None")
    assert choose(significance.BOOTSTRAP) == significance.BOOTSTRAP


def test_a_text_of_too_many_lines_is_refused() -> None:
    lines = ["a"] * 10_001
    systems = [System(name, [lines], "") for name in "ab"]
    text = Text("long", lines, lines, compared.scoring())
    with pytest.raises(ValueError, match="long has 10,001 lines; at most 10,000 can"):
        comparison.compare(systems, text)


def test_tokenized_text_has_bleu_alone() -> None:
    data = compared.scoring(**{"data.text_form": "tokenized"})
    chosen = comparison.choose_metrics([], references=["a b"], data=data)
    assert [metric.name for metric in chosen] == ["tokenized_bleu"]
    with pytest.raises(ValueError, match="this text has no ter: its scores are token"):
        comparison.choose_metrics(["ter"], references=["a b"], data=data)


def test_of_kept_runs_seeds_are_no_different_and_half_of_the_pairs_is() -> None:
    """Outputs of the runs of docs/tutorials/compare.md, on the test set."""
    references, *outputs = (
        (KEPT / f"{name}.txt").read_text(encoding="utf-8").splitlines()
        for name in ("references", "whole-1", "whole-2", "half-1")
    )
    data = compared.scoring(**{"data.target_locale": "fr"})
    text = Text("test", references, references, data)
    whole, other, half = outputs
    runs = [
        System(name, [lines], "") for name, lines in zip("abc", outputs, strict=True)
    ]
    systems = [System("whole", [whole, other], ""), System("half", [half], "")]
    single = comparison.compare(runs, text, metrics=["bleu"], num_lines=0)
    of_seeds = comparison.compare(systems, text, metrics=["bleu"], num_lines=0)
    verdicts = [
        (difference.verdict, result.scores[0].better(difference))
        for result in (single, of_seeds)
        for difference in result.scores[0].differences
    ]
    different = ("different", 0)
    assert verdicts == [("no difference", None), different, ("different", 1), different]
    assert not of_seeds.scores[0].seeds_overlap(of_seeds.scores[0].differences[0])


@pytest.mark.shared
def test_two_published_systems_are_different() -> None:
    """compare-mt's example: the phrase-based system against the neural one."""
    if not SHARED.is_dir():
        pytest.skip("there is no ../shared")
    references, *systems = (
        (SHARED / f"comparemt_ted_slk-eng.{name}.tok.en").read_text().split("\n")[:500]
        for name in ("ref", "sys1", "sys2")
    )
    data = compared.scoring(
        **{"data.text_form": "tokenized", "data.target_locale": "en"}
    )
    result = comparison.compare(
        [System(str(number), [lines], "") for number, lines in enumerate(systems)],
        Text("ted", references, references, data),
        test=significance.RANDOMIZATION,
    )
    [difference] = result.scores[0].differences
    assert difference.verdict == "different" and difference.value > 0
