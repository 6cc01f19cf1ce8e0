"""Tables 3 and 4 in the notes on the paper, PAPER.md, which others wrote."""

import pathlib

import pytest

from vaswani_jax.paper import printed

PATH = pathlib.Path(__file__).parents[3] / "shared" / "PAPER.md"


def needed(test):
    """Skip a test where the notes are not."""
    test = pytest.mark.skipif(not PATH.exists(), reason=f"{PATH} is not here")(test)
    return pytest.mark.shared(test)


def table3_cells():
    """Return the cells of each row; nine settings come first, three figures last."""
    rows = {}
    for line in PATH.read_text().splitlines():
        row, *cells = (cell.strip() for cell in line.removeprefix("|").split("|"))
        if row in printed.TABLE3 and len(cells) > 10:
            rows[row] = cells[:-1]
    return rows


def table4_rows():
    """Return parser, training and F1 of each row."""
    lines = PATH.read_text().split("| Parser | Training | F1 |\n")[1].splitlines()[1:13]
    rows = [[cell.strip(" *") for cell in line.split("|")[1:-1]] for line in lines]
    return [(name.split(" (4")[0], training, float(f1)) for name, training, f1 in rows]
