"""Command lines of one program that run one after the other in one process.

A command line that is refused does little: a process of its own would spend its time on
starting.
"""

import contextlib
import importlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Iterable, Iterator, Sequence
from typing import BinaryIO

from absl import app, flags
from absl.testing import flagsaver

from tests.programs import runs
from vaswani_jax.cli import commands


def run(
    command: str,
    lines: Iterable[tuple[Sequence[str], pathlib.Path]],
    *,
    devices: int | None = None,
) -> list[subprocess.CompletedProcess[bytes]]:
    """Run a command of `vaswani` once a line, all in one process, without input.

    Args:
        command: Which command, for instance "plot".
        lines: The words that follow it, and the directory to run it in.
        devices: How many virtual devices it has.
    """
    requests = [(list(words), str(directory)) for words, directory in lines]
    completed = runs.run(
        *(sys.executable, "-m", "tests.programs.command_lines", command),
        stdin=json.dumps(requests).encode(),
        devices=devices,
    )
    assert completed.returncode == 0, completed.stderr.decode()
    return [
        subprocess.CompletedProcess(words, status, output.encode(), errors.encode())
        for (words, _), (status, output, errors) in zip(
            requests, json.loads(completed.stdout), strict=True
        )
    ]


def main(command: str) -> None:
    """Run the command lines that standard input has, and print how each ends."""
    importlib.import_module(f"vaswani_jax.{commands.COMMANDS[command][0]}")
    # Otherwise the first line would define them, and restoring flags removes them.
    app.define_help_flags()
    requests = json.load(sys.stdin)
    print(json.dumps([ending([command, *words], cwd) for words, cwd in requests]))


def ending(words: Sequence[str], directory: str) -> tuple[int, str, str]:
    """Return the status of `vaswani` and what it writes to each output.

    The flags are then as before.
    """
    with (
        redirected(sys.stdout.fileno()) as output,
        redirected(2) as errors,
        contextlib.chdir(directory),
        flagsaver.flagsaver(),
    ):
        status = status_of(words)
        flags.FLAGS.unparse_flags()
        sys.stdout.flush()
        texts = []
        for file in (output, errors):
            file.seek(0)
            texts.append(file.read().decode())
    return status, texts[0], texts[1]


def status_of(words: Sequence[str]) -> int:
    """Run `vaswani`; return the status with which its process would end."""
    try:
        commands.main(words)
    except SystemExit as end:
        return int(end.code or 0)
    except Exception:
        traceback.print_exc()
        return 1
    return 0


@contextlib.contextmanager
def redirected(descriptor: int) -> Iterator[BinaryIO]:
    """Send what is written to a descriptor to a file."""
    original = os.dup(descriptor)
    with tempfile.TemporaryFile() as file:
        os.dup2(file.fileno(), descriptor)
        try:
            yield file
        finally:
            os.dup2(original, descriptor)
            os.close(original)


if __name__ == "__main__":
    main(sys.argv[1])
