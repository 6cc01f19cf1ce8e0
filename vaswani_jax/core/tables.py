"""Align the columns of a table of text."""

from collections.abc import Sequence


def align(rows: Sequence[Sequence[str]], *, num_left: int = 1) -> list[str]:
    """Return the rows as lines with aligned columns.

    >>> align([["", "lines"], ["news", "7"]])
    ['      lines', 'news      7']

    Args:
        rows: The cells, as many in each row.
        num_left: The number of left-aligned columns; the others are right-aligned.
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.ljust(width) if number < num_left else cell.rjust(width)
            for number, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
