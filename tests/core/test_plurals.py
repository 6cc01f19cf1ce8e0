"""Numbers with their nouns."""

import pytest

from vaswani_jax.core import plurals


@pytest.mark.parametrize(
    ("number", "text"), [(0, "0 lines"), (1, "1 line"), (2, "2 lines")]
)
def test_only_one_is_singular(number: int, text: str):
    assert plurals.format_count(number, "line") == text


def test_thousands_have_commas_and_irregular_plurals_are_given():
    assert plurals.format_count(12_345, "pass", plural="passes") == "12,345 passes"
    assert plurals.format_count(1, "line has", plural="lines have") == "1 line has"
