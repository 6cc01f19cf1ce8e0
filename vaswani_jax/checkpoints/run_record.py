"""Section 5: what a resumed run may change, and the record of its starts."""

import dataclasses
import datetime
import json
import os
import pathlib
import socket
import uuid
from collections.abc import Mapping
from typing import IO, Any

from vaswani_jax.core import config, environment, parallel

# What a run that goes on may have otherwise: how long and how it is computed, kept,
# scored and searched, where the text lies (its fingerprint must be the same), and what
# is turned down while a run goes on. Anything else would make it another run.
CHANGEABLE = (
    "model.dropout_rate",
    "model.attention_dropout_rate",
    "model.relu_dropout_rate",
    "model.attention",
    "model.rematerialize",
    "data.tfds_directory",
    "data.text_directory",
    "data.train_source",
    "data.train_target",
    "data.valid_source",
    "data.valid_target",
    "data.test_source",
    "data.test_target",
    "data.num_valid",
    "data.num_test",
    "data.directory",
    "data.text_form",
    "data.lowercase_scores",
    "optimizer.learning_rate_scale",
    "training.num_steps",
    "training.accumulate_steps",
    "training.log_every_steps",
    "training.evaluate_every_steps",
    "training.checkpoint_every_steps",
    "training.keep_checkpoints",
    "training.average_checkpoints",
    "training.best_metric",
    "training.patience",
    "training.max_skipped_batches",
    "training.max_loss_rise",
    "search",
)


@dataclasses.dataclass(frozen=True)
class Change:
    """A setting that is not what it was when the checkpoint was made."""

    key: str
    was: Any
    now: Any

    def __str__(self) -> str:
        return f"config.{self.key} is {self.now!r}, was {self.was!r}"


def changes(was: Mapping[str, Any], settings: config.Config) -> list[Change]:
    """What differs between a checkpoint's recorded configuration and the settings.

    A key that the record does not have is no difference.
    """
    old = config.recorded(was)
    new = config.flatten(config.to_dict(settings))
    return [
        Change(key, old[key], value)
        for key, value in new.items()
        if key in old and old[key] != value
    ]


def refuse_fixed(found: list[Change], *, step: int, directory: pathlib.Path) -> None:
    """Refuse changes of what is not among `CHANGEABLE`.

    Raises:
        ValueError: Names each of them, was and is.
    """
    fixed = [
        change
        for change in found
        if not {change.key, change.key.partition(".")[0]} & set(CHANGEABLE)
    ]
    if fixed:
        raise ValueError(
            f"{directory} has a run at step {step:,} that cannot go on with: "
            f"{'; '.join(map(str, fixed))}. Restore them, or name another --workdir "
            "(with --init_from it starts from this one's parameters)"
        )


def record_start(
    workdir: pathlib.Path,
    settings: config.Config,
    *,
    step: int,
    found: list[Change],
    init_from: str = "",
) -> None:
    """Write config.json, and add a line to starts.jsonl."""
    values = config.to_dict(settings)
    unfinished = workdir / "config.json.unfinished"
    unfinished.write_text(json.dumps(values, indent=1))
    unfinished.replace(workdir / "config.json")
    line = {
        "id": uuid.uuid4().hex,
        "host": socket.gethostname(),
        "time": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "step": step,
        "init_from": init_from,
        "devices": parallel.describe(),
        "environment": environment.describe(),
        "changes": [dataclasses.asdict(change) for change in found],
        "config": values,
    }
    with open(workdir / "starts.jsonl", "a+b") as file:
        # A full disk may have cut the last line.
        cut = file.seek(0, os.SEEK_END) and _last_byte(file) != b"\n"
        file.write(b"\n" * bool(cut) + json.dumps(line).encode() + b"\n")


def _last_byte(file: IO[bytes]) -> bytes:
    file.seek(-1, os.SEEK_END)
    return file.read(1)
