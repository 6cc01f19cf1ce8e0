"""Exceptions of other libraries are shortened to one line."""

import pytest

from vaswani_jax.core import errors


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (ValueError("a: b\n  c"), "a: b"),
        (RuntimeError("\n\n x \n"), "x"),
        (EOFError(), "EOFError()"),
        (ValueError(" \n"), "ValueError(' \\n')"),
        (OSError("d" * 1000), "d" * 300),
    ],
)
def test_the_first_line_with_text_is_returned(error: Exception, line: str) -> None:
    assert errors.first_line(error) == line


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (ValueError("a: b\n  c"), "a: b c"),
        (EOFError(), "EOFError()"),
        (OSError("d\n" * 1000), "d " * 150),
    ],
)
def test_all_lines_are_joined(error: Exception, line: str) -> None:
    assert errors.one_line(error) == line
