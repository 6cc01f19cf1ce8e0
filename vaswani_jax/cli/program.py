"""Start a program, and end it in one line and with a status when it fails."""

import contextlib
import dataclasses
import errno
import gc
import logging
import os
import pathlib
import signal
import sys
from collections.abc import Callable, Collection, Iterator, Sequence

import ml_collections
from absl import app, flags
from ml_collections import config_flags

from vaswani_jax.cli import command_line, help_text, logs, path_flags
from vaswani_jax.cli.syntax import PROCESS_FLAGS, Syntax
from vaswani_jax.core import (
    config,
    cpu_allocator,
    data_rules,
    errors,
    files,
    interrupts,
    parsing,
    remote,
    seeds,
    tensor_file,
    tpu_flags,
)

logger = logging.getLogger(__name__)
QUIET = flags.DEFINE_bool("quiet", False, "Log warnings and errors only.")
VERBOSE = flags.DEFINE_bool(
    "verbose", False, "Log details, too, and what the libraries warn of."
)
PRINT_CONFIG = flags.DEFINE_bool(
    "print_config",
    False,
    "Print all settings as flags that --flagfile=FILE reads after a preset, and exit.",
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
# Errors whose message tells the user all.
EXPECTED_ERRORS: tuple[type[Exception], ...] = (ValueError, OSError, ImportError)
LESS_MEMORY = (
    "A smaller batch needs less: config.data.*_tokens_per_batch, or for training "
    "config.training.accumulate_steps=auto or config.model.rematerialize=True; "
    "config.search.source_tokens_per_batch for a search."
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Program:
    """A program: what it does, and how it is started.

    Attributes:
        main: The work, once the flags are parsed.
        syntax: How its command line is read.
        complete_config: Changes the configuration as other flags imply, before it is
            checked; raises ValueError for flags that contradict it.
        check_flags: Raises one of `expected` for flags that make no sense and for
            missing files or packages, before anything is logged or computed.
        expected: Errors that are printed in one line, with status 1. All others keep
            their traceback.
        handles_sigterm: Whether it saves before SIGTERM ends it.
        uses_devices: Whether it computes with JAX. Other programs start without it, as
            its import takes a second.
    """

    main: Callable[[], None]
    syntax: Syntax
    complete_config: Callable[[ml_collections.ConfigDict], None] = lambda values: None
    check_flags: Callable[[], None] = lambda: None
    expected: tuple[type[Exception], ...] = EXPECTED_ERRORS
    handles_sigterm: bool = False
    uses_devices: bool = True

    def run(self, argv: Sequence[str] | None = None) -> None:
        """Parse the command line, run the program and exit.

        Args:
            argv: The name of the program, then the words after it; by default those of
                this Python process.
        """
        logs.install()
        gc.freeze()  # What is imported stays: no collection needs to look at it.
        argv = list(sys.argv if argv is None else argv)
        with (
            interrupts.repeated(KeyboardInterrupt),
            _failures_in_one_line(self.expected),
        ):
            app.run(self._start, argv, flags_parser=self._parse)

    def _parse(self, argv: list[str]) -> list[str]:
        description = sys.modules[self.main.__module__].__doc__ or ""
        return command_line.parse(argv, self.syntax, description=description)

    def _start(self, argv: Sequence[str]) -> None:
        del argv  # Every word has become a flag.
        logs.set_level(quiet=QUIET.value, verbose=VERBOSE.value)
        if self.syntax.takes_config:
            self.complete_config(flags.FLAGS["config"].value)
        if PRINT_CONFIG.value:
            if not self.syntax.takes_config:
                raise ValueError("--print_config: this program reads no configuration")
            print(help_text.settings_as_flags(settings()), flush=True)
            return
        if self.syntax.takes_config and not self.syntax.default_config:
            settings()  # Refuses what is wrong before any other line is written.
        _refuse_empty_names()
        self.check_flags()
        process_flags = [
            name for name in PROCESS_FLAGS if flags.FLAGS[name].value is not None
        ]
        if process_flags and not self.syntax.multi_process:
            raise ValueError(
                f"--{process_flags[0]} is a flag of train, translate, back-translate "
                "and evaluate alone: leave it out"
            )
        if self.uses_devices:
            self._prepare_devices(is_multi_process=bool(process_flags))
        if self.syntax.default_workdir and flags.FLAGS["workdir"].using_default_value:
            logger.info(f"--workdir={flags.FLAGS.workdir}")
        try:
            self.main()
        except SystemExit:  # `main` chose the status; its output must still be written.
            _flush_stdout()
            raise
        _flush_stdout()

    def _prepare_devices(self, *, is_multi_process: bool) -> None:
        """Set up the allocator, JAX and the other processes, if there are some."""
        from vaswani_jax.core import parallel, processes

        memory_note = cpu_allocator.keep_memory()
        parallel.disable_async_dispatch()
        tpu_flags.set_defaults(os.environ)
        if is_multi_process:
            processes.connect(
                coordinator=COORDINATOR.value,
                num_processes=NUM_PROCESSES.value,
                process_id=PROCESS_ID.value,
                handles_sigterm=self.handles_sigterm,
            )
        logger.debug(memory_note)


def _flush_stdout() -> None:
    if sys.stdout is not None:  # None if it was closed before Python started.
        sys.stdout.flush()


def _discard_unwritten() -> None:
    """Discard what standard output does not take; the flush at exit would fail."""
    try:
        _flush_stdout()
    except OSError:
        logs.discard_output()


def _refuse_empty_names() -> None:
    """Refuse an empty path, as an unset shell variable gives: it would be ignored."""
    for name in flags.FLAGS:
        flag = flags.FLAGS[name]
        is_path = isinstance(flag.parser, path_flags.PATH_PARSERS)
        if not (is_path and flag.present):
            continue
        if flag.value in ("", []) or (
            isinstance(flag.value, list) and "" in flag.value
        ):
            if name == "workdir":
                raise ValueError("--workdir is empty: name the directory of a run")
            raise ValueError(
                f"--{name} has an empty path: name a file or a directory; an optional "
                "flag may be left out"
            )


def settings() -> config.Config:
    """Return the checked configuration of the command line.

    Raises:
        ValueError: As `parsing.parse`, or a flag names a training text that
            `data.corpora` replaces.
    """
    flag = flags.FLAGS["config"]
    parsed_settings = parsing.parse(flag.value)
    changed_keys = config_flags.get_override_values(flag)
    data_rules.check_training_files(parsed_settings.data, changed_keys)
    return parsed_settings


def workdir(name: str, *, skip: Collection[str] = ()) -> pathlib.Path:
    """Return the local path of a workdir, up to date, for a program that only reads.

    Args:
        name: The value of --workdir: a directory or a model in one file.
        skip: Names of its directories that are not needed.

    Raises:
        ValueError: It is another file, or no name of a directory.
        OSError: It is on a store that cannot be read, or there is no such file.
    """
    if tensor_file.is_tensor_file(name):
        return remote.local_file(name)
    return open_workdir(name).pull(skip=skip)


def open_workdir(name: str) -> files.Directory:
    """Return the directory that --workdir names; nothing is fetched.

    Raises:
        ValueError: It is a file, no name of a directory, or one of several runs.
    """
    directory = remote.open_workdir(name)
    seeds.refuse_seeds_directory(directory.path)
    if remote.is_remote(name):
        logger.info(f"--workdir={name} has its local copy in {directory.path}")
    return directory


def local_path(flag: str, value: str) -> pathlib.Path:
    """Return the path that a flag names, for what cannot lie on a store.

    Raises:
        ValueError: It is a URL, or empty.
    """
    if not value or remote.is_remote(value):
        raise ValueError(f"--{flag}={value} must be a path on this machine")
    return remote.open_directory(value).path


def _refuse_absent_platform() -> None:
    if os.environ.get("JAX_PLATFORMS"):
        from vaswani_jax.core import parallel

        try:
            parallel.check_platform()
        except ValueError as error:
            command_line.refuse(str(error))


@contextlib.contextmanager
def _failures_in_one_line(expected: tuple[type[Exception], ...]) -> Iterator[None]:
    """Exit with a status, and one line on standard error, when the program fails."""
    try:
        yield
    except BrokenPipeError:
        # The reader of our output has enough. The rest of it goes nowhere.
        logs.discard_output()
        sys.exit(128 + signal.SIGPIPE)
    except KeyboardInterrupt:
        print("\nerror: interrupted", file=sys.stderr, flush=True)
        with contextlib.suppress(OSError):
            _flush_stdout()
        # At once: `sys.exit` would wait for threads and for other processes.
        os._exit(128 + signal.SIGINT)
    except expected as error:
        _discard_unwritten()
        is_full = isinstance(error, OSError) and error.errno == errno.ENOSPC
        hint = ": free space where --workdir, data and outputs are" if is_full else ""
        command_line.refuse(f"{error}{hint}")
    except (RuntimeError, AssertionError) as error:
        # What XLA raises when a device has no memory left.
        if not str(error).startswith("RESOURCE_EXHAUSTED"):
            _refuse_absent_platform()
            logs.end_line()
            raise
        reason = errors.first_line(error).removeprefix("RESOURCE_EXHAUSTED: ")
        command_line.refuse(f"{reason} {LESS_MEMORY}")
    except Exception:  # It keeps its traceback.
        logs.end_line()
        raise
