"""Average checkpoints of a run for decoding, as in section 6.1.

vaswani average runs/demo --last=5
python -m vaswani_jax.average_checkpoints --workdir=runs/demo --last=5
"""

import logging
import pathlib

from absl import flags

from vaswani_jax.checkpoints import average, store
from vaswani_jax.cli import path_flags, program
from vaswani_jax.cli.syntax import Syntax
from vaswani_jax.core import parsing, plurals
from vaswani_jax.core.config import Config
from vaswani_jax.data import prepared
from vaswani_jax.data.vocabulary import Vocabulary

logger = logging.getLogger(__name__)

WORKDIR = path_flags.define_path(
    "workdir", None, "The directory of the run.", required=True
)
LAST = flags.DEFINE_integer(
    "last", None, "Average so many of the newest checkpoints.", lower_bound=1
)
STEPS = flags.DEFINE_list(
    "steps", None, "Average the checkpoints of these steps: 100,200,300."
)


def check_flags() -> None:
    """Refuse anything but one of --last and --steps."""
    steps = STEPS.value
    if (LAST.value is None) == (steps is None):
        problem = "are missing" if steps is None else "are both given"
        raise ValueError(f"--last=N and --steps=A,B,C {problem}: give one of them")
    if steps is None:
        return
    if not steps or not all(step.isdecimal() for step in steps):
        raise ValueError(f"--steps must be whole numbers, got {steps}")
    if len(set(map(int, steps))) < len(steps):
        raise ValueError(f"--steps must be different numbers, got {steps}")


def main() -> None:
    """Write WORKDIR/averaged, which decode and evaluate read by default."""
    workdir = program.open_workdir(WORKDIR.value)
    workdir.pull(skip=["best"])
    directory = workdir.path / "checkpoints"
    if not directory.is_dir():
        raise FileNotFoundError(f"--workdir: there is no {directory}")
    steps = [int(step) for step in STEPS.value or ()]
    if LAST.value is not None:
        steps = store.steps(directory)[-LAST.value :]
        if len(steps) < LAST.value:
            raise ValueError(
                f"--last={LAST.value}: {directory} has "
                f"{plurals.format_count(len(steps), 'checkpoint')}; lower --last"
            )
    mean = average.average_params(directory, steps)
    settings, vocabulary = _model(workdir.path)
    path = average.save_average(
        workdir.path, mean, settings=settings, vocabulary=vocabulary
    )
    workdir.push(folder="averaged")
    logger.info(f"the mean of the checkpoints {steps} is in {path}")


def _model(workdir: pathlib.Path) -> tuple[Config, Vocabulary] | tuple[None, None]:
    """Return the settings and the vocabulary of a run, for a copy in one file."""
    try:
        settings = parsing.load(workdir)
        directory = prepared.data_directory(settings.data, workdir)
        return settings, prepared.open_prepared(directory).vocabulary
    except (OSError, ValueError) as error:
        logger.info(f"note: the mean has no copy in one file: {error}")
        return None, None


PROGRAM = program.Program(
    main=main,
    syntax=Syntax(arguments=("workdir",)),
    check_flags=check_flags,
)

if __name__ == "__main__":
    PROGRAM.run()
