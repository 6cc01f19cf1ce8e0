"""A claim of the paper, and the verdict on it."""

import dataclasses
from typing import Literal

Verdict = Literal[
    "holds", "holds in part", "no clear difference", "does not hold", "not run"
]
# What a verdict rests on.
Basis = Literal["training", "timing", "computation", "printed table", "nothing"]


@dataclasses.dataclass(frozen=True)
class Claim:
    """A claim of the paper, and a verdict on it.

    Attributes:
        id: Its name, which never changes.
        section: Where it stands.
        text: The claim.
        verdict: Whether it holds.
        basis: What the verdict rests on.
        because: The figures in words, or why it was not run.
        figures: The numbers that decide, by name.
        scale: "small" if models smaller than the paper's decide.
        runs: Workdirs of the runs that they come from.
        commits: Revisions of the code that trained these.
        command: What gives the figures, or would; "" if nothing does.
    """

    id: str
    section: str
    text: str
    verdict: Verdict
    basis: Basis
    because: str
    command: str
    figures: dict[str, float] = dataclasses.field(default_factory=dict)
    scale: str = ""
    runs: tuple[str, ...] = ()
    commits: tuple[str, ...] = ()


def verdict_of(is_so: bool) -> Verdict:
    """Return the verdict on a claim that was tested.

    >>> verdict_of(2 > 1)
    'holds'
    """
    return "holds" if is_so else "does not hold"
