"""Find the checkpoint that a name means.

- "newest": the last checkpoint of the training
- "best": the parameters with the best validation score
- "averaged": the mean that training or `average_checkpoints` wrote
- "average:N": the mean of the last N checkpoints, computed on the spot
- the number of a step
- "best/STEP", "averaged/STEP": "best" or "averaged", if it is of this step
"""

import contextlib
import dataclasses
import logging
import pathlib
import re
from typing import Any

from vaswani_jax.checkpoints import average, bundle, store
from vaswani_jax.checkpoints.store import Checkpoint, CheckpointError
from vaswani_jax.core import config, files, parsing, seeds, tensor_file
from vaswani_jax.core.suggestions import suggest, suggest_directory

logger = logging.getLogger(__name__)
# Checkpoints of these names lie in directories of the same names.
FOLDERS = ("averaged", "best")
PATH = r"(?:best|averaged)/\d+"
# What --init_from=WORKDIR takes: the first of them that exists.
FIRST_CHOICES = (*FOLDERS, "newest")
# The folders of the names that have no number.
FOLDER_OF = {"newest": "checkpoints", "best": "best", "averaged": "averaged"}


def select(workdir: pathlib.Path, name: str, *, option: str = "RUN@") -> Checkpoint:
    """Return the parameters that a name means.

    Args:
        workdir: The run's directory, or a file that `bundle` reads.
        name: See the head of this module.
        option: What stands before the name on a command line, for error messages. By
            default what all programs take; not all have --checkpoint, and an ensemble
            has several runs.

    Raises:
        CheckpointError: There is no such checkpoint, or it is damaged.
        ValueError: The file is damaged, or of another kind.
        OSError: There is no such file, or the checkpoint cannot be read.
    """
    if tensor_file.is_tensor_file(workdir):
        return bundle.read_checkpoint(workdir, name)
    if re.fullmatch(PATH, name):
        path = workdir / name
        if not path.is_dir():
            raise CheckpointError(f"{option}{name}: there is no {path}")
        return store.restore_for_decoding(path.parent, int(path.name))
    number = name.removeprefix("average:")
    if name not in FOLDER_OF and not number.isdecimal():
        raise CheckpointError(
            "a checkpoint (--checkpoint, or after the @ of WORKDIR@CHECKPOINT) is "
            f"newest, best, averaged, average:N or a step; got {name!r}"
            f"{suggest(name, FOLDER_OF)}"
        )
    directory = _directory(workdir, _folder(name))
    if not directory.is_dir():
        existing = [
            option + existing_name
            for existing_name, folder in FOLDER_OF.items()
            if store.steps(workdir / folder)
        ]
        hint = f"; pass {' or '.join(existing)}" if existing else ""
        if not existing and name in FOLDERS:
            # Of a workdir at a URL, only the folder that a name needs is fetched.
            hint = f"; if the run has not ended, pass {option}newest"
        raise CheckpointError(f"no checkpoint {name!r}: there is no {directory}{hint}")
    steps = store.steps(directory)
    if not steps:
        raise CheckpointError(f"no checkpoint {name!r}: {directory} is empty")
    if name in FOLDER_OF:
        if checkpoint := bundle.read_beside(directory / str(steps[-1])):
            return checkpoint
        return store.restore_for_decoding(directory, steps[-1])
    if name == number:
        try:
            return store.restore_for_decoding(directory, int(number))
        except CheckpointError as error:
            raise CheckpointError(f"{option}{name}: {error}") from error
    if not 1 <= int(number) <= len(steps):
        raise CheckpointError(
            f"{option}{name}: N of average:N is from 1 to {len(steps)}, the number of "
            f"checkpoints in {directory}: {steps}"
        )
    return average.average_params(directory, steps[-int(number) :])


@dataclasses.dataclass(frozen=True)
class Steps:
    """The step of a checkpoint, and the steps whose mean it is.

    Attributes:
        step: The step.
        averaged: The steps whose parameters were averaged; None for no mean.
        run: The id of their run; "" if it is not recorded.
    """

    step: int
    averaged: list[int] | None
    run: str

    def may_equal(self, recorded: "Steps") -> bool:
        """Return whether both may describe the same parameters."""
        runs_differ = bool(self.run and recorded.run and self.run != recorded.run)
        return not runs_differ and (self.step, self.averaged) == (
            recorded.step,
            recorded.averaged,
        )


def find_steps(workdir: pathlib.Path, name: str) -> Steps | None:
    """Return the steps of the checkpoint that `select` would return.

    Reads neither parameters nor digests. Returns None if there is no such checkpoint.
    """
    checkpoints = paths(workdir, name)
    if not checkpoints:
        return None
    steps = [int(path.name) for path in checkpoints]
    is_mean = name.startswith("average:")
    if is_mean and len(steps) != int(name.removeprefix("average:")):
        return None
    record = store.read_record(checkpoints[-1].parent, steps[-1])
    run = record.get("run", {}).get("id", "")
    return Steps(steps[-1], steps if is_mean else record.get("averaged"), run)


def recorded_config(workdir: pathlib.Path, name: str) -> dict[str, Any]:
    """Return the configuration in the record of the checkpoint that a name means.

    Verifies nothing. Returns {} if there is no such checkpoint, or no record.
    """
    checkpoints = paths(workdir, name)
    if not checkpoints:
        return {}
    record = store.read_record(checkpoints[-1].parent, int(checkpoints[-1].name))
    return dict(record.get("config", {}))


def paths(workdir: pathlib.Path, name: str) -> list[pathlib.Path]:
    """Return the directories of the checkpoints that `select` would read.

    They are the oldest first. Those that do not exist are left out.
    """
    directory = _directory(workdir, _folder(name))
    steps = store.steps(directory)
    number = name.removeprefix("average:").rpartition("/")[2]
    if name in FOLDER_OF:
        steps = steps[-1:]
    elif not number.isdecimal():
        steps = []
    elif name.startswith("average:"):
        steps = steps[max(0, len(steps) - int(number)) :]
    else:
        steps = [step for step in steps if step == int(number)]
    return [directory / str(step) for step in steps]


def _directory(workdir: pathlib.Path, folder: str) -> pathlib.Path:
    """Return a folder of a workdir, or its old copy if a kill cut its replacement."""
    directory = workdir / folder
    replaced = files.sibling(directory, "old")
    return replaced if replaced.is_dir() and not directory.exists() else directory


def _folder(name: str) -> str:
    folder = name.partition("/")[0]
    return folder if folder in FOLDERS else "checkpoints"


def other_folders(names: str) -> set[str]:
    """Return the folders of a workdir that hold none of the named checkpoints.

    Args:
        names: The checkpoints' names, separated by commas.
    """
    return {"checkpoints", *FOLDERS} - {_folder(name) for name in names.split(",")}


def describe(workdir: pathlib.Path, name: str, *, checkpoint: Checkpoint) -> str:
    """Describe a selected checkpoint; note if an average is out of date."""
    averaged = checkpoint.record.get("averaged")
    recorded_values = config.flatten_record(checkpoint.record.get("config", {}))
    decay = recorded_values.get("training.ema_decay", 0.0)
    parts = [f"the mean of {averaged}"] if averaged else []
    parts += [f"moving average, decay {decay}"] if decay else []
    mean = f" ({'; '.join(parts)})" if parts else ""
    if tensor_file.is_tensor_file(workdir):
        name = bundle.name_of(checkpoint)
    text = f"checkpoint {name}: step {checkpoint.step:,}{mean}"
    steps = store.steps(workdir / "checkpoints")
    if name == "averaged" and steps and steps[-1] > checkpoint.step:
        text += (
            f"\nnote: training has gone on to step {steps[-1]:,}; `vaswani average` "
            "makes a new mean, RUN@average:N computes one on the spot"
        )
    return text


def split_name(name: str) -> tuple[str, str]:
    """Split WORKDIR@CHECKPOINT, WORKDIR/checkpoints/STEP or WORKDIR/best/STEP.

    The checkpoint of WORKDIR alone is "". What exists under the whole name is a WORKDIR
    or a file: both may have an @ in their names.

    >>> split_name("runs/a@best"), split_name("abfs://box@account/runs/a")
    (('runs/a', 'best'), ('abfs://box@account/runs/a', ''))
    >>> split_name("runs/a/checkpoints/500"), split_name("runs/a/best/500")
    (('runs/a', '500'), ('runs/a', 'best/500'))
    """
    if parts := re.fullmatch(rf"(.+)/(?:checkpoints/(\d+)|({PATH}))/?", name):
        return parts[1], parts[2] or parts[3]
    workdir, _, checkpoint = name.rpartition("@")
    if "/" in checkpoint or not workdir or pathlib.Path(name).exists():
        return name, ""
    return workdir, checkpoint


@dataclasses.dataclass(frozen=True)
class StartingPoint:
    """Another run's parameters and vocabulary, from which a new run starts.

    Attributes:
        checkpoint: The parameters.
        data_directory: The value of config.data.directory, where the vocabulary lies.
    """

    checkpoint: Checkpoint
    data_directory: str


def starting_point(workdir: pathlib.Path, name: str) -> StartingPoint:
    """Return the parameters and the data directory that --init_from names.

    Args:
        workdir: The directory of the other run.
        name: Its checkpoint as `split_name` returns it; for "" the first that exists of
            averaged, best and newest.

    Raises:
        CheckpointError: There is no such checkpoint, or it is damaged.
        ValueError: The workdir has no configuration, or a damaged one.
        OSError: The checkpoint cannot be read.
    """
    config_file = workdir / "config.json"
    if not config_file.exists():
        raise ValueError(f"--init_from: {why_no_run(workdir)}")
    record = parsing.read_record(workdir)
    existing = (choice for choice in FIRST_CHOICES if paths(workdir, choice))
    chosen_name = name or next(existing, "newest")
    checkpoint = select(workdir, chosen_name, option=f"--init_from={workdir}@")
    steps = store.steps(workdir / "checkpoints")
    is_default_mean = not name and chosen_name == "averaged"
    if is_default_mean and steps and steps[-1] > checkpoint.step:
        logger.info(
            f"note: --init_from={workdir} starts from the averaged checkpoint of step "
            f"{checkpoint.step:,}, but the run has reached step {steps[-1]:,}; use "
            f"--init_from={workdir}@newest to start from that"
        )
    try:
        data_directory = str(record["data"]["directory"])
    except (KeyError, TypeError) as error:
        raise ValueError(f"{config_file} is damaged: {error!r}") from None
    return StartingPoint(checkpoint, data_directory)


def why_no_run(workdir: pathlib.Path) -> str:
    """Return in words why a directory cannot be the workdir of a run."""
    if not workdir.is_dir():
        return f"there is no directory {workdir}{suggest_directory(workdir)}"
    no_config = f"{workdir} is no workdir of a run: it has no config.json"
    return seeds.why_no_run(workdir) or no_config


def has_checkpoints(workdir: pathlib.Path) -> bool:
    """Return whether a run can resume.

    The parameters in `best` are not enough: they may be older than any checkpoint.
    """
    return bool(store.steps(workdir / "checkpoints"))


def recorded_vocabulary(workdir: pathlib.Path) -> str | None:
    """Return the vocabulary's fingerprint that a workdir's checkpoints record."""
    for folder in ("checkpoints", *FOLDERS):
        directory = _directory(workdir, folder)
        for step in reversed(store.steps(directory)):
            with contextlib.suppress(CheckpointError):  # Another may be whole.
                record = store.restore(directory, step, names=[]).record
                return str(record["vocabulary"])
    return None
