"""Every command of the pages works, and prints what its page shows."""

import importlib.util
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

import pytest

from tests import workers
from tests.docs import pages
from tests.programs import warm

# The demo in seconds: every `vaswani train` of a page has these settings, too, but for
# the preset that checks an installation in a minute.
SHORT = {
    "training.num_steps": 4,
    "training.log_every_steps": 2,
    "training.evaluate_every_steps": 4,
    "training.checkpoint_every_steps": 2,
    "training.average_checkpoints": 2,
    "data.num_train": 2000,
    "data.num_valid": 40,
    "data.num_test": 40,
    "data.num_buckets": 1,
    "data.source_tokens_per_batch": 1024,
    "data.target_tokens_per_batch": 1024,
    "model.num_layers": 1,
    "model.d_model": 32,
    "model.d_ff": 32,
    "model.d_k": 8,
    "model.d_v": 8,
    "search.source_tokens_per_batch": 512,
    "search.max_extra_tokens": 10,
    # A search compiles one loop for its first 16 tokens, and more for longer outputs.
    "search.max_tokens": 16,
}
TRAINING = "vaswani train demo"  # the run that all pages share
# `python -m` and `python -` start in a warm process, as `vaswani` does, unless COLD is
# set.
PYTHON = f"""#!/bin/sh
case "$COLD $1" in
    " -m") shift; exec START "$@" ;;
    " -") exec START tests.docs.run_input ;;
esac
exec "{sys.executable}" "$@"
"""
VASWANI = """#!/bin/sh
preset=$2
case "$*" in
    "train copy_task:"*) ;;
    "train own_text"*--flagfile=*) # whose scores a page compares: no output is cut
        shift 2
        set -- train "$preset" SHORT --config.search.beam_size=1 \
            --config.search.max_tokens=0 "$@" ;;
    "train own_text"*) # whose splits have 500 lines each
        shift 2; set -- train "$preset" SHORT --config.search.beam_size=1 "$@" ;;
    "train --"*) shift; set -- train SHORT "$@" ;;
    "train "*) shift 2; set -- train "$preset" SHORT "$@" ;;
esac
exec START "$@"
"""


@pytest.fixture(scope="session")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return an environment with `vaswani` and `python` in its PATH."""
    programs = tmp_path_factory.mktemp("programs")
    flags = " ".join(f"--config.{key}={value}" for key, value in SHORT.items())
    vaswani = VASWANI.replace("SHORT", flags).replace(
        "START", shlex.join(warm.command_of("vaswani_jax"))
    )
    python = PYTHON.replace("START", shlex.join(warm.command_of()))
    for name, script in {"python": python, "vaswani": vaswani}.items():
        (programs / name).write_text(script)
        (programs / name).chmod(0o755)
    return {
        **os.environ,
        "PATH": f"{programs}:{os.environ['PATH']}",
        "PYTHONPATH": str(pages.ROOT),
        "MPLBACKEND": "agg",
        "XLA_FLAGS": os.environ["XLA_FLAGS"].replace("count=8", "count=1"),
    }


@pytest.fixture(scope="session")
def demo(
    environment: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> pathlib.Path:
    """Return a short run of the demo, which the first worker trains for all."""

    def train(workdir: pathlib.Path) -> None:
        status, printed = execute(TRAINING, workdir.parents[1], environment)
        assert status == 0, printed
        assert (workdir / "curves.png").stat().st_size > 0
        _log(workdir).write_text(printed)

    return workers.make_once(tmp_path_factory, "runs/demo", train)


def _log(demo: pathlib.Path) -> pathlib.Path:
    """Return the file with what the demo's training printed."""
    return demo.with_name("demo.log")


def execute(
    command: str, directory: pathlib.Path, environment: dict[str, str]
) -> tuple[int, str]:
    """Return a command's status, and what a terminal shows of it."""
    completed = subprocess.run(
        ["bash", "-c", command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        cwd=directory,
        env=environment,
        timeout=900,
        check=False,
    )
    return completed.returncode, completed.stdout.decode()


UNENDED = re.compile('^warning: .* without an end.*\n|"cut": true, ', re.MULTILINE)


def run_page(
    commands: list[pages.Command], demo: pathlib.Path, environment: dict[str, str]
) -> None:
    """Run commands where the reader of a page is: beside a trained demo."""
    directory = demo.with_name(f"page-{commands[0].page.stem}-{os.getpid()}")
    if commands[0].page.name == "README.md":
        environment = environment | {"COLD": "1"}
    shutil.copytree(demo, directory / "runs" / "demo")
    for command in commands:
        if command.text == TRAINING:
            status, printed = 0, _log(demo).read_text()
        else:
            status, printed = execute(command.text, directory, environment)
            # A demo of a few updates ends no translation.
            printed = UNENDED.sub("", printed)
        where = f"{command.page}, block at line {command.line}: {command.text}"
        fails = bool(command.output) and command.output[-1].startswith("error:")
        assert (status != 0) == fails, f"{where}\nstatus {status}\n{printed}"
        if not command.output or command.measured == "output":
            continue
        output = command.output
        if command.measured == "figures":
            output = pages.without_figures(output)
        shown = "\n".join(output)
        assert pages.matches(output, printed), (
            f"{where}\nshown:\n{shown}\nprinted:\n{printed}"
        )


def runnable(page: pathlib.Path, *, is_slow: bool) -> list[pages.Command]:
    """Return the commands of a page that tests can run."""
    return [
        command
        for command in pages.read_commands(page)
        if not command.reason
        and command.is_slow <= is_slow
        and all(map(importlib.util.find_spec, command.packages))
    ]


@pytest.mark.parametrize("page", pages.PAGES, ids=lambda page: page.stem)
def test_the_commands_of_a_page_print_what_it_shows(
    page: pathlib.Path, demo: pathlib.Path, environment: dict[str, str]
) -> None:
    if not (commands := runnable(page, is_slow=False)):
        pytest.skip("this page has no command that can run here")
    run_page(commands, demo, environment)


@pytest.mark.slow
@pytest.mark.parametrize(
    "page",
    [p for p in pages.PAGES if any(c.is_slow for c in runnable(p, is_slow=True))],
    ids=lambda page: page.stem,
)
def test_the_slow_commands_of_a_page_print_what_it_shows(
    page: pathlib.Path, demo: pathlib.Path, environment: dict[str, str]
) -> None:
    run_page(runnable(page, is_slow=True), demo, environment)


def test_no_block_hides_commands_from_the_tests() -> None:
    for page in pages.PAGES:
        text = page.read_text(encoding="utf-8")
        for fence in ("```bash", "```sh\n", "```shell"):
            assert fence not in text, f"{page}: commands stand in console blocks"
