"""Section 5: train, and evaluate as it goes; prepares the data first if needed, and at
the end scores the mean of the last checkpoints on the validation and the test set.

python -m vaswani_jax.main --config=configs/demo.py --workdir=runs/demo
"""

import contextlib
import dataclasses
import logging
import sys

from absl import flags

from vaswani_jax.checkpoints import compatibility, select
from vaswani_jax.cli import program
from vaswani_jax.cli.syntax import Syntax
from vaswani_jax.core import (
    compilation_cache,
    config,
    files,
    processes,
)
from vaswani_jax.data import prepared
from vaswani_jax.evaluation import scores, validation
from vaswani_jax.training import divergence, loop, preemption, step

logger = logging.getLogger(__name__)

WORKDIR = flags.DEFINE_string(
    "workdir", "", "Where all of this run lies; runs/NAME of the config by default."
)
INIT_FROM = flags.DEFINE_string(
    "init_from",
    "",
    "Start from these parameters, with new data and moments: WORKDIR, "
    "WORKDIR@CHECKPOINT or WORKDIR/checkpoints/STEP.",
)
REBUILD = flags.DEFINE_bool(
    "rebuild_data", False, "Prepare the data again, whatever is there."
)


def main() -> None:
    """Prepare, train, average, score."""
    settings = program.settings()
    step.check_devices(settings)
    workdir = program.open_workdir(WORKDIR.value)
    with contextlib.ExitStack() as stack:
        processes.run_on_main(
            lambda: stack.enter_context(workdir.hold()), ValueError, OSError
        )
        if not processes.is_main_process():
            workdir.pull()
        _run(settings, workdir)


def _run(settings: config.Config, workdir: files.Directory) -> None:
    initial = initial_vocabulary = None
    before, init_from = select.recorded_vocabulary(workdir.path), INIT_FROM.value
    if init_from and select.has_checkpoints(workdir.path):
        logger.info("note: this run has begun; --init_from is of no effect any more")
        init_from = ""
    elif init_from:
        folder, name = select.split_name(init_from)
        other = program.workdir(folder, flag="init_from")
        start = select.starting_point(other, name)
        recorded = dataclasses.replace(settings.data, directory=start.data_directory)
        directory = prepared.data_directory(recorded, other)
        initial_vocabulary = prepared.open_prepared(directory).vocabulary
        initial = start.checkpoint.items["params"]
        compatibility.check_fits(start.checkpoint, settings, initial_vocabulary)

    def prepare(*, rebuild: bool) -> prepared.PreparedData:
        found = prepared.open_or_prepare(
            settings,
            prepared.data_directory(settings.data, workdir.path),
            rebuild=rebuild,
            required_fingerprint=before,
            initial_vocabulary=initial_vocabulary,
        )
        if processes.is_main_process():
            program.push_data(settings.data, workdir)
        return found

    failures = (ValueError, OSError, ImportError)
    data = processes.run_on_main(lambda: prepare(rebuild=REBUILD.value), *failures)
    if data is None:
        workdir.pull()
        data = prepare(rebuild=False)
    compilation_cache.enable(workdir.path / "compiled")
    try:
        loop.train(
            settings,
            data,
            workdir,
            validation.make_validators(settings, data),
            initial_params=initial,
            init_from=init_from,
        )
    except preemption.Stopped as stopped:
        logger.info(str(stopped))
        sys.exit(stopped.status)
    except divergence.DivergedError:
        if processes.is_main_process():
            # The other error says more.
            with contextlib.suppress(OSError, files.SupersededError):
                workdir.push()
        raise
    if not processes.is_main_process():
        workdir.pull()
    for evaluation in scores.score_average(settings, data, workdir):
        if processes.is_main_process():
            print(evaluation.format(samples=0))


PROGRAM = program.Program(
    main=main,
    syntax=Syntax(arguments=("config",), takes_config=True, default_workdir=True),
    expected=(*program.EXPECTED_ERRORS, divergence.DivergedError),
    multi_process=True,
    handles_sigterm=True,
)

if __name__ == "__main__":
    PROGRAM.run()
