"""Align the columns of a table of text."""

from collections.abc import Sequence


def align(rows: Sequence[Sequence[str]], *, num_left: int = 1) -> list[str]:
    """Return a line for each row, without spaces at its end.

    >>> align([["", "lines"], ["news", "7"]])
    ['      lines', 'news      7']

    Args:
        rows: The cells, as many in each row.
        num_left: How many columns stand to the left; the others stand to the right.
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.ljust(width) if number < num_left else cell.rjust(width)
            for number, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
