"""Workdirs like those that a training leaves, for tests of the report."""

import dataclasses
import json

from configs import table3, table3_small
from vaswani_jax.core import config, parsing
from vaswani_jax.paper import scored_runs

ROWS = {row: parsing.parse(table3.get_config(row)) for row in table3.ROWS}
SMALL = {row: parsing.parse(table3_small.get_config(row)) for row in table3.ROWS}


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


def cells(table, row):
    [line] = [line for line in table.splitlines() if line.startswith(f"| {row} |")]
    return [cell.strip() for cell in line.strip("|").split("|")]


def read(directory):
    records = scored_runs.read(directory)
    assert records.unreadable == []
    return records.runs
