"""What flags cannot mean is told in one line, by the real parsers."""

import json
import pathlib
import subprocess
import sys

import pytest

from vaswani_jax.cli import program

ROOT = pathlib.Path(__file__).parents[2]
DEMO = "--config=configs/demo.py"
TOLD = {
    "": "--config is missing; --config=configs/demo.py is one",
    "--config.model.num_layers=2": (
        "--config is missing before its keys; --config=configs/demo.py"
    ),
    "--config=configs/demos.py": (
        "--config=configs/demos.py: there is no file configs/demos.py"
    ),
    "--config=configs": (
        "--config=configs: a configuration is a file FILE.py, or FILE.py:VARIANT"
    ),
    f"{DEMO}:big": (
        f"{DEMO}:big: this configuration has no variants: leave out what stands after "
        "the colon"
    ),
    "--config=configs/own_text.py:huge": (
        "--config=configs/own_text.py:huge: ValueError: own_text.py has base, big, "
        "small; got 'huge'"
    ),
    f"{DEMO} --count=two": "--count must be a whole number, got 'two'",
    f"{DEMO} --config.model.num_heads=four": (
        "--config.model.num_heads must be a whole number, got 'four'"
    ),
    # Before the configuration, too.
    f"--config.training.num_steps=1e5 {DEMO}": (
        "--config.training.num_steps must be a whole number, got '1e5'"
    ),
    f"{DEMO} --config.model.dropout_rate=x": (
        "--config.model.dropout_rate must be a number, got 'x'"
    ),
    f"{DEMO} --config.data.lowercase_scores=maybe": (
        "--config.data.lowercase_scores must be true or false, got 'maybe'"
    ),
    f"{DEMO} --config.model.num_head=4": (
        f"{DEMO} --config.model.num_head=4: unknown key num_head; did you mean "
        "num_heads?"
    ),
    f"{DEMO} --cuont=2": (
        f"{DEMO}: Unknown command line flag 'cuont'. Did you mean: count ?"
    ),
    f"{DEMO} --count=2 --config.model.num_heads=4": "",
    "--config=configs/of_run.py:/nowhere/a.py": (
        "--config=configs/of_run.py:/nowhere/a.py: ValueError: "
    ),
}
PROGRAM = """
import contextlib, io, json, sys
from absl import flags
from ml_collections import config_flags
from vaswani_jax.cli import command_line

told = {}
for given in json.loads(sys.argv[1]):
    values = flags.FlagValues()
    flags.FLAGS = command_line.flags.FLAGS = values
    config_flags.DEFINE_config_file("config", None, "", flag_values=values)
    flags.DEFINE_integer("count", 1, "", flag_values=values)
    flags.mark_flag_as_required("config", flag_values=values)
    with contextlib.redirect_stderr(io.StringIO()) as lines:
        with contextlib.suppress(SystemExit):
            command_line.parse(["program", *given.split()])
    told[given] = lines.getvalue()
print(json.dumps(told))
"""


def test_every_mistake_is_told_in_one_line() -> None:
    result = subprocess.run(
        [sys.executable, "-c", PROGRAM, json.dumps(list(TOLD))],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr
    found = json.loads(result.stdout)
    for given, told in TOLD.items():
        if not told:
            assert found[given] == ""
        else:
            assert found[given].startswith(f"error: {told}"), given
            assert found[given].count("\n") == 1


def test_a_file_is_no_workdir(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match=r"--workdir=.*file must be a directory"):
        program.workdir(str(tmp_path / "file"))
    assert program.workdir(str(tmp_path / "new")) == tmp_path / "new"
