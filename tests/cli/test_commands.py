"""The command `vaswani`: what it answers before any program runs."""

import os
import subprocess
import sys

import pytest

import vaswani_jax
from tests import interpreter
from vaswani_jax.cli import commands


def test_help_lists_the_commands_one_line_each(
    capsys: pytest.CaptureFixture[str],
) -> None:
    commands.main(["--help"])
    lines = capsys.readouterr().out.splitlines()
    for name in commands.COMMANDS:
        assert sum(line.startswith(f"  {name} ") for line in lines) == 1


def test_version_is_that_of_the_package(capsys: pytest.CaptureFixture[str]) -> None:
    commands.main(["--version"])
    assert capsys.readouterr().out == f"vaswani-jax {vaswani_jax.__version__}\n"


def test_a_mistyped_command_gets_a_suggestion(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit) as end:
        commands.main(["trian", "demo"])
    assert end.value.code == 1
    error = capsys.readouterr().err
    assert error == "error: unknown command trian; did you mean train?\n"


@pytest.mark.parametrize("word", ["--help", "--version"])
def test_to_ask_for_help_loads_no_jax(word: str) -> None:
    program = (
        "import sys; import vaswani_jax; from vaswani_jax.cli import commands; "
        f"commands.main([{word!r}]); assert 'jax' not in sys.modules"
    )
    interpreter.output_of(program)


def test_help_ends_quietly_when_its_reader_is_gone() -> None:
    read_end, write_end = os.pipe()
    os.close(read_end)
    with os.fdopen(write_end, "wb") as output:
        completed = subprocess.run(
            [sys.executable, "-m", "vaswani_jax", "--help"],
            stdout=output,
            stderr=subprocess.PIPE,
            timeout=300,
            check=False,
        )
    assert (completed.returncode, completed.stderr) == (141, b"")
