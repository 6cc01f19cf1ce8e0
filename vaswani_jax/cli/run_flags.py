"""Define the flags that name a trained model: its run, its checkpoint, and more."""

from typing import Any

from absl import flags

from vaswani_jax.cli import path_flags

# These flags belong to the module that calls the functions below.
flags.disclaim_key_flags()

_CHECKPOINTS = "averaged, newest, best, average:N or a step"


def define_workdir() -> flags.FlagHolder[Any]:
    """Define the directory of a run."""
    return path_flags.define_path(
        "workdir",
        "",
        "The directory of the run, or RUN@CHECKPOINT; by default runs/NAME of "
        "--config.",
    )


def define_checkpoint() -> flags.FlagHolder[Any]:
    """Define one checkpoint of the run."""
    return flags.DEFINE_string("checkpoint", "averaged", f"{_CHECKPOINTS}.")


def define_checkpoints() -> flags.FlagHolder[Any]:
    """Define one checkpoint of the run, or several that are an ensemble."""
    meaning = f"{_CHECKPOINTS}; several, with commas, are an ensemble."
    return flags.DEFINE_string("checkpoint", "averaged", meaning)


def define_ensemble() -> flags.FlagHolder[Any]:
    """Define the models of other runs that join an ensemble."""
    return path_flags.define_path_list(
        "ensemble",
        [],
        "Runs with the same vocabulary to add to the ensemble: WORKDIR or "
        "WORKDIR@CHECKPOINT,...",
    )
