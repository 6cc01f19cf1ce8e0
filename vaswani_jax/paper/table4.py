"""Table 4: the paper's parsers beside the runs of this code, on any treebank."""

import dataclasses
import pathlib
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from vaswani_jax.core import config
from vaswani_jax.data import treebank_files
from vaswani_jax.paper import markdown, printed
from vaswani_jax.paper.scored_runs import ScoredRun

WSJ = "WSJ"
# Section 6.3: which sections are for training, development and the test.
WSJ_TRAINING = "02-21"
WSJ_SECTIONS = {"22": "section 22", "23": "section 23"}
WSJ_TEST = WSJ_SECTIONS["23"]
TRANSFORMER = "Transformer (4 layers)"
# The printed F1 of the paper's model, by its training.
PRINTED = {
    row.training.split(",")[0]: row.f1
    for row in printed.TABLE4
    if row.name == TRANSFORMER
}
F1_TOLERANCE = 0.3
OUR_PARSER = f"**{TRANSFORMER}, this code**"
NOT_RUN = "not run: the treebank is licensed by the LDC (LDC99T42)"
# What the paper's model does not have, and what it is called here.
OPTIONS = {
    "model.deterministic_attention": "deterministic attention",
    "data.subword_dropout": "BPE-dropout",
    "search.legal_trees": "legal trees",
}
# Section 6.3's settings. A run with others is not judged by the paper's result.
PRINTED_SETTINGS = {
    "model.num_layers": 4,
    "model.d_model": 1024,
    "model.d_ff": 2048,
    "model.num_heads": 8,
    "search.beam_size": 21,
    "search.length_penalty": 0.3,
    "search.max_extra_tokens": 300,
}
NOTES = (
    "F1 of labelled brackets, from 0 to 100. The paper's figures are of section 23 of "
    "the Wall Street Journal's treebank (WSJ); those of another treebank cannot be "
    "compared with them. Ours are scored by EVALB's rules, and every sentence counts. "
    "Runs that differ by their seed share a row, with the mean of their F1. "
    f"Reproduced: within {F1_TOLERANCE} F1. If runs differ only in settings that the "
    "paper does not print, such as dropout, only the newest are judged."
)


@dataclasses.dataclass(frozen=True)
class _Setting:
    """Parser, training, treebank and split of one of our rows.

    Attributes:
        parser: The model, with what the paper's does not have.
        training: What it was trained on.
        treebank: The treebank's name.
        split: The part that was parsed.
    """

    parser: str
    training: str
    treebank: str
    split: str

    @property
    def order(self) -> tuple[bool, str, str, str, str]:
        """The row's place: WSJ first, then by treebank, split and training."""
        return (
            self.treebank != WSJ,
            *(self.treebank, self.split, self.training, self.parser),
        )


@dataclasses.dataclass(frozen=True)
class Result:
    """The runs of one of the paper's rows, and the mean of their F1."""

    f1: float
    runs: Sequence[ScoredRun]


def find_result(runs: Sequence[ScoredRun], training: str) -> Result | None:
    """Return the mean F1 on WSJ's section 23 of the runs that table 4 judges.

    Args:
        runs: To look for them in.
        training: A key of `PRINTED`.
    """
    groups = _group([run for run in runs if run.is_parsing])
    group = _choose_judged(groups).get(training)
    if group is None:
        return None
    return Result(statistics.fmean(run.score for run in group), group)


def format_table(runs: Sequence[ScoredRun]) -> str:
    """Return table 4: the paper's rows, then ours, 'not run' where WSJ was not."""
    rows: list[list[Any]] = [
        [parser.name, parser.training, WSJ, WSJ_TEST, f"{parser.f1:.1f}"]
        for parser in printed.TABLE4
    ]
    groups = _group([run for run in runs if run.is_parsing])
    judged_groups = _choose_judged(groups)
    results = sorted(
        ((_describe(group[0]), group) for group in groups),
        key=lambda result: result[0].order,
    )
    tested_pairs = {
        setting.training
        for setting, _ in results
        if (setting.treebank, setting.split) == (WSJ, WSJ_TEST)
    }
    for training in PRINTED:
        if training not in tested_pairs:
            rows.append([OUR_PARSER, training, WSJ, WSJ_TEST, NOT_RUN])
    rows += [
        [
            *dataclasses.astuple(setting),
            *_result_cells(
                setting, group, is_judged=judged_groups.get(setting.training) is group
            ),
        ]
        for setting, group in results
    ]
    head = ["parser", "training", "treebank", "split", "F1"]
    head += ["scorer", "seeds", "from"]
    padded = [row + [None] * (len(head) - len(row)) for row in rows]
    return f"{NOTES}\n\n{markdown.table(head, padded)}"


def _group(runs: Sequence[ScoredRun]) -> list[list[ScoredRun]]:
    """Return a list for each setting: the newest evaluation of each of its seeds.

    Of several searches, the one that the runs were configured with comes first, then
    the newest. A list has complete runs, or else a single one with its flaw.
    """
    searches: dict[tuple[Any, ...], dict[tuple[Any, ...], list[ScoredRun]]] = {}
    for run in sorted(runs, key=lambda run: run.time):
        by_search = searches.setdefault(_identity(run), {})
        by_search.setdefault(_values(run.scoring, "scores"), []).append(run)
    groups = []
    for by_search in searches.values():
        group = max(by_search.values(), key=_rank)
        complete = [run for run in group if not run.flaw]
        seeds = {int(run.settings["seed"]): run for run in complete or group[-1:]}
        groups.append([run for _, run in sorted(seeds.items())])
    return groups


def _rank(group: Sequence[ScoredRun]) -> tuple[bool, bool, float]:
    newest = group[-1]
    configured_values = _values(newest.settings, "scores")
    return (
        any(not run.flaw for run in group),
        _values(newest.scoring, "scores") == configured_values,
        newest.time,
    )


def _identity(run: ScoredRun) -> tuple[Any, ...]:
    """Return what runs have in common that differ by their seed or search alone."""
    kinds = {setting.affects for setting in config.SETTINGS.values()} - {"scores"}
    text = (run.record[key] for key in ("split", "references", "vocabulary"))
    return (_values(run.settings, *kinds), *text)


def _values(settings: Mapping[str, Any], *kinds: str) -> tuple[Any, ...]:
    """Return the values of settings that affect one of the kinds."""
    return tuple(
        settings.get(key)
        for key, setting in config.SETTINGS.items()
        if not setting.incidental and setting.affects in kinds
    )


def _describe(run: ScoredRun) -> _Setting:
    settings, data = run.settings, run.record["data"]
    encoder, decoder = (
        settings[f"model.num_{stack}_layers"] or settings["model.num_layers"]
        for stack in ("encoder", "decoder")
    )
    layers = "1 layer" if encoder == decoder == 1 else f"{encoder} layers"
    if encoder != decoder:
        layers = f"{encoder} + {decoder} layers"
    options = [
        name for key, name in OPTIONS.items() if {**settings, **run.scoring}[key]
    ]
    if data["tree_terminals"] == "word":
        options.append("XX for tags")
    parser = ", ".join([f"Transformer ({layers})", *options, "this code"])
    entries = str(data[f"{run.record['split']}_trees"]).strip()
    section = treebank_files.section_name(entries)
    is_trained_on_wsj = (
        treebank_files.section_name(str(data["train_trees"])) == WSJ_TRAINING
    )
    if is_trained_on_wsj and section in WSJ_SECTIONS:
        treebank, split = WSJ, WSJ_SECTIONS[section]
    else:
        directory = pathlib.Path(data["text_directory"])
        treebank = directory.name or str(directory)
        split = f"{run.record['split']} ({entries})"
    training = printed.SEMI_SUPERVISED if data["silver_trees"] else f"{treebank} only"
    return _Setting(f"**{parser}**", training, treebank, split)


def _choose_judged(
    groups: Sequence[Sequence[ScoredRun]],
) -> dict[str, Sequence[ScoredRun]]:
    """Return the group that is held against each printed F1, by its training.

    The paper prints neither its dropout nor its learning rate, so groups that differ
    only in these fit. The one with the newest evaluation counts.
    """
    judged_groups = {}
    for group in sorted(groups, key=lambda group: max(run.time for run in group)):
        setting = _describe(group[0])
        if _fits(setting, group[0]):
            judged_groups[setting.training] = group
    return judged_groups


def _fits(setting: _Setting, run: ScoredRun) -> bool:
    """Return whether a run may be held against the printed F1 of its training."""
    has_settings = PRINTED_SETTINGS.items() <= {**run.settings, **run.scoring}.items()
    is_on_wsj = (setting.treebank, setting.split) == (WSJ, WSJ_TEST)
    is_parser = setting.parser == OUR_PARSER
    return is_parser and is_on_wsj and has_settings and not run.flaw


def _result_cells(
    setting: _Setting, group: Sequence[ScoredRun], *, is_judged: bool
) -> list[str | None]:
    """Return F1 with the scorer's signature, the seeds, and where they come from."""
    first = group[0]
    if first.flaw:
        return [None, None, None, first.source]
    figures = [run.score for run in group]
    mean = statistics.fmean(figures)
    f1 = f"{mean:.2f}"
    if len(figures) > 1:
        f1 += f" ({min(figures):.2f} to {max(figures):.2f})"
    if is_judged:
        paper = PRINTED[setting.training]
        f1 += f", {markdown.verdict(mean, paper, tolerance=F1_TOLERANCE)}"
    [signature] = {
        score["signature"]
        for score in first.record["scores"]
        if score["name"] == first.metric
    }
    seeds = ", ".join(str(run.settings["seed"]) for run in group)
    workdirs = ", ".join(str(run.workdir) for run in group)
    return [f1, signature, f"{len(group)} ({seeds})", workdirs]
