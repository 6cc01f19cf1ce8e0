"""Send a run's metrics to Weights & Biases, MLflow or trackio.

Each is an extra of this package, and reads its own environment variables: where its
server is, and who you are. A run that resumes continues its records there.
"""

import contextlib
import functools
import json
import logging
import os
import pathlib
import re
import sys
import uuid
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from vaswani_jax.checkpoints import select
from vaswani_jax.core import config, errors, extras, files, training_config, types
from vaswani_jax.training.preemption import Stopped

logger = logging.getLogger(__name__)

PROJECT = "vaswani_jax"
# In the workdir: the identifier of the run, by the logger's name.
FILE = "loggers.json"
LoggerContext = contextlib.AbstractContextManager[types.MetricsLogger]


def require(settings: config.Config) -> None:
    """Refuse a logger whose package is not installed, before any work.

    Raises:
        ImportError: Says how to install it.
    """
    for name in training_config.names_of_loggers(settings.training):
        purpose = f"config.training.loggers={name} needs"
        extras.require([name], extra=name, purpose=purpose)


@contextlib.contextmanager
def open_loggers(
    settings: config.Config, workdir: pathlib.Path
) -> Iterator[list[types.MetricsLogger]]:
    """Open the loggers of `training.loggers` for a run, and close them at the end.

    Args:
        settings: The run's.
        workdir: The run's directory; its name becomes the run's name.

    Raises:
        ValueError: One cannot be opened: its server cannot be reached, or refuses; or
            `WORKDIR/loggers.json` is damaged.
    """
    names = training_config.names_of_loggers(settings.training)
    if names:
        _read_identifiers(workdir)  # so that a damaged file is refused by its name
    with contextlib.ExitStack() as stack:
        metrics_loggers = []
        for name in names:
            try:
                with contextlib.redirect_stdout(sys.stderr):  # Scores go to stdout.
                    context = OPEN[name](settings, workdir)
                    metrics_logger = context.__enter__()
            except Exception as error:  # Each package raises its own kinds.
                raise ValueError(
                    f"config.training.loggers={name} cannot be opened "
                    f"({type(error).__name__}: {errors.one_line(error)}): check its "
                    "environment variables, or leave it out"
                ) from error
            stack.push(functools.partial(_close, context, name))
            metrics_loggers.append(metrics_logger)
        yield metrics_loggers


def _close(context: LoggerContext, name: str, *exception: Any) -> None:
    """Close a logger; a failure is only a warning, so that it hides no exception."""
    try:
        context.__exit__(*exception)
    except Exception as error:  # Each package raises its own kinds.
        if error is not exception[1]:
            logger.warning(
                f"config.training.loggers={name} could not be closed: {error!r}"
            )


def _name(workdir: pathlib.Path) -> str:
    """Return the name of a directory, of `.`, too; a link has its own."""
    return os.path.basename(os.path.abspath(workdir))


@contextlib.contextmanager
def _wandb(
    settings: config.Config, workdir: pathlib.Path
) -> Iterator[types.MetricsLogger]:
    import wandb

    identifier = _read_identifier(workdir, "wandb") or uuid.uuid4().hex
    run = wandb.init(
        project=os.environ.get("WANDB_PROJECT", PROJECT),
        name=_name(workdir),
        id=identifier,
        resume="allow",
        dir=str(workdir),
        config=config.flatten(config.to_dict(settings)),
        allow_val_change=True,
    )
    _record(workdir, "wandb", identifier)
    # W&B ignores its own steps when they come again, as after a skipped batch.
    run.define_metric("step")
    run.define_metric("*", step_metric="step")
    try:
        yield lambda step, values: run.log({**values, "step": step})
    finally:
        run.finish()


@contextlib.contextmanager
def _mlflow(
    settings: config.Config, workdir: pathlib.Path
) -> Iterator[types.MetricsLogger]:
    import mlflow

    identifier = _read_identifier(workdir, "mlflow")
    if not identifier and not os.environ.get("MLFLOW_EXPERIMENT_NAME"):
        mlflow.set_experiment(PROJECT)
    new_name = None if identifier else _name(workdir)
    run = mlflow.start_run(run_id=identifier or None, run_name=new_name)
    try:
        if not identifier:
            _record(workdir, "mlflow", run.info.run_id)
            mlflow.log_params(config.flatten(config.to_dict(settings)))
        # MLflow refuses the brackets of valid/bleu[de].
        yield lambda step, values: mlflow.log_metrics(
            {re.sub(r"\[(.*)\]", r".\1", name): v for name, v in values.items()},
            step=step,
        )
    except BaseException as error:
        is_stopped = isinstance(error, Stopped | KeyboardInterrupt)
        with contextlib.redirect_stdout(sys.stderr):  # It prints links.
            mlflow.end_run("KILLED" if is_stopped else "FAILED")
        raise
    with contextlib.redirect_stdout(sys.stderr):
        mlflow.end_run()


@contextlib.contextmanager
def _trackio(
    settings: config.Config, workdir: pathlib.Path
) -> Iterator[types.MetricsLogger]:
    import trackio

    # A name is a run's only identifier there.
    new_name = f"{_name(workdir)}-{uuid.uuid4().hex[:6]}"
    name = _read_identifier(workdir, "trackio") or new_name
    run = trackio.init(
        project=PROJECT,
        name=name,
        resume="allow",
        config=config.flatten(config.to_dict(settings)),
        embed=False,
    )
    _record(workdir, "trackio", name)
    try:
        yield lambda step, values: run.log(dict(values), step=step)
    finally:
        with contextlib.redirect_stdout(sys.stderr):
            run.finish()


OPEN: Mapping[str, Callable[[config.Config, pathlib.Path], LoggerContext]] = {
    "wandb": _wandb,
    "mlflow": _mlflow,
    "trackio": _trackio,
}


def _read_identifiers(workdir: pathlib.Path) -> dict[str, str]:
    path = workdir / FILE
    if not path.exists():
        return {}
    try:
        return dict(json.loads(path.read_text(encoding="utf-8")))
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{path} is damaged, so the loggers cannot resume their runs: restore it "
            "from a backup, or delete it to start new runs"
        ) from error


def _read_identifier(workdir: pathlib.Path, name: str) -> str:
    """Return the identifier of a run that resumes; "" for one that begins."""
    if not select.has_checkpoints(workdir):
        return ""
    return _read_identifiers(workdir).get(name, "")


def _record(workdir: pathlib.Path, name: str, identifier: str) -> None:
    identifiers = {**_read_identifiers(workdir), name: identifier}
    files.write_atomically(workdir / FILE, json.dumps(identifiers))
