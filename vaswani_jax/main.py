"""Train a model, and evaluate it as it learns.

Prepares the data first if needed; at the end scores the mean of the last checkpoints on
the validation and the test set. The same command resumes a run that was interrupted.

  vaswani train demo --workdir=runs/demo
  vaswani train demo --workdir=runs/seeds --seeds=3
  python -m vaswani_jax.main --config=configs/demo.py --workdir=runs/demo
"""

import logging
import sys

from absl import flags

from vaswani_jax import trainer
from vaswani_jax.cli import logs, path_flags, program
from vaswani_jax.cli.syntax import Syntax
from vaswani_jax.core import errors, processes, seeds
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
    "WORKDIR@CHECKPOINT, WORKDIR/checkpoints/STEP or FILE.safetensors.",
)
REBUILD = flags.DEFINE_bool(
    "rebuild_data", False, "Prepare the data again, even if it is up to date."
)


SEEDS = flags.DEFINE_integer(
    "seeds",
    None,
    "Train this number of runs one after the other, with the seeds config.seed, "
    "config.seed + 1, ..., each in its directory WORKDIR/seed-SEED.",
    lower_bound=1,
    upper_bound=seeds.MAX_SEEDS,
)


def check_flags() -> None:
    """Check the range of seeds, and that --workdir holds no single run."""
    if SEEDS.value:
        seeds.check_range(seed=program.settings().seed, num_seeds=SEEDS.value)
        trainer.check_seeds_directory(WORKDIR.value)


def main() -> None:
    """Train, and print the scores of the mean of the last checkpoints."""
    options = {"init_from": INIT_FROM.value, "rebuild_data": REBUILD.value}
    try:
        if SEEDS.value:
            result = trainer.train_seeds(
                program.settings(),
                WORKDIR.value,
                num_seeds=SEEDS.value,
                on_evaluation=_print_scores_of_seed,
                **options,
            )
            _print(f"\n{result.format()}")
            return
        program.open_workdir(WORKDIR.value)  # It logs where a URL's local copy lies.
        trainer.train(
            program.settings(), WORKDIR.value, on_evaluation=_print_scores, **options
        )
    except preemption.Stopped as stopped:
        logger.info(str(stopped))
        sys.exit(stopped.status)


def _print_scores(evaluation: scores.Evaluation) -> None:
    _print(evaluation.format(samples=0))


def _print_scores_of_seed(seed: int, evaluation: scores.Evaluation) -> None:
    _print(f"\nseed {seed}{evaluation.format(samples=0)}")


def _print(text: str) -> None:
    """Print scores; training continues if the reader is gone or the disk is full."""
    if not processes.is_main_process():
        return
    try:
        print(text, flush=True)
    except OSError as error:
        logger.warning(
            f"cannot write to standard output ({errors.first_line(error)}); "
            f"{WORKDIR.value} has the scores"
        )
        logs.discard_output()


PROGRAM = program.Program(
    main=main,
    syntax=Syntax(
        arguments=("config",),
        takes_config=True,
        default_workdir=True,
        multi_process=True,
    ),
    check_flags=check_flags,
    expected=(*program.EXPECTED_ERRORS, divergence.DivergedError),
    handles_sigterm=True,
)

if __name__ == "__main__":
    PROGRAM.run()
