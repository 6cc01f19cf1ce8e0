"""Workdirs like those that a training leaves, for tests of the report."""

import dataclasses
import json

from configs import table3, table3_small
from vaswani_jax.core import config, parsing
from vaswani_jax.paper import scored_runs

ROWS = {row: parsing.parse(table3.get_config(row)) for row in table3.ROWS}
SMALL = {row: parsing.parse(table3_small.get_config(row)) for row in table3.ROWS}

SIGNATURE = "bracketing|evalb|prm:COLLINS|tags:reference|sentences:7|v:1"
# The treebank of section 6.3, and its parser.
WSJ = {
    "data.text_directory": "/corpora/ptb/parsed/mrg/wsj",
    "data.train_trees": "02-21",
    "data.valid_trees": "22",
    "data.test_trees": "23",
}
PAPERS_PARSER = {
    **{"model.num_layers": 4, "model.d_model": 1024, "search.legal_trees": False},
    **{"search.beam_size": 21, "search.length_penalty": 0.3},
    "search.max_extra_tokens": 300,
}


def leave(
    workdir,
    settings,
    *,
    split="valid",
    perplexity=5.0,
    bleu=25.0,
    search=(),
    starts=(),
    **changes,
):
    """Write what a training leaves when it has scored its average."""
    (workdir / "evaluations").mkdir(parents=True, exist_ok=True)
    (workdir / "config.json").write_text(json.dumps(config.to_dict(settings)))
    scores = [
        {"name": "sacrebleu", "value": 1.0},
        {"name": "paper_bleu", "value": 2.0},
        {"name": "paper_bleu_split", "value": 3.0},
        {"name": "paper_bleu_split_ascii", "value": bleu},
        {"name": "tokenized_bleu", "value": bleu},
    ]
    record = {
        "split": split,
        "checkpoint": "averaged",
        f"{split}/perplexity": perplexity,
        "scores": scores,
        "search": dataclasses.asdict(settings.search) | dict(search),
        "data": dataclasses.asdict(settings.data),
        "step": settings.training.num_steps,
        "averaged": [
            settings.training.num_steps
            - number * settings.training.checkpoint_every_steps
            for number in reversed(range(settings.training.average_checkpoints))
        ],
        "references": "0123",
        "vocabulary": "89ab",
    } | changes
    first = {"init_from": "", "changes": []}
    lines = [json.dumps(first | start) for start in ({}, *starts)]
    (workdir / "starts.jsonl").write_text("\n".join(lines))
    path = workdir / "evaluations" / f"{split}-averaged-beam4-alpha0.6.json"
    path.write_text(json.dumps(record))


def parsing_settings(**changes):
    """Return the settings of a run that parses, with some of them changed."""
    values = table3.get_config("base")
    values.update_from_flattened_dict(
        {
            "data.source": "treebank",
            "data.text_directory": "/corpora/forest",
            "data.train_trees": "train.trees",
            "data.valid_trees": "dev.trees",
            "data.test_trees": "test.trees",
            "data.vocabulary_sharing": "separate",
            "training.best_metric": "f1",
        }
        | changes
    )
    return parsing.parse(values)


def leave_parser(workdir, settings, *, f1=71.0, **changes):
    """Write what a training on trees leaves when it has scored its average."""
    scores = [
        {"name": name, "value": value, "signature": SIGNATURE}
        for name, value in (("f1", f1), ("precision", 72.0), ("tagging", 93.0))
    ]
    leave(workdir, settings, scores=scores, **changes)


def cells(table, row):
    [line] = [line for line in table.splitlines() if line.startswith(f"| {row} |")]
    return [cell.strip() for cell in line.strip("|").split("|")]


def read(directory):
    records = scored_runs.read(directory)
    assert records.unreadable == []
    return records.runs
