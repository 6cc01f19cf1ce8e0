"""Tables 2 and 3: what has been run, read from workdirs, and whether it reproduces."""

import dataclasses
import json
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

from vaswani_jax.core import config

# How and where a result was computed, not which result it is.
COMPUTATION = {
    "seed",
    "model.dtype",
    "model.attention",
    "model.rematerialize",
    "data.tfds_directory",
    "data.text_directory",
    "data.directory",
    "data.sentencepiece_sample_size",
    "training.accumulate_steps",
    "training.log_every_steps",
    "training.evaluate_every_steps",
    "training.keep_checkpoints",
    "training.max_skipped_batches",
    "search.max_source_tokens",
    "search.source_tokens_per_batch",
}
BLEU_TOLERANCE = 0.3
PERPLEXITY_TOLERANCE = 0.02  # of the printed one
# What one seed's difference must exceed to be called one: chosen, not measured.
BLEU_NOISE = 0.5
PERPLEXITY_NOISE = 0.01  # of the base model's


@dataclasses.dataclass(frozen=True)
class Found:
    """A scored checkpoint of a workdir."""

    workdir: pathlib.Path
    settings: Mapping[str, Any]  # by the key as on the command line
    record: Mapping[str, Any]  # as `held_out.write` leaves it
    written: float  # seconds since the epoch

    @property
    def perplexity(self) -> float:
        """Per subword, of the plain likelihood."""
        return float(self.record[f"{self.record['split']}/perplexity"])

    @property
    def search(self) -> dict[str, Any]:
        """The settings of the search, by the key as on the command line."""
        return config.recorded({"search": self.record["search"]})

    @property
    def metric(self) -> str:
        """The name of the BLEU that comes nearest to the paper's."""
        data = self.record["data"]
        name = "tokenized_bleu"
        if data["text_form"] != "tokenized":
            german = data["target_locale"].startswith("de")
            name = "paper_bleu_split" if german else "paper_bleu"
        return name + ("_lc" if data["lowercase_scores"] else "")

    @property
    def bleu(self) -> float:
        """The value of `metric`."""
        scores = self.record["scores"]
        return next(float(s["value"]) for s in scores if s["name"] == self.metric)


def read(directory: pathlib.Path) -> tuple[list[Found], list[str]]:
    """The evaluations of all workdirs in a directory, and what could not be read.

    Raises:
        ValueError: The directory is itself a workdir.
    """
    if (directory / "config.json").exists():
        raise ValueError(
            f"--runs={directory} is a workdir; name the directory that workdirs lie in"
        )
    found, unreadable = [], []
    for path in sorted(directory.glob("*/evaluations/*.json")):
        workdir = path.parent.parent
        try:
            settings = json.loads((workdir / "config.json").read_text())
            one = Found(
                workdir=workdir,
                settings=config.recorded(settings),
                record=json.loads(path.read_text()),
                written=path.stat().st_mtime,
            )
            _ = one.perplexity, one.bleu, one.record["checkpoint"], one.search
        except (
            *(OSError, ValueError, KeyError, TypeError),
            *(AssertionError, AttributeError, StopIteration),
        ) as error:
            unreadable.append(f"{path}: {type(error).__name__}: {error}")
            continue
        found.append(one)
    return found, unreadable


def scored(runs: Sequence[Found], wanted: config.Config, *, split: str) -> Found | None:
    """The newest evaluation of the averaged checkpoint of a run with these settings.

    Args:
        runs: What has been read.
        wanted: Its settings must be those of the training and of the evaluation's
            search, but for `COMPUTATION`.
        split: "valid" or "test".
    """
    every = config.flatten(config.to_dict(wanted))
    settings = {key: every[key] for key in every.keys() - COMPUTATION}
    search = {
        key: settings.pop(key) for key in sorted(settings) if key.startswith("search.")
    }
    return max(
        (
            run
            for run in runs
            if (run.record["split"], run.record["checkpoint"]) == (split, "averaged")
            and settings.items() <= run.settings.items()
            and search.items() <= run.search.items()
        ),
        key=lambda run: run.written,
        default=None,
    )


def verdict(found: float | None, printed: float | None, tolerance: float) -> str:
    """Reproduced, differs, or not run.

    >>> verdict(27.1, 27.3, 0.3), verdict(25.0, 27.3, 0.3), verdict(None, 27.3, 0.3)
    ('reproduced', 'differs', 'not run')
    """
    if found is None:
        return "not run"
    if printed is None:
        return "not printed"
    return "reproduced" if abs(found - printed) <= tolerance else "differs"


def trend(
    ours: Mapping[str, float], papers: Mapping[str, float], row: str, *, noise: float
) -> str:
    """Whether a row moved from the base model as the paper's did.

    Args:
        ours: A figure of each row that was run, "base" among them.
        papers: The printed figures.
        row: Which.
        noise: Up to where ours has not moved.
    """
    if row not in ours or "base" not in ours:
        return "not run"
    own, printed = ours[row] - ours["base"], papers[row] - papers["base"]
    if printed == 0:
        return "no difference is printed"
    if abs(own) <= noise:
        return "no clear difference"
    return "as printed" if own * printed > 0 else "the other way"


def markdown(head: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """A table; None is an empty cell."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(
        "| " + " | ".join("" if cell is None else str(cell) for cell in line) + " |"
        for line in lines
    )
