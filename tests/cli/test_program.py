"""A program ends with a status, and a failure in one line says what to do."""

import json
import pathlib
import subprocess
import sys

import pytest

from tests import interpreter
from vaswani_jax.cli import program
from vaswani_jax.core import tpu_flags

# What a program does, and the status and the line on standard error that it ends with.
FAILURES: dict[str, list[object]] = {
    "ValueError('no such line')": [1, "error: no such line\n"],
    "OSError(28, 'No space left on device', 'a.npz')": [
        1,
        "error: [Errno 28] No space left on device: 'a.npz': free space where "
        "--workdir, data and outputs are\n",
    ],
    "OSError(13, 'Permission denied', 'a.npz')": [
        1,
        "error: [Errno 13] Permission denied: 'a.npz'\n",
    ],
    "RuntimeError('RESOURCE_EXHAUSTED: no room for 9 bytes.\\nmore')": [
        1,
        f"error: no room for 9 bytes. {program.LESS_MEMORY}\n",
    ],
    # What nobody expects keeps its traceback.
    "RuntimeError('INTERNAL: odd')": ["RuntimeError", ""],
    "KeyError('odd')": ["KeyError", ""],
    # The program expects it.
    "ZeroDivisionError('by zero')": [1, "error: by zero\n"],
}
# Command lines, and what the program prints or is refused with.
LINES: dict[str, list[object]] = {
    "demo --workdir=": [
        1,
        "",
        "error: --workdir is empty: name the directory of a run\n",
    ],
    "demo --workdir=nonsense": [1, "", "error: --workdir makes no sense\n"],
    "demo --config.model.num_layers=4 --quiet": [None, "4 layers\n", ""],
    "demo --config.model.num_layers=4": [
        None,
        "4 layers\n",
        "--workdir=runs/demo\n",
    ],
    "demo --workdir=here": [None, "3 layers\n", ""],
    "demo --config.model.num_layers=0": [
        1,
        "",
        "error: config.model.num_layers must be at least 1, got 0\n",
    ],
    'own_text --config.data.corpora=[{"name":"a","source":"a.en","target":"a.de"}] '
    "--config.data.source_locale=en --config.data.target_locale=de "
    "--config.data.train_source=news.en": [
        1,
        "",
        "error: config.data.train_source=news.en is not read with "
        "config.data.corpora: add it as a corpus, or set --config.data.corpora=\n",
    ],
    "demo --quiet --verbose": [
        1,
        "",
        "error: --quiet and --verbose exclude each other: give one of them\n",
    ],
    "demo --coordinator=auto": [
        1,
        "",
        "error: --coordinator is a flag of train, translate, back-translate and "
        "evaluate alone: leave it out\n",
    ],
    "demo --num_processes=2": [
        1,
        "",
        "error: --num_processes is a flag of train, translate, back-translate and "
        "evaluate alone: leave it out\n",
    ],
}
PROGRAM = """
import contextlib, io, json, os, sys, tempfile
from absl import flags
from vaswani_jax.cli import path_flags, program, syntax

path_flags.define_path("workdir", "", "")
INITIAL_FLAGS = set(flags.FLAGS)


def outcome(main, syntax, line):
    with (
        tempfile.TemporaryFile() as errors,
        contextlib.redirect_stdout(io.StringIO()) as output,
    ):
        os.dup2(errors.fileno(), 2)
        expected = (*program.EXPECTED_ERRORS, ZeroDivisionError)
        try:
            program.Program(
                main=main, syntax=syntax, check_flags=check_flags, expected=expected
            ).run(["program", *line.split()])
        except SystemExit as end:
            status = end.code
        except Exception as error:
            status = type(error).__name__
        flags.FLAGS.unparse_flags()
        for flag in set(flags.FLAGS) - INITIAL_FLAGS:
            delattr(flags.FLAGS, flag)
        errors.seek(0)
        return [status, output.getvalue(), errors.read().decode()]


def check_flags():
    if flags.FLAGS.workdir == "nonsense":
        raise ValueError("--workdir makes no sense")


def fail(error):
    raise eval(error)


def show_layers():
    print(f"{program.settings().model.num_layers} layers")


failures, lines = json.loads(sys.argv[1])
takes_config = syntax.Syntax(
    arguments=("config",), takes_config=True, default_workdir=True
)
outcomes = {
    error: outcome(lambda: fail(error), syntax.Syntax(), "--quiet")
    for error in failures
} | {line: outcome(show_layers, takes_config, line) for line in lines}
print(json.dumps(outcomes))
"""


@pytest.fixture(scope="module")
def outcomes() -> dict[str, list[object]]:
    """Return how each program ends, all in one process."""
    arguments = json.dumps([list(FAILURES), list(LINES)])
    return dict(json.loads(interpreter.output_of(PROGRAM, arguments)))


@pytest.mark.parametrize("error", FAILURES)
def test_an_expected_failure_is_one_line(
    error: str, outcomes: dict[str, list[object]]
) -> None:
    status, output, errors = outcomes[error]
    assert [status, errors] == FAILURES[error]
    assert output == ""


@pytest.mark.parametrize("line", LINES)
def test_a_program_runs_with_its_settings_or_is_refused(
    line: str, outcomes: dict[str, list[object]]
) -> None:
    status, output, errors = outcomes[line]
    assert [status, output, errors] == LINES[line]


def test_only_a_verbose_program_says_what_it_asks_of_the_allocator() -> None:
    script = PROGRAM.split("failures, lines")[0] + (
        'syntax_ = syntax.Syntax(arguments=("config",), takes_config=True)\n'
        'print(outcome(lambda: None, syntax_, "demo --workdir=a --verbose")[2])'
    )
    assert interpreter.output_of(script).startswith("allocator: ")


def test_a_program_asks_a_tpu_s_compiler_to_overlap_communication() -> None:
    script = PROGRAM.split("failures, lines")[0] + (
        "import os\n"
        "from vaswani_jax.core import tpu_flags\n"
        'tpu_flags.metadata.version = lambda name: "0.0.42.1"\n'
        'syntax_ = syntax.Syntax(arguments=("config",), takes_config=True)\n'
        'show = lambda: print(os.environ["LIBTPU_INIT_ARGS"])\n'
        'print(outcome(show, syntax_, "demo --workdir=a")[1])'
    )
    assert interpreter.output_of(script) == tpu_flags.OVERLAP


def test_what_cannot_lie_on_a_store_is_a_path(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert program.local_path("output", "~/out") == tmp_path / "out"
    for value in ("", "s3://bucket/out"):
        with pytest.raises(ValueError, match=f"--output={value} must be a path"):
            program.local_path("output", value)


def test_a_workdir_on_a_store_is_fetched_and_its_copy_named(
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    store = tmp_path / "store" / "run"
    for folder in ("best", "data"):
        (store / folder).mkdir(parents=True)
        (store / folder / "manifest.json").write_text(folder)
    monkeypatch.setenv("VASWANI_JAX_MIRRORS", str(tmp_path / "copies"))
    caplog.set_level("INFO", "vaswani_jax")
    assert program.workdir(str(store)) == store
    assert caplog.messages == []
    url = f"file://{store}"
    copy = program.workdir(url, skip=["best"])
    assert copy.is_relative_to(tmp_path / "copies")
    assert (copy / "data" / "manifest.json").read_text() == "data"
    assert not (copy / "best").exists()
    assert caplog.messages == [f"--workdir={url} has its local copy in {copy}"]


def test_a_workdir_that_is_only_opened_is_not_fetched(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "config.json").write_text("{}")
    monkeypatch.setenv("VASWANI_JAX_MIRRORS", str(tmp_path / "copies"))
    directory = program.open_workdir(f"file://{tmp_path / 'run'}")
    assert not (directory.path / "config.json").exists()
    with pytest.raises(ValueError, match="must be a directory, and is a file"):
        program.open_workdir(str(tmp_path / "run" / "config.json"))


def test_a_program_ends_well_without_standard_output() -> None:
    program = (
        "from vaswani_jax.cli import path_flags, program, syntax\n"
        "program.Program(main=lambda: print('unseen'), syntax=syntax.Syntax())"
        ".run(['program'])\n"
    )
    command = f'exec {sys.executable} -c "$0" >&-'
    result = subprocess.run(
        ["bash", "-c", command, program],
        cwd=interpreter.ROOT,
        capture_output=True,
        text=True,
    )
    assert (result.returncode, result.stderr) == (0, "")


@pytest.mark.skipif(not pathlib.Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_behind_standard_output_is_one_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with open("/dev/full", "w") as full:
        monkeypatch.setattr("sys.stdout", full)
        with (
            pytest.raises(SystemExit) as ended,
            program._failures_in_one_line((OSError,)),
        ):
            print("text", flush=True)
        full.flush()  # As at the end of the interpreter: nothing is left to fail.
    assert ended.value.code == 1
    error = capsys.readouterr().err
    assert error.startswith("error: [Errno 28] ") and error.count("\n") == 1
    with open("/dev/full", "w") as full:
        words = [sys.executable, "-m", "vaswani_jax", "--help"]
        helped = subprocess.run(words, stdout=full, stderr=subprocess.PIPE, text=True)
    assert (helped.returncode, helped.stderr.count("\n")) == (1, 1)
    assert helped.stderr.startswith("error: [Errno 28] ")
