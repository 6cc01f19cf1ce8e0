"""Read the scored runs of workdirs, and find those with given settings."""

import dataclasses
import json
import math
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from vaswani_jax.checkpoints import compatibility, run_record, store
from vaswani_jax.core import config, locales, seeds

# What must be equal in runs whose scores are compared, and what it means if not.
COMPARED = {
    "references": "scored on another text than",
    "vocabulary": "of another vocabulary than",
}

# Prefixes of settings that decide updates and may change when a run resumes.
UPDATE_PREFIXES = (
    "model.",
    "optimizer.",
    "training.ema_decay",
    "training.max_loss_rise",
)


@dataclasses.dataclass(frozen=True)
class ScoredRun:
    """A scored checkpoint of a workdir.

    Attributes:
        workdir: The run's directory.
        settings: The settings of the scored updates, by dotted key.
        record: The evaluation's record, as `scores.write_evaluation` writes it.
        starts: The run's starts, as `run_record.record_start` writes them.
        time: When the evaluation was written, in seconds since the epoch.
        incomparable: Why it cannot be compared with the base model; "" if it can.
    """

    workdir: pathlib.Path
    settings: Mapping[str, Any]
    record: Mapping[str, Any]
    starts: Sequence[Mapping[str, Any]]
    time: float
    incomparable: str = ""

    @property
    def perplexity(self) -> float:
        """The perplexity per subword, without label smoothing."""
        return float(self.record[f"{self.record['split']}/perplexity"])

    @property
    def accuracy(self) -> float | None:
        """The share of subwords predicted right; None if it is not recorded."""
        accuracy = self.record.get(f"{self.record['split']}/accuracy")
        return None if accuracy is None else float(accuracy)

    @property
    def scoring(self) -> dict[str, Any]:
        """The evaluation's settings, by dotted key."""
        return config.flatten_record(
            {key: self.record[key] for key in ("search", "data")}
        )

    @property
    def is_parsing(self) -> bool:
        """True if the run writes trees, which F1 scores."""
        return bool(self.settings["data.source"] == "treebank")

    @property
    def metric(self) -> str:
        """The score's name: f1 for trees, else the BLEU nearest to the paper's.

        A text whose words nothing separates may have no BLEU: then it is chrF2.
        """
        if self.is_parsing:
            return "f1"
        data = self.record["data"]
        if "," in data["target_locale"]:  # several languages, each with its BLEU
            return "mean"
        names = [score["name"] for score in self.record["scores"]]
        ending = "_lc" if data["lowercase_scores"] else ""
        has_bleu = any("bleu" in name for name in names)
        if not has_bleu and f"chrf{ending}" in names:
            return f"chrf{ending}"
        name = "tokenized_bleu"
        if data["text_form"] != "tokenized":
            is_german = locales.language_code(data["target_locale"]) == "de"
            name = "paper_bleu_split_ascii" if is_german else "paper_bleu"
            if not any(recorded_name.startswith(name) for recorded_name in names):
                name = "sacrebleu"  # of text without spaces
        return name + ending

    @property
    def score(self) -> float:
        """The value of `metric`, from 0 to 100.

        Raises:
            ValueError: It is not recorded.
        """
        values = {score["name"]: score["value"] for score in self.record["scores"]}
        if self.metric not in values:
            raise ValueError(
                f"the evaluation must have the score {self.metric}, it has "
                f"{', '.join(values) or 'none'}; `vaswani evaluate` writes it anew"
            )
        return float(values[self.metric])

    @property
    def has_bleu(self) -> bool:
        """True if `score` is BLEU, or a mean of BLEU alone."""
        if self.metric == "mean":
            [signature] = [
                score.get("signature", "")
                for score in self.record["scores"]
                if score["name"] == "mean"
            ]
            return "chrf" not in signature
        return not self.is_parsing and not self.metric.startswith("chrf")

    @property
    def flaw(self) -> str:
        """Why this is not the score of a complete run of its settings; "" if it is."""
        if self.incomparable:
            return self.incomparable
        if not math.isfinite(self.perplexity):
            return f"its perplexity is {self.perplexity}"
        if not self.starts:
            return "its start is not recorded"
        # The record has the beginning of the id; an earlier version's has none.
        first_start_id = str(self._last_starts[0].get("id", ""))
        if not first_start_id.startswith(self.record.get("run", "")):
            return "scored an earlier run of this workdir"
        step, steps = self.record["step"], self.settings["training.num_steps"]
        if self._has_ended_early:
            steps = step
        if step != steps:
            return f"scored at step {step:,} of {steps:,}"
        interval = self.settings["training.checkpoint_every_steps"]
        checkpoints = sorted({*range(interval, steps, interval), steps})
        last = checkpoints[-self.settings["training.average_checkpoints"] :]
        averaged = self.record["averaged"]
        if (averaged or [step]) != last:
            if not averaged:
                return f"a single checkpoint, not the average of {last}"
            return f"the average of the checkpoints {averaged}, not of {last}"
        for start in self._last_starts:
            if start["init_from"]:
                return f"started from {start['init_from']}"
            if start.get("step", 0) >= step:  # It made none of the updates.
                continue
            for change in start["changes"]:
                key, now = change["key"], change["now"]
                affects_params = key.startswith(UPDATE_PREFIXES)
                setting = config.SETTINGS.get(key)
                if affects_params and not (setting and setting.incidental):
                    return f"config.{key} changed from {change['was']!r} to {now!r}"
        return ""

    @property
    def _has_ended_early(self) -> bool:
        """True if `training.patience` ended the run at the step of the average."""
        patience = self.settings.get("training.patience", 0)
        if not patience:
            return False
        saved = store.read_record(self.workdir / "averaged", self.record["step"])
        return (saved.get("best") or {}).get("num_worse", 0) >= patience

    @property
    def _last_starts(self) -> Sequence[Mapping[str, Any]]:
        return _starts_of_last_run(self.starts)

    @property
    def revisions(self) -> tuple[str, ...]:
        """The revisions of the code that recorded its starts, where they are known."""
        revisions = {
            str(start.get("environment", {}).get("revision", "unknown"))
            for start in self._last_starts
        }
        return tuple(sorted(revisions - {"unknown"}))

    @property
    def source(self) -> str:
        """The workdir, and the name of its score or its flaw."""
        return f"{self.workdir}: {self.flaw or self.metric}"


class Records(NamedTuple):
    """The scored runs of a directory, and why other records cannot be read."""

    runs: list[ScoredRun]
    unreadable: list[str]


def read(directory: pathlib.Path) -> Records:
    """Read the evaluations of all workdirs in a directory.

    It may itself hold the runs of seeds, or hold directories of such runs.

    Raises:
        ValueError: The directory is itself a workdir.
    """
    if (directory / "config.json").exists():
        raise ValueError(
            f"--runs={directory} is a workdir; name the directory that workdirs lie in"
        )
    runs, unreadable = [], []
    patterns = ("*/evaluations/*.json", "*/seed-*/evaluations/*.json")
    for path in sorted(p for pattern in patterns for p in directory.glob(pattern)):
        try:
            if (run := _read_run(path)) is not None:
                runs.append(run)
        except (
            *(OSError, ValueError, KeyError, TypeError),
            *(AssertionError, AttributeError),
        ) as error:
            unreadable.append(f"{path}: {type(error).__name__}: {error}")
    return Records(runs, unreadable)


def _read_run(path: pathlib.Path) -> ScoredRun | None:
    """Return a scored run; None if another text than its own was scored."""
    workdir = path.parent.parent
    record = json.loads(path.read_text(encoding="utf-8"))
    if record["split"] not in ("valid", "test"):
        return None
    settings = json.loads((workdir / "config.json").read_text(encoding="utf-8"))
    if not isinstance(settings, dict):
        raise ValueError("its config.json is not a JSON object")
    starts = run_record.read_starts(workdir)
    run = ScoredRun(
        workdir=workdir,
        settings=config.flatten_record(settings)
        | _settings_before(starts, step=record["step"]),
        record=record,
        starts=starts,
        time=path.stat().st_mtime,
    )
    if type(seed := run.settings.get("seed")) is not int:
        raise ValueError(f"the seed of its config.json is {seed!r}")
    # Fails for a record that lacks what a table shows.
    _ = run.perplexity, run.score, run.record["checkpoint"], run.scoring
    _ = run.flaw, run.record["references"], run.record["vocabulary"]
    _ = run.record["search"]["beam_size"], run.record["step"]
    return run


def _starts_of_last_run(
    starts: Sequence[Mapping[str, Any]],
) -> Sequence[Mapping[str, Any]]:
    """Return the starts of the last run: from its start at step 0 on."""
    begins = [n for n, start in enumerate(starts) if start.get("step") == 0]
    return starts[begins[-1] if begins else 0 :]


def _settings_before(
    starts: Sequence[Mapping[str, Any]], *, step: int
) -> dict[str, Any]:
    """Return the values that settings had before starts from a step on changed them.

    config.json has those of the last start, even if it made no update.
    """
    values: dict[str, Any] = {}
    for start in _starts_of_last_run(starts):
        if start.get("step", 0) >= step:
            for change in start["changes"]:
                key = change["key"]
                if key in config.SETTINGS and compatibility.decides_updates(key):
                    values.setdefault(key, change["was"])
    return values


def complete(run: ScoredRun | None) -> ScoredRun | None:
    """Return the run if it has no flaw."""
    return run if run and not run.flaw else None


def find_rows(
    runs: Sequence[ScoredRun], rows: Mapping[str, config.Config]
) -> dict[str, ScoredRun | None]:
    """Find each row of table 3, scored on the validation set.

    Prefers runs with the text and the vocabulary of the base model. Another run is
    marked as incomparable: its perplexity is per different subwords.

    Args:
        runs: The runs to search.
        rows: The settings of each row, "base" among them.
    """
    base = find_run(runs, rows["base"], split="valid")
    alike = [run for run in runs if base and _is_comparable(run, base)]
    run_by_row: dict[str, ScoredRun | None] = {}
    for row, settings in rows.items():
        run = find_run(alike, settings, split="valid") or find_run(
            runs, settings, split="valid"
        )
        for key, reason in COMPARED.items():
            if run and base and run.record[key] != base.record[key]:
                reason = f"{reason} {base.workdir}"
                run = dataclasses.replace(run, incomparable=reason)
        run_by_row[row] = run
    return run_by_row


def _is_comparable(run: ScoredRun, base: ScoredRun) -> bool:
    return all(run.record[key] == base.record[key] for key in COMPARED)


def find_run(
    runs: Sequence[ScoredRun], settings: config.Config, *, split: str
) -> ScoredRun | None:
    """Find the averaged checkpoint of a run with these settings.

    Prefers runs without a flaw, then the configured seed, then the newest.

    Args:
        runs: The runs to search.
        settings: Must equal the training's, or the evaluation's where they affect
            scores; incidental ones do not count.
        split: "valid" or "test".
    """
    return max(
        _with_settings(runs, settings, split=split),
        key=lambda run: (
            not run.flaw,
            run.settings["seed"] == settings.seed,
            run.time,
        ),
        default=None,
    )


def find_seeds(
    runs: Sequence[ScoredRun], settings: config.Config, *, split: str
) -> dict[int, ScoredRun]:
    """Find the newest complete run of each seed with these settings.

    Leaves out runs whose text or vocabulary differs from that of the run that
    `find_run` returns: then the seed is not the only reason why scores differ.
    """
    base = find_run(runs, settings, split=split)
    if base is None:
        return {}
    candidates = [
        run
        for run in _with_settings(runs, settings, split=split)
        if _is_comparable(run, base)
    ]
    by_time = sorted(filter(complete, candidates), key=lambda run: run.time)
    newest = {int(run.settings["seed"]): run for run in by_time}
    return dict(sorted(newest.items()))


def group_seeds(runs: Sequence[ScoredRun]) -> list[list[ScoredRun]]:
    """Return the runs of each directory of seeds that have the same settings.

    Runs that were scored on other texts or by other searches are groups of their own.
    """
    groups: dict[str, list[ScoredRun]] = {}
    for run in runs:
        if seeds.NAME.fullmatch(run.workdir.name):
            settings = {
                key: value
                for key, value in {**run.settings, **run.scoring}.items()
                if not (key in config.SETTINGS and config.SETTINGS[key].incidental)
            }
            key = (
                str(run.workdir.parent),
                *(run.record[name] for name in ("split", "checkpoint", "references")),
                sorted(settings.items()),
            )
            groups.setdefault(repr(key), []).append(run)
    return [
        sorted(group, key=lambda run: int(run.settings["seed"]))
        for group in groups.values()
    ]


def _with_settings(
    runs: Sequence[ScoredRun], settings: config.Config, *, split: str
) -> list[ScoredRun]:
    training: dict[str, Any] = {}
    scoring: dict[str, Any] = {}
    for key, value in config.flatten(config.to_dict(settings)).items():
        setting = config.SETTINGS[key]
        if not setting.incidental:
            (scoring if setting.affects == "scores" else training)[key] = value
    return [
        run
        for run in runs
        if (run.record["split"], run.record["checkpoint"]) == (split, "averaged")
        and training.items() <= run.settings.items()
        and scoring.items() <= run.scoring.items()
        and run.has_bleu  # The paper's tables of translation have no other score.
    ]
