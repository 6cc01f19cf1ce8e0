"""What compare prints, line by line."""

import re

import pytest

from tests.evaluation import compared
from vaswani_jax.evaluation import comparison, comparison_text


@pytest.fixture(scope="module")
def shown() -> str:
    systems = [*compared.SEEDS, compared.HALF]
    return comparison.compare(
        systems, compared.TEXT, metrics=["bleu"], num_lines=1
    ).format()


def test_systems_scores_and_verdicts_are_told(shown: str) -> None:
    head, scores, test, *_ = shown.split("\n\n")
    assert head.split("\n")[0].startswith("test: 150 lines, references sha256 ")
    assert head.split("\n")[3] == 'C  half   made <up> & "short"'
    signature, first, _, _, *differences = scores.split("\n")
    assert signature.startswith("sacrebleu  BLEU|nrefs:1|case:mixed|eff:no|tok:13a|")
    assert re.fullmatch(r"A      \d\d\.\d\d  μ = \d\d\.\d\d ± \d\.\d\d", first)
    assert re.fullmatch(
        r"B - A +[+-]\d\.\d\d  \[-\d\.\d\d, \+\d\.\d\d\]  p = \d\.\d{3}  no difference",
        differences[0],
    )
    number = r"\d+\.\d\d"
    assert re.fullmatch(
        rf"C - A -{number}  \[-{number}, -{number}\]  p = 0\.000\d  "
        "different: A is better",
        differences[1],
    )
    assert test == (
        "approximate randomisation, 10,000 exchanges; 95% intervals of differences "
        "from 1,000 resamples, seed 12345; systems are different if p, corrected by "
        "Holm's method for 3 pairs of systems, is below 0.05"
    )


def test_sacrebleus_bootstrap_has_no_interval_of_a_difference() -> None:
    result = comparison.compare(
        compared.SEEDS, compared.TEXT, metrics=["bleu"], test="bootstrap", num_lines=0
    )
    _, scores, test, *_ = result.format().split("\n\n")
    assert re.fullmatch(
        r"B - A +[+-]\d\.\d\d  p = \d\.\d{3}  no difference", scores.split("\n")[-1]
    )
    assert test.startswith("sacreBLEU's paired bootstrap, 1,000 resamples, seed 12345")


def test_columns_of_tables_are_aligned(shown: str) -> None:
    [table] = [part for part in shown.split("\n\n") if part.startswith("F1 of words")]
    _, *rows = table.split("\n")
    assert len({len(row) for row in rows}) == 1
    assert rows[0].split() == ["words", "A", "B", "C"]
    assert [row.split("  ")[0].strip() for row in rows[1:]] == ["0", "1", "5 to 9"]


def test_words_of_one_output_stand_in_the_marks_of_wdiff(shown: str) -> None:
    pairs = [part for part in shown.split("\n\n") if " by chrF2 of each line" in part]
    assert len(pairs) == 3
    head, line, source, _, words, *_ = pairs[1].split("\n")
    assert re.match(r"A and C by chrF2 of each line: A is better on \d+, C on ", head)
    assert re.fullmatch(r"line \d+: A \d+\.\d, C \d+\.\d", line)
    assert source.startswith("  source     Source: ")
    assert words.startswith("  [-A-] {+C+}  ") and "{+Fehler" in words


def test_one_pair_is_not_corrected() -> None:
    result = comparison.compare(compared.SEEDS, compared.TEXT, metrics=["ter"])
    assert comparison_text.describe_test(result).endswith("if p is below 0.05")


def test_systems_of_seeds_have_their_spread_and_notes() -> None:
    result = comparison.compare(
        [compared.RECIPE, compared.HALF], compared.TEXT, metrics=["bleu"], num_lines=0
    )
    _, scores, test, *_ = result.format().split("\n\n")
    _, first, second, difference = scores.split("\n")
    number = r"\d+\.\d\d"
    assert re.fullmatch(
        rf"A      {number}  sd {number}, {number} to {number}  μ = {number} ± {number}",
        first,
    )
    assert re.fullmatch(rf"B      {number}  one seed +μ = {number} ± {number}", second)
    assert first.index("μ") == second.index("μ")
    assert re.fullmatch(
        rf"B - A -{number}  \[-{number}, -{number}\]  p = 0\.0\d+  "
        "different: A is better",
        difference,
    )
    assert test.split("\n") == [
        "approximate randomisation over all seeds, 10,000 exchanges; 95% intervals of "
        "differences from 1,000 resamples, seed 12345; systems are different if p is "
        "below 0.05",
        "scores and tables show the mean over a system's seeds; a line shows the mean "
        "chrF2 and the nearest output",
        "B has one seed: no test can say how another would score",
    ]


def test_of_text_without_spaces_the_letters_that_differ_are_marked() -> None:
    result = comparison.compare(
        compared.WITHOUT_SPACES, compared.CHINESE, metrics=["chrf"]
    )
    assert "\n  [-A-] {+B+}  他很[-高兴-]{+开心+}。" in result.format()
