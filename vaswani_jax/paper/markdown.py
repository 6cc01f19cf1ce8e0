"""Markdown tables, and the verdict on a figure beside the printed one."""

from collections.abc import Sequence
from typing import Any

ROUNDING = 1e-9  # 27.3 - 27.0 is a little more than 0.3


def table(head: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    r"""Return a table; None is an empty cell.

    >>> print(table(["scorer"], [["evalb|prm:COLLINS"]]).splitlines()[-1])
    | evalb\|prm:COLLINS |
    """
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(map(_cell, line)) + " |" for line in lines)


def _cell(content: Any) -> str:
    return "" if content is None else str(content).replace("|", r"\|")


def verdict(figure: float | None, printed: float | None, *, tolerance: float) -> str:
    """Return "reproduced", "differs", "not run" or "not printed".

    >>> [verdict(bleu, 27.3, tolerance=0.3) for bleu in (27.0, 25.0, None)]
    ['reproduced', 'differs', 'not run']
    """
    if figure is None:
        return "not run"
    if printed is None:
        return "not printed"
    near = abs(figure - printed) <= tolerance + ROUNDING
    return "reproduced" if near else "differs"
