"""Train a model, and evaluate it as it learns.

Prepares the data first if needed; at the end scores the mean of the last checkpoints on
the validation and the test set. The same command resumes a run that was interrupted.

  vaswani train demo --workdir=runs/demo
  python -m vaswani_jax.main --config=configs/demo.py --workdir=runs/demo
"""

import logging
import sys

from absl import flags

from vaswani_jax import trainer
from vaswani_jax.cli import path_flags, program
from vaswani_jax.cli.syntax import Syntax
from vaswani_jax.core import processes
from vaswani_jax.evaluation import scores
from vaswani_jax.training import divergence, preemption

logger = logging.getLogger(__name__)

WORKDIR = path_flags.define_path(
    "workdir", "", "The directory of the run; runs/NAME of the preset by default."
)
INIT_FROM = path_flags.define_path(
    "init_from",
    "",
    "Start from these parameters, with new data and moments: WORKDIR, "
    "WORKDIR@CHECKPOINT or WORKDIR/checkpoints/STEP.",
)
REBUILD = flags.DEFINE_bool(
    "rebuild_data", False, "Prepare the data again, even if it is up to date."
)


def main() -> None:
    """Train, and print the scores of the mean of the last checkpoints."""
    settings = program.settings()
    program.open_workdir(WORKDIR.value)  # It logs where the local copy of a URL lies.
    try:
        trainer.train(
            settings,
            WORKDIR.value,
            init_from=INIT_FROM.value,
            rebuild_data=REBUILD.value,
            on_evaluation=_print_scores,
        )
    except preemption.Stopped as stopped:
        logger.info(str(stopped))
        sys.exit(stopped.status)


def _print_scores(evaluation: scores.Evaluation) -> None:
    if processes.is_main_process():
        print(evaluation.format(samples=0), flush=True)


PROGRAM = program.Program(
    main=main,
    syntax=Syntax(
        arguments=("config",),
        takes_config=True,
        default_workdir=True,
        multi_process=True,
    ),
    expected=(*program.EXPECTED_ERRORS, divergence.DivergedError),
    handles_sigterm=True,
)

if __name__ == "__main__":
    PROGRAM.run()
