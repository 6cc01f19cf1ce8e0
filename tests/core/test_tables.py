"""Columns stand below one another."""

from vaswani_jax.core import tables


def test_words_stand_to_the_left_and_numbers_to_the_right() -> None:
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
