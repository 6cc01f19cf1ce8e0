"""Columns of tables are aligned."""

from vaswani_jax.core import tables


def test_words_are_left_aligned_and_numbers_right_aligned() -> None:
    rows = [["name", "", "count"], ["a", "long", "1,000"], ["bcdef", "x", "7"]]
    assert tables.align(rows) == [
        "name         count",
        "a      long  1,000",
        "bcdef     x      7",
    ]
    assert tables.align(rows, num_left=3) == [
        "name         count",
        "a      long  1,000",
        "bcdef  x     7",
    ]
