"""`python -m vaswani_jax` is the command `vaswani` where nothing is installed."""

import pathlib
import subprocess
import sys
import tomllib

import pytest

from tests import interpreter

ROOT = pathlib.Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def run(*command: str) -> tuple[int, str, str]:
    """Return the status of a command, and what it prints on both streams."""
    completed = subprocess.run(
        command,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=interpreter.LIMIT_SECONDS,
        check=False,
    )
    return completed.returncode, completed.stdout, completed.stderr


@pytest.mark.parametrize(
    ("words", "status"), [(["--version"], 0), ([], 0), (["trian", "demo"], 1)]
)
def test_the_module_does_what_the_installed_command_does(
    words: list[str], status: int
) -> None:
    module, function = PROJECT["scripts"]["vaswani"].split(":")
    # As pip writes the command.
    command = f"import sys; from {module} import {function}; sys.exit({function}())"
    outcome = run(sys.executable, "-m", "vaswani_jax", *words)
    assert outcome == run(sys.executable, "-c", command, *words)
    assert outcome[0] == status
    assert bool(outcome[1]) != bool(outcome[2])


def test_importing_the_module_runs_no_command() -> None:
    assert interpreter.output_of("import vaswani_jax.__main__", "--version") == ""
