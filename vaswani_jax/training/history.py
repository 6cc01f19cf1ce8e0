"""Section 5: what a resumed run may change, and the record of its starts."""

import dataclasses
import datetime
import json
import pathlib
from collections.abc import Mapping
from typing import Any

from vaswani_jax.core import config, parallel

# A run that goes on would train another model, or meet pairs twice or never.
FIXED = (
    "seed",
    "model.layer_norm_position",
    "model.positional_encoding",
    "model.activation",
    "model.layer_norm_epsilon",
    "data.num_train",
    "data.subword_dropout",
    "data.subword_samples",
    "data.max_length",
    "data.batching",
    "data.source_tokens_per_batch",
    "data.target_tokens_per_batch",
    "data.num_buckets",
    "data.packed_length",
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
    """Refuse changes after which the run would not be the same run.

    Raises:
        ValueError: Names each of them, was and is.
    """
    fixed = [change for change in found if change.key in FIXED]
    if fixed:
        raise ValueError(
            f"{directory} has a run at step {step:,} that cannot go on with: "
            f"{'; '.join(map(str, fixed))}. Restore them, or name another --workdir"
        )


def record_start(
    workdir: pathlib.Path, settings: config.Config, *, step: int, found: list[Change]
) -> None:
    """Write config.json, and add a line to starts.jsonl."""
    values = config.to_dict(settings)
    (workdir / "config.json").write_text(json.dumps(values, indent=1))
    line = {
        "time": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "step": step,
        "devices": parallel.describe(),
        "changes": [dataclasses.asdict(change) for change in found],
        "config": values,
    }
    with open(workdir / "starts.jsonl", "a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")
