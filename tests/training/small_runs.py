"""Short runs of a small model, in this process."""

import json
import pathlib
from typing import Any

from vaswani_jax.checkpoints import average, store
from vaswani_jax.core import config, data_config, files
from vaswani_jax.core.types import Evaluator
from vaswani_jax.data import prepared
from vaswani_jax.training import loop

# One shape of batches, so that one step is compiled.
OVERRIDES = {
    "model.dropout_rate": 0.2,
    "training.keep_checkpoints": 9,
    "data.num_buckets": 1,
}


# Where generated text was prepared first, by all that decides what it becomes.
_prepared: dict[tuple[config.DataConfig, int], pathlib.Path] = {}


def zero_loss(params: object) -> dict[str, float]:
    """Evaluate any parameters alike."""
    return {"valid/loss": 0.0}


def prepare(settings: config.Config, directory: pathlib.Path) -> prepared.PreparedData:
    """Prepare the data of a run, or link what a run of the same settings generated."""
    if settings.data.source in data_config.GENERATED:
        first = _prepared.setdefault((settings.data, settings.seed), directory)
        prepared.link_data(first, directory)
    return prepared.open_or_prepare(settings, directory, rebuild=False)


def train(
    settings: config.Config,
    workdir: pathlib.Path | files.Directory,
    *,
    evaluator: Evaluator = zero_loss,
    initial_params: Any = None,
) -> store.Checkpoint:
    """Train, and return the last checkpoint."""
    if isinstance(workdir, pathlib.Path):
        workdir = files.Directory(workdir)
    data = prepare(settings, workdir.path / "data")
    outcome = loop.train(
        settings,
        data,
        workdir=workdir,
        evaluators=[evaluator],
        initial_params=initial_params,
    )
    directory = workdir.path / "checkpoints"
    assert outcome.step == store.steps(directory)[-1]
    names = ["params", "optimizer"]
    if store.has_average(directory, outcome.step):
        names.append(store.AVERAGE)
    return store.restore(directory, outcome.step, names=names)


def save_average(settings: config.Config, workdir: pathlib.Path) -> None:
    """Write the mean of all checkpoints, and its copy in one file."""
    directory = workdir / "checkpoints"
    average.save_average(
        workdir,
        average.average_params(directory, store.steps(directory)),
        settings=settings,
        vocabulary=prepared.open_prepared(workdir / "data").vocabulary,
    )


def read_metrics(workdir: pathlib.Path) -> dict[int, dict[str, float]]:
    """Return the metrics of each step of a run."""
    rows: dict[int, dict[str, float]] = {}
    for line in (workdir / "metrics.jsonl").read_text().splitlines():
        row = json.loads(line)
        rows.setdefault(row["step"], {}).update(row)
    return rows
