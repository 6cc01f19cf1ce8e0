"""Tables of a few lines, counted by hand."""

import collections

import pytest
import sacrebleu

from tests import settings
from vaswani_jax.evaluation import bleu, line_tables, metrics
from vaswani_jax.evaluation.line_tables import Lines


def metric(form: str = "detokenized", **changes: object) -> metrics.Metric:
    values = {"data.text_form": form, "data.target_locale": "de"}
    data = settings.small_settings(**values | changes).data
    return metrics.find_metrics(["Ein Satz."], data=data)[0]


def rows(table: line_tables.Table) -> dict[str, tuple[int, list[float | None]]]:
    return {row.label: (row.count, row.values) for row in table.rows}


def test_words_are_those_that_the_score_counts() -> None:
    assert line_tables.tokenizer_of(metric())("Ja, gut.") == ["Ja", ",", "gut", "."]
    assert line_tables.tokenizer_of(metric("tokenized"))("Ja, gut.") == ["Ja,", "gut."]
    lower = metric(**{"data.lowercase_scores": True})
    assert line_tables.tokenizer_of(lower)("Ja") == ["ja"]
    chrf = metrics.Metric("chrf", "chrF2", sacrebleu.CHRF())
    assert line_tables.tokenizer_of(chrf)("他 很高。") == ["他", "很", "高", "。"]
    assert line_tables.counts_words(metric()) and not line_tables.counts_words(chrf)


def test_each_length_has_the_score_of_its_lines() -> None:
    short, long = "a b c d", "a b c d e f g h"
    lines = Lines(
        ["x"] * 4, [short, short, long, ""], [[short, "a b c x", long, ""]] * 2
    )
    table = line_tables.score_by_length(lines, metric=metric(), tokenize=str.split)
    expected = sacrebleu.corpus_bleu(
        [short, "a b c x", ""], [[short, short, ""]], force=True
    ).score
    assert rows(table) == {
        "1 to 5": (3, [pytest.approx(expected)] * 2),
        "6 to 10": (1, [pytest.approx(100)] * 2),
    }


def test_each_frequency_has_the_f1_of_its_words() -> None:
    counts = collections.Counter({"the": 5000, "cat": 3, "dog": 2, "sat": 1})
    lines = Lines(
        ["", ""],
        ["the cat sat", "the dog zzz"],
        [["the cat sat", "the dog zzz"], ["the the cat", "the cat"]],
    )
    table = line_tables.score_by_frequency(lines, counts=counts, tokenize=str.split)
    assert rows(table) == {
        "0": (1, [1.0, 0.0]),
        "1": (1, [1.0, 0.0]),
        # cat is right once; outputs have it twice, references have cat and dog.
        "2 to 4": (2, [1.0, 2 * 1 / 4]),
        # Of three in the outputs, two are right.
        "1,000 or more": (2, [1.0, 2 * 2 / 5]),
    }


def test_kept_numbers_and_names_are_those_of_source_and_reference() -> None:
    lines = Lines(
        ["Yesterday Anna paid 1,500 francs", "In 2007 Bob saw 3 dogs", "Carl left"],
        ["Gestern zahlte Anna 1.500 Franken", "2007 sah Bob drei Hunde", "Carl ging"],
        [
            ["Anna zahlte 1500 Franken", "2007 sah er Hunde", "Carl ging"],
            ["Gestern zahlte sie 15.000", "2008 sah Bob Hunde", "Carl ging"],
        ],
    )
    table = line_tables.count_kept(lines)
    # The 3 is a word in the reference; Carl begins its source line.
    assert rows(table) == {"numbers": (2, [1.0, 0.0]), "names": (2, [0.5, 0.5])}
    assert [row.lines for row in table.rows] == [[[], [1, 2]], [[2], [1]]]
    assert table.format_value(0.5) == "50.0 %" and table.format_value(None) == "-"


@pytest.mark.parametrize(
    "line", ["昨天他在{}工作。", "昨日彼は{}で働いた。", "เขาทำงานที่{}เมื่อวาน"]
)
def test_a_name_needs_no_spaces_in_a_script_without_them(line: str) -> None:
    outputs = [line.format("Google"), line.format(" Google ")]
    source = "Yesterday he worked at Google."
    for reference in outputs:
        lines = Lines([source], [reference], [[output] for output in outputs])
        assert rows(line_tables.count_kept(lines))["names"] == (1, [1.0, 1.0])
    assert list(line_tables.find_names(outputs[0])) == ["Google"]


@pytest.mark.parametrize(
    ("line", "numbers"),
    [
        ("In 2007 1,500.25", ["2007", "150025"]),
        ("２００７年，３人", ["2007", "3"]),
        ("１，５００ と ２．５", ["1500", "25"]),
        ("في ٢٠٠٧ كان ١٬٥٠٠٫٢٥", ["2007", "150025"]),
        ("۱۲۳ १२३", ["123", "123"]),
        # A comma between clauses: no space follows it in Chinese.
        ("2007，300人", ["2007", "300"]),
        ("2007．300", ["2007", "300"]),
        ("٣، ٤ ½ x²", ["3", "4"]),
    ],
)
def test_numbers_are_their_digits_in_any_script(line: str, numbers: list[str]) -> None:
    assert list(line_tables.find_numbers(line).elements()) == numbers


def test_a_number_is_kept_in_another_script_and_not_added() -> None:
    lines = Lines(
        ["In 2007 he paid 1,500"],
        ["２００７年，他付了１５００"],
        [["２００７年，他付了１，５００"], ["２００８年"]],
    )
    assert rows(line_tables.count_kept(lines))["numbers"] == (2, [1.0, 0.0])
    table = line_tables.count_faults(lines, tokenize=list, splits_into_words=False)
    assert rows(table)["added numbers"] == (1, [0, 1])


@pytest.mark.parametrize(
    ("source", "reference", "output", "kept", "num_added"),
    [
        # Thousands: one number.
        ("1,500 francs", "1.500 Franken", "1 500 Franken", (1, [1.0]), 0),
        ("1,500 francs", "1 500 Franken", "1500 Franken", (1, [1.0]), 0),
        ("1 500 francs", "1 500 Franken", "1 500 Franken", (1, [1.0]), 0),
        ("1 500 000.25 francs", "1.500.000,25", "1 500 000,25", (1, [1.0]), 0),
        ("1,500 francs", "1.500 Franken", "1 600 Franken", (1, [0.0]), 1),
        # Two numbers.
        ("On May 12 200 came", "Am 12. Mai kamen 200", "200 am 12.", (2, [1.0]), 0),
        ("On May 12, 200 came", "Am 12. Mai 200", "Im Mai 12 200", (2, [1.0]), 0),
        ("In 2007 300 came", "2007 kamen 300", "300 im Jahr 2007", (2, [1.0]), 0),
        ("In 2007 300 came", "2007 kamen 300", "2007300", (2, [0.0]), 1),
    ],
)
def test_plain_spaces_separate_thousands_or_numbers(
    source: str,
    reference: str,
    output: str,
    kept: tuple[int, list[float | None]],
    num_added: int,
) -> None:
    lines = Lines([source], [reference], [[output]])
    assert rows(line_tables.count_kept(lines))["numbers"] == kept
    table = line_tables.count_faults(lines, tokenize=str.split, splits_into_words=True)
    assert rows(table)["added numbers"] == (1, [num_added])


def test_a_text_without_numbers_has_no_share() -> None:
    table = line_tables.count_kept(Lines(["a"], ["b"], [["b"]]))
    assert rows(table) == {"numbers": (0, [None]), "names": (0, [None])}


def test_faults_are_counted_unless_the_reference_has_them() -> None:
    lines = Lines(
        ["", "a house", "OK", "go go go", "one 1"],
        ["", "ein Haus", "OK", "los los los", "eins"],
        [
            ["", " A  House", "OK", "los los los", "eins 1"],
            ["x", "", "OK", "los", "das Haus das Haus 22"],
            [".", "Haus , , ,", "", "", "eins eins"],
        ],
    )
    table = line_tables.count_faults(lines, tokenize=str.split, splits_into_words=True)
    assert rows(table) == {
        "empty": (5, [0, 1, 2]),
        "copied source": (5, [1, 0, 0]),
        "repeated words": (5, [0, 1, 1]),
        "added numbers": (5, [0, 1, 0]),
    }
    assert table.rows[0].lines == [[], [2], [3, 4]]
    assert table.rows[1].lines == [[2], [], []]


@pytest.mark.parametrize(
    ("line", "repeats"),
    [
        ("a b c d a b c d", True),
        ("a b c d e a b c d e", False),
        ("a x a", False),
        (". . .", False),
        ("x , x , x", True),
        ("a a", True),
        ("", False),
    ],
)
def test_a_sequence_of_up_to_four_words_stands_twice_in_a_row(
    line: str, repeats: bool
) -> None:
    assert line_tables.repeats(line.split()) == repeats


@pytest.mark.parametrize(
    ("reference", "output", "count"),
    [
        ("你好。", "谢谢，看看。2009 hello", 0),  # Good words and a year.
        ("他很高。", "他很高兴，他很高兴，", 1),
        ("他", "他很高兴他很高兴", 1),
    ],
)
def test_repeated_characters_are_a_fault_from_four_of_them(
    reference: str, output: str, count: int
) -> None:
    for tokenizer in ("zh", "char"):
        scorer = bleu.sacrebleu_bleu(tokenizer, lowercase=False)
        metric = metrics.Metric("sacrebleu", "BLEU", scorer)
        assert not line_tables.counts_words(metric)
        table = line_tables.count_faults(
            Lines(["a"], [reference], [[output]]),
            tokenize=line_tables.tokenizer_of(metric),
            splits_into_words=False,
        )
        assert rows(table)["repeated words"] == (1, [count])


def test_a_system_of_several_seeds_has_their_means() -> None:
    rows = [
        line_tables.Row("a", 9, [1.0, 2.0, 6.0, 4.0], [[1, 5], [2], [2, 3], []]),
        line_tables.Row("b", 0, [1.0, None, 6.0, 4.0]),
    ]
    table = line_tables.Table("faults", "", "lines", "count", rows)
    first, second = line_tables.average_runs(table, [3, 1]).rows
    assert (first.values, first.lines) == ([3.0, 4.0], [[1, 2, 3, 5], []])
    assert (second.values, second.lines) == ([None, 4.0], None)
    assert table.format_value(2.5) == "2.5" and table.format_value(3.0) == "3"
