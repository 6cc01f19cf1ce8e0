"""Tables 2 and 3: what has been run, read from workdirs, and whether it reproduces."""

import dataclasses
import json
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import flax.traverse_util

from vaswani_jax.core import config

# How a model is computed, not which one it is.
COMPUTATION = {
    "model.dtype",
    "model.attention",
    "model.rematerialize",
    "model.max_positions",
}
BLEU_TOLERANCE = 0.5
PERPLEXITY_TOLERANCE = 0.05  # of the printed one


@dataclasses.dataclass(frozen=True)
class Found:
    """A scored checkpoint of a workdir."""

    workdir: pathlib.Path
    split: str
    checkpoint: str
    perplexity: float
    scores: dict[str, float]  # by the name of the metric

    def bleu(self) -> float:
        """BLEU as the paper has it, or the nearest to it that was scored."""
        names = ("paper_bleu", "tokenized_bleu", "sacrebleu")
        return next(self.scores[name] for name in names if name in self.scores)


def scored(
    runs: Sequence[pathlib.Path], wanted: config.Config, *, split: str, checkpoint: str
) -> Found | None:
    """The newest evaluation in a workdir that was trained with these settings.

    Args:
        runs: Workdirs.
        wanted: Model, data, label smoothing and number of updates must be its own.
        split: "valid" or "test".
        checkpoint: As `evaluate` names it.
    """
    candidates = []
    for workdir in runs:
        if not _same(workdir, wanted):
            continue
        for path in (workdir / "evaluations").glob(f"{split}-{checkpoint}-*.json"):
            candidates.append((path.stat().st_mtime, path, workdir))
    if not candidates:
        return None
    _, path, workdir = max(candidates)
    record = json.loads(path.read_text())
    return Found(
        workdir=workdir,
        split=split,
        checkpoint=checkpoint,
        perplexity=record[f"{split}/perplexity"],
        scores={score["name"]: score["value"] for score in record["scores"]},
    )


def _same(workdir: pathlib.Path, wanted: config.Config) -> bool:
    try:
        there = json.loads((workdir / "config.json").read_text())
    except (OSError, ValueError):
        return False
    old = flax.traverse_util.flatten_dict(there, sep=".")
    new = flax.traverse_util.flatten_dict(config.to_dict(wanted), sep=".")
    keys = [key for key in new if key.startswith("model.") and key not in COMPUTATION]
    keys += ["training.label_smoothing", "training.num_steps"]
    keys += ["data.source", "data.source_locale", "data.target_locale"]
    return all(old.get(key, new[key]) == new[key] for key in keys)


def verdict(found: float | None, printed: float | None, tolerance: float) -> str:
    """Reproduced, differs, or not run.

    >>> verdict(27.0, 27.3, 0.5), verdict(25.0, 27.3, 0.5), verdict(None, 27.3, 0.5)
    ('reproduced', 'differs', 'not run')
    """
    if found is None:
        return "not run"
    if printed is None:
        return "not printed"
    return "reproduced" if abs(found - printed) <= tolerance else "differs"


def workdirs(directory: pathlib.Path) -> list[pathlib.Path]:
    """Every workdir in a directory of runs."""
    return sorted(path.parent for path in directory.glob("*/config.json"))


def trend(ours: Mapping[str, float], papers: Mapping[str, float], row: str) -> str:
    """Whether a row moved from the base model as the paper's did.

    Args:
        ours: A figure of each row that was run, "base" among them.
        papers: The printed figures.
        row: Which.
    """
    if row not in ours or "base" not in ours:
        return "not run"
    own, printed = ours[row] - ours["base"], papers[row] - papers["base"]
    if printed == 0:
        return "no difference is printed"
    return "as printed" if own * printed > 0 else "the other way"


def markdown(head: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """A table; None is an empty cell."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(
        "| " + " | ".join("" if cell is None else str(cell) for cell in line) + " |"
        for line in lines
    )
