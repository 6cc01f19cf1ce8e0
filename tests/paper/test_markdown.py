"""Tables of the report as Markdown, and its verdicts."""

import pytest

from vaswani_jax.paper import markdown


def test_a_table_is_one_line_a_row_and_empty_where_there_is_nothing():
    table = markdown.table(["row", "BLEU"], [["A1", 24.9], ["B1", None], [0, ""]])
    assert table == (
        "| row | BLEU |\n| --- | --- |\n| A1 | 24.9 |\n| B1 |  |\n| 0 |  |"
    )


@pytest.mark.parametrize(
    ("figure", "expected"),
    [
        (27.0, "reproduced"),  # 27.3 - 27.0 is more than 0.3 in floating point
        (27.6, "reproduced"),
        (26.99, "differs"),
        (27.61, "differs"),
        (float("nan"), "differs"),
        (0.0, "differs"),
        (None, "not run"),
    ],
)
def test_a_verdict_allows_the_tolerance_on_both_sides(figure, expected):
    assert markdown.verdict(figure, 27.3, tolerance=0.3) == expected


def test_what_was_not_run_comes_before_what_was_not_printed():
    assert markdown.verdict(27.0, None, tolerance=0.3) == "not printed"
    assert markdown.verdict(None, None, tolerance=0.3) == "not run"
