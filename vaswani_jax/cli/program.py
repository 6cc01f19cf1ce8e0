"""Sections 5 and 6: how every program starts, and fails in one line."""

import errno
import logging
import os
import pathlib
import signal
import sys
from collections.abc import Callable, Collection, Mapping, Sequence

from absl import app, flags
from ml_collections import config_flags

from vaswani_jax.cli import command_line, logs
from vaswani_jax.core import cpu_allocator, parallel, processes, remote

logger = logging.getLogger(__name__)
QUIET = flags.DEFINE_bool("quiet", False, "Log warnings and errors only.")
VERBOSE = flags.DEFINE_bool(
    "verbose", False, "Log details, too, and what the libraries warn of."
)
COORDINATOR = flags.DEFINE_string(
    "coordinator",
    None,
    "HOST:PORT of process 0 of several that compute together, or auto (SLURM, Open "
    "MPI, Kubernetes, Cloud TPU).",
)
NUM_PROCESSES = flags.DEFINE_integer(
    "num_processes", None, "How many processes compute together.", lower_bound=1
)
PROCESS_ID = flags.DEFINE_integer(
    "process_id", None, "The number of this process, from 0.", lower_bound=0
)


LESS_MEMORY = (
    "A smaller batch needs less: config.data.*_tokens_per_batch, or for training "
    "config.training.accumulate_steps=auto or config.model.rematerialize=True; "
    "config.search.source_tokens_per_batch for a search."
)


def what(purpose: str) -> str:
    """The help of --config: what the program takes it for, and how it is written."""
    return (
        f"What {purpose}: FILE.py or FILE.py:VARIANT; change a key by "
        "--config.KEY=VALUE (keys: vaswani_jax/core/config.py)."
    )


def run(
    main: Callable[..., None] | Mapping[str, Callable[[], None]],
    *,
    expected: tuple[type[Exception], ...],
    argument: str | None = None,
    several: bool = False,
    saves: bool = False,
) -> None:
    """Parse the flags, then run `main`.

    Args:
        main: The program, or its commands by the word that stands before the flags.
        argument: What the program is given beside its flags, if anything is.
        expected: Errors whose message tells the user all: printed without a
            traceback, exit status 1. All others keep their traceback.
        several: Whether several processes can run it together.
        saves: Whether SIGTERM lets it save first.
    """

    logs.install()

    def checked(argv: Sequence[str]) -> None:
        rest = argv[1:]
        if callable(main):
            chosen = main
        elif rest and rest[0] in main:
            chosen, rest = main[rest[0]], rest[1:]
        else:
            raise app.UsageError(f"the first argument is one of: {', '.join(main)}")
        given, rest = (rest[:1], rest[1:]) if argument else ([], rest)
        if argument and not given:
            raise app.UsageError(f"the first argument is missing: {argument}")
        if rest:
            raise app.UsageError(f"unexpected arguments: {' '.join(rest)}")
        told = cpu_allocator.keep_memory()
        parallel.disable_async_dispatch()
        try:
            logs.set_level(quiet=QUIET.value, verbose=VERBOSE.value)
            where = (COORDINATOR.value, NUM_PROCESSES.value, PROCESS_ID.value)
            if where != (None, None, None):
                if not several:
                    raise ValueError("--coordinator is of main, decode and evaluate")
                processes.connect(*where, handles_sigterm=saves)
            logger.info(told)
            chosen(*given)
        except BrokenPipeError:
            # Who reads our output has enough. What is still buffered goes nowhere.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            sys.exit(128 + signal.SIGPIPE)
        except KeyboardInterrupt:
            print("\nerror: interrupted", file=sys.stderr)
            sys.exit(128 + signal.SIGINT)
        except expected as error:
            full = isinstance(error, OSError) and error.errno == errno.ENOSPC
            hint = ": free some where --workdir, data and outputs lie" if full else ""
            print(f"error: {error}{hint}", file=sys.stderr)
            sys.exit(1)
        except RuntimeError as error:
            # So begins what XLA says of a device without room.
            if not str(error).startswith("RESOURCE_EXHAUSTED"):
                raise
            reason = str(error).splitlines()[0].removeprefix("RESOURCE_EXHAUSTED: ")
            print(f"error: {reason} {LESS_MEMORY}", file=sys.stderr)
            sys.exit(1)

    app.run(checked, flags_parser=command_line.parse)


def workdir(
    given: str | None, *, skip: Collection[str] = (), fetch: bool = True
) -> pathlib.Path:
    """What --workdir says, or runs/NAME of the --config file (runs/NAME_ROW).

    Of `configs/of_run.py:WORKDIR` it is that workdir, and of a URL its mirror here.

    Args:
        given: The value of the flag.
        skip: Directories in it that a mirror does not need.
        fetch: Whether to bring a mirror up to date now.
    """
    named = given if given is not None else _default_workdir()
    found = remote.here(named, skip=skip) if fetch else remote.place(named)
    if remote.is_remote(named):
        logger.info(f"--workdir={named} is mirrored in {found}")
    if found.exists() and not found.is_dir():
        raise ValueError(f"--workdir={named} must be a directory, and is a file")
    return found


def _default_workdir() -> str:
    config = config_flags.get_config_filename(flags.FLAGS["config"])
    path, _, row = config.partition(":")
    name = "_".join([pathlib.Path(path).stem] + [row] * bool(row))
    found = str(pathlib.Path("runs", name))
    if pathlib.Path(path).name == "of_run.py":
        found = row
    logger.info(f"--workdir={found}")
    return found


def say(text: str) -> None:
    """Log a line at level INFO, for callers that still pass a printer on."""
    logger.info("%s", text)
