"""Python programs that run in an interpreter of their own."""

import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).parents[1]
# No program of a test takes as long, on any machine.
LIMIT_SECONDS = 300


def output_of(program: str, *arguments: str, **environment: str) -> str:
    """Return what a program prints; it must end in time and with status 0."""
    completed = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=LIMIT_SECONDS,
        check=False,
    )
    assert completed.returncode == 0, completed.stderr
    return completed.stdout.strip()
