"""The package's programs, run as a user runs them with settings of a toy."""

import contextlib
import os
import pathlib
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from typing import Any, cast

from tests import xla
from tests.programs import warm

ROOT = pathlib.Path(__file__).parents[2]
SMALL = {
    "model.num_layers": 1,
    "model.d_model": 16,
    "model.d_ff": 16,
    "model.d_k": 8,
    "model.d_v": 8,
    "data.num_train": 200,
    "data.num_valid": 10,
    "data.num_test": 10,
    "data.num_buckets": 1,
    "training.num_steps": 8,
    "training.log_every_steps": 4,
    "training.evaluate_every_steps": 4,
    "training.checkpoint_every_steps": 4,
    "training.average_checkpoints": 2,
    "search.max_extra_tokens": 4,
    # A search compiles one loop for its first 16 tokens, and more for longer outputs.
    "search.max_tokens": 16,
    "search.beam_size": 2,
}


def vaswani(
    program: str,
    workdir: pathlib.Path | str,
    *flags: str,
    config: str = "configs/copy_task.py",
    stdin: bytes = b"",
    devices: int = 8,
) -> subprocess.CompletedProcess[bytes]:
    """Run a program of the package with the small settings."""
    words = [*command(program, workdir, config=config), *flags]
    return run(*words, stdin=stdin, devices=devices)


def finish(workdir: pathlib.Path | str, *flags: str) -> str:
    """Train to the end; what was told."""
    result = vaswani("main", workdir, *flags)
    assert result.returncode == 0, result.stderr.decode()
    return result.stderr.decode() + result.stdout.decode()


def run(
    *arguments: str,
    stdin: bytes = b"",
    devices: int | None = 8,
    cwd: pathlib.Path = ROOT,
) -> subprocess.CompletedProcess[bytes]:
    """Run a command to its end, with the package in reach."""
    where = environment(devices=devices)
    if warm.fits(arguments, where):
        return warm.run(arguments, stdin=stdin, cwd=cwd, environment=where, timeout=300)
    return subprocess.run(
        arguments,
        input=stdin,
        capture_output=True,
        cwd=cwd,
        env=where,
        timeout=300,
        check=False,
    )


def start(words: Sequence[str], **options: Any) -> subprocess.Popen[bytes]:
    """Start a command, with the package in reach.

    Args:
        words: The command.
        **options: Those of `subprocess.Popen`.
    """
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    options = {"cwd": ROOT, "env": environment(), **pipes, **options}
    if warm.fits(words, options["env"]):
        return cast(subprocess.Popen[bytes], warm.Process(words, **options))
    return subprocess.Popen(words, **options)


@contextlib.contextmanager
def running(words: Sequence[str], **options: Any) -> Iterator[subprocess.Popen[bytes]]:
    """Run a command beside the test; kill it when the test ends, passed or failed.

    The arguments are those of `start`.
    """
    with start(words, **options) as process:
        # The end of the command is the end of its pipes, so nothing waits longer.
        watchdog = threading.Timer(900, process.kill)
        watchdog.start()
        try:
            yield process
        finally:
            watchdog.cancel()
            process.kill()


def command(
    program: str, workdir: pathlib.Path | str, *, config: str = "configs/copy_task.py"
) -> list[str]:
    """A program of the package with the small settings."""
    words = [sys.executable, "-m", f"vaswani_jax.{program}", f"--workdir={workdir}"]
    if program != "average_checkpoints":
        words.append(f"--config={ROOT / config}")
        words += [f"--config.{key}={value}" for key, value in SMALL.items()]
    return words


def environment(*, devices: int | None = 8) -> dict[str, str]:
    """In which the package is found, with so many virtual devices."""
    return {**os.environ, "PYTHONPATH": str(ROOT), "XLA_FLAGS": xla.flags(devices)}


def error_of(result: subprocess.CompletedProcess[bytes]) -> str:
    """The one line a failed program says; it must not be a traceback."""
    messages = result.stderr.decode()
    assert result.returncode != 0, messages
    assert "Traceback" not in messages, messages
    return messages.splitlines()[-1]
