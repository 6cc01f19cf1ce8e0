"""Tables 2 and 3: what has been run, read from workdirs, and whether it reproduces."""

import contextlib
import dataclasses
import json
import math
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

from vaswani_jax.core import config
from vaswani_jax.evaluation.bleu import language_code

BLEU_TOLERANCE = 0.3
PERPLEXITY_TOLERANCE = 0.02  # of the printed one
ROUNDING = 1e-9  # 27.3 - 27.0 is a little more than 0.3


@dataclasses.dataclass(frozen=True)
class Found:
    """A scored checkpoint of a workdir."""

    workdir: pathlib.Path
    settings: Mapping[str, Any]  # by the key as on the command line
    record: Mapping[str, Any]  # as `scores.write_evaluation` leaves it
    starts: Sequence[Mapping[str, Any]]  # as `run_record.record_start` leaves them
    written: float  # seconds since the epoch
    apart: str = ""  # why it cannot be held against the base model

    @property
    def perplexity(self) -> float:
        """Per subword, of the plain likelihood."""
        return float(self.record[f"{self.record['split']}/perplexity"])

    @property
    def scoring(self) -> dict[str, Any]:
        """What it was searched and scored with, by the key as on the command line."""
        return config.flatten_record(
            {key: self.record[key] for key in ("search", "data")}
        )

    @property
    def metric(self) -> str:
        """The name of the BLEU that comes nearest to the paper's."""
        data = self.record["data"]
        name = "tokenized_bleu"
        if data["text_form"] != "tokenized":
            german = language_code(data["target_locale"]) == "de"
            name = "paper_bleu_split_ascii" if german else "paper_bleu"
        return name + ("_lc" if data["lowercase_scores"] else "")

    @property
    def bleu(self) -> float:
        """The value of `metric`."""
        scores = self.record["scores"]
        return next(float(s["value"]) for s in scores if s["name"] == self.metric)

    @property
    def flaw(self) -> str:
        """Why this is no result of a whole run of its settings; "" if it is."""
        if self.apart:
            return self.apart
        if not math.isfinite(self.perplexity):
            return f"its perplexity is {self.perplexity}"
        if not self.starts:
            return "no start of it is recorded"
        step, steps = self.record["step"], self.settings["training.num_steps"]
        if step != steps:
            return f"scored at step {step:,} of {steps:,}"
        every = self.settings["training.checkpoint_every_steps"]
        regular = sorted({*range(every, steps, every), steps})
        wanted = regular[-self.settings["training.average_checkpoints"] :]
        if (averaged := self.record["averaged"] or [step]) != wanted:
            return f"the average of the checkpoints {averaged}, not of {wanted}"
        for start in self.starts:
            if start["init_from"]:
                return f"started from {start['init_from']}"
            for change in start["changes"]:
                key, now = change["key"], change["now"]
                trains = key.startswith(("model.", "optimizer."))
                setting = config.SETTINGS.get(key)
                if trains and not (setting and setting.incidental):
                    return f"config.{key} was {change['was']!r} before it was {now!r}"
        return ""

    @property
    def where(self) -> str:
        """The workdir, and which BLEU it is or why it is none."""
        return f"{self.workdir}: {self.flaw or self.metric}"


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
            if not isinstance(settings, dict):
                raise ValueError("its config.json is no object of JSON")
            one = Found(
                workdir=workdir,
                settings=config.flatten_record(settings),
                record=json.loads(path.read_text()),
                starts=_starts(workdir / "starts.jsonl"),
                written=path.stat().st_mtime,
            )
            if type(seed := one.settings.get("seed")) is not int:
                raise ValueError(f"the seed of its config.json is {seed!r}")
            _ = one.perplexity, one.bleu, one.record["checkpoint"], one.scoring
            _ = one.flaw, one.record["references"], one.record["vocabulary"]
            _ = one.record["search"]["beam_size"], one.record["step"]
        except (
            *(OSError, ValueError, KeyError, TypeError),
            *(AssertionError, AttributeError, StopIteration),
        ) as error:
            unreadable.append(f"{path}: {type(error).__name__}: {error}")
            continue
        found.append(one)
    return found, unreadable


def _starts(path: pathlib.Path) -> list[dict[str, Any]]:
    """Every start of a run; a full disk may have cut a line."""
    starts = []
    for line in path.read_text().splitlines() if path.exists() else []:
        with contextlib.suppress(ValueError):
            starts.append(dict(json.loads(line)))
    return starts


def rows(
    runs: Sequence[Found], wanted: Mapping[str, config.Config]
) -> dict[str, Found | None]:
    """What `scored` finds of every row of table 3, in the base model's subwords.

    One of another held-out text or vocabulary has figures of another kind.

    Args:
        runs: What has been read.
        wanted: The settings of each row, "base" among them.
    """
    found = {
        row: scored(runs, settings, split="valid") for row, settings in wanted.items()
    }
    if base := found["base"]:
        for row, one in found.items():
            for key, told in (
                ("references", "scored on another text than"),
                ("vocabulary", "of another vocabulary than"),
            ):
                if one and one.record[key] != base.record[key]:
                    apart = f"{told} {base.workdir}"
                    found[row] = dataclasses.replace(one, apart=apart)
    return found


def scored(runs: Sequence[Found], wanted: config.Config, *, split: str) -> Found | None:
    """The newest evaluation of the averaged checkpoint of a run with these settings.

    One that has a flaw is found only where there is none without, one of another seed
    where there is none of this.

    Args:
        runs: What has been read.
        wanted: Its settings must be those of the training and, for what BLEU depends
            on, of the evaluation, incidental ones apart.
        split: "valid" or "test".
    """
    return max(
        _with_settings(runs, wanted, split=split),
        key=lambda run: (
            not run.flaw,
            run.settings["seed"] == wanted.seed,
            run.written,
        ),
        default=None,
    )


def by_seed(
    runs: Sequence[Found], wanted: config.Config, *, split: str
) -> dict[int, Found]:
    """The newest evaluation of each seed of whole runs with these settings."""
    found = _with_settings(runs, wanted, split=split)
    whole = sorted((run for run in found if not run.flaw), key=lambda run: run.written)
    newest = {int(run.settings["seed"]): run for run in whole}
    return dict(sorted(newest.items()))


def _with_settings(
    runs: Sequence[Found], wanted: config.Config, *, split: str
) -> list[Found]:
    settings: dict[str, Any] = {}
    scoring: dict[str, Any] = {}
    for key, value in config.flatten(config.to_dict(wanted)).items():
        setting = config.SETTINGS[key]
        if not setting.incidental:
            (scoring if setting.affects == "scores" else settings)[key] = value
    return [
        run
        for run in runs
        if (run.record["split"], run.record["checkpoint"]) == (split, "averaged")
        and settings.items() <= run.settings.items()
        and scoring.items() <= run.scoring.items()
    ]


def figures(one: Found | None) -> tuple[float | None, float | None]:
    """Perplexity and BLEU of a whole run, or None."""
    return (one.perplexity, one.bleu) if one and not one.flaw else (None, None)


def verdict(found: float | None, printed: float | None, *, tolerance: float) -> str:
    """Reproduced, differs, or not run.

    >>> [verdict(ours, 27.3, tolerance=0.3) for ours in (27.0, 25.0, None)]
    ['reproduced', 'differs', 'not run']
    """
    if found is None:
        return "not run"
    if printed is None:
        return "not printed"
    near = abs(found - printed) <= tolerance + ROUNDING
    return "reproduced" if near else "differs"


def markdown(head: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """A table; None is an empty cell."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(
        "| " + " | ".join("" if cell is None else str(cell) for cell in line) + " |"
        for line in lines
    )
