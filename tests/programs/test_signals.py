"""Runs that are told to stop, or started twice: the same command resumes it."""

import ctypes
import os
import pathlib
import pty
import signal
import subprocess
import sys

import pytest

from tests.programs import long_runs, runs
from vaswani_jax.checkpoints import store


# SIGHUP comes from a terminal, below.
@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)]
)
def test_a_signal_saves_and_the_same_command_goes_on(
    tmp_path: pathlib.Path,
    uninterrupted_end: long_runs.Ended,
    number: signal.Signals,
    status: int,
) -> None:
    workdir = tmp_path / "run"
    with long_runs.running(workdir) as process:
        long_runs.wait_for_step(workdir, 7)
        process.send_signal(number)
        _, messages = process.communicate(timeout=300)
    assert process.returncode == status, messages.decode()
    saved = store.steps(workdir / "checkpoints")
    last = messages.decode().splitlines()[-1]
    assert last == (
        f"stopped by {number.name} at step {saved[-1]:,}, which is saved; the same "
        "command resumes it"
    )
    assert "Traceback" not in messages.decode()
    assert f"resumed at step {saved[-1]}" in long_runs.finish(workdir)
    long_runs.assert_same(long_runs.ended(workdir), uninterrupted_end)


def tell_main_thread(
    process: subprocess.Popen[bytes], *numbers: signal.Signals
) -> None:
    """Signals that are noticed in the order of their numbers, by one thread."""
    for number in numbers:
        assert ctypes.CDLL(None).tgkill(process.pid, process.pid, number) == 0


def test_ctrl_c_while_saving_exits_at_once_and_harms_nothing(
    tmp_path: pathlib.Path, uninterrupted_end: long_runs.Ended
) -> None:
    workdir = tmp_path / "run"
    with long_runs.running(workdir) as process:
        long_runs.wait_for_step(workdir, 12)
        # It finds both when it goes on, before it can save.
        process.send_signal(signal.SIGSTOP)
        tell_main_thread(process, signal.SIGHUP, signal.SIGINT)
        process.send_signal(signal.SIGCONT)
        _, messages = process.communicate(timeout=300)
    assert process.returncode == 128 + signal.SIGINT
    assert "SIGHUP: saving; Ctrl-C exits without saving" in messages.decode()
    assert "which is saved" not in messages.decode()
    long_runs.finish(workdir)
    long_runs.assert_same(long_runs.ended(workdir), uninterrupted_end)


# Two signals in one garbage collection, where Python ignores what handlers raise. In
# another thread they would wait, and be one, for the main thread.
INTERRUPTED_TWICE = """
import gc, os, pathlib, signal, sys, threading
from vaswani_jax import main

metrics = pathlib.Path(sys.argv[1], "metrics.jsonl")
numbers = [signal.SIGINT, signal.SIGINT]


def callback(phase, info):
    if threading.current_thread() is not threading.main_thread():
        return
    if numbers and metrics.exists() and '"step": 7,' in metrics.read_text():
        while numbers:
            os.kill(os.getpid(), numbers.pop())


gc.callbacks.append(callback)
main.PROGRAM.run(["main", *sys.argv[2:]])
"""


def test_a_second_ctrl_c_in_garbage_collection_exits_in_one_line(
    tmp_path: pathlib.Path, uninterrupted_end: long_runs.Ended
) -> None:
    workdir = tmp_path / "run"
    python, _, _, *flags = runs.command("main", workdir)
    flags += [f"--workdir={workdir}", *long_runs.FLAGS]
    result = runs.run(python, "-c", INTERRUPTED_TWICE, str(workdir), *flags)
    assert result.returncode == 128 + signal.SIGINT, result.stderr.decode()
    messages = result.stderr.decode()
    assert "SIGINT: saving; a second Ctrl-C exits without saving" in messages
    assert messages.endswith("\nerror: interrupted\n")
    assert "ignored" not in messages and "Traceback" not in messages
    long_runs.finish(workdir)
    long_runs.assert_same(long_runs.ended(workdir), uninterrupted_end)


def test_ctrl_c_in_a_translation_says_how_many_lines_are_written(
    trained: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    output = tmp_path / "out"
    words = [*runs.command("decode", trained), f"--output={output}"]
    with runs.running(words, stdin=subprocess.PIPE) as process:
        assert process.stdin
        process.stdin.write(b"a b c d\n")
        process.stdin.flush()
        long_runs.wait_until(
            lambda: output.exists() and output.read_bytes().count(b"\n") == 1,
            "translation",
            process=process,
        )
        process.send_signal(signal.SIGINT)  # It waits for the next line.
        _, messages = process.communicate(timeout=300)
    assert process.returncode == 128 + signal.SIGINT
    assert messages.decode().endswith(
        f"warning: interrupted: {output} has the output of 1 input line\n"
        "\nerror: interrupted\n"
    )
    assert output.read_bytes().count(b"\n") == 1


def saved_at(workdir: pathlib.Path) -> int:
    """The newest checkpoint, which is whole."""
    directory = workdir / "checkpoints"
    newest = store.steps(directory)[-1]
    store.restore(directory, newest, names=["params", "optimizer"])
    return newest


NEVER = "--config.training.checkpoint_every_steps=60"


# As a shell starts a program: in a session whose terminal is its standard input.
IN_ITS_TERMINAL = """
import fcntl, os, sys, termios
os.setsid()
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.argv[1], sys.argv[1:])
"""


def test_a_terminal_that_closes_costs_nothing(tmp_path: pathlib.Path) -> None:
    terminal, program_end = pty.openpty()
    workdir = tmp_path / "run"
    streams = dict.fromkeys(("stdin", "stdout", "stderr"), program_end)
    train = [*runs.command("main", workdir), *long_runs.FLAGS, NEVER]
    command = [sys.executable, "-c", IN_ITS_TERMINAL, *train]
    with runs.running(command, **streams) as process:
        os.close(program_end)
        long_runs.wait_for_step(workdir, 7, terminal=terminal)
        process.send_signal(signal.SIGSTOP)
        os.close(terminal)
        # As a shell and a scheduler tell it once more.
        tell_main_thread(process, signal.SIGHUP, signal.SIGTERM)
        process.send_signal(signal.SIGCONT)
        # Whichever it finds first; the others change nothing.
        assert process.wait(timeout=300) in (128 + signal.SIGHUP, 128 + signal.SIGTERM)
    assert 7 <= saved_at(workdir) < 60


def test_a_reader_that_is_gone_costs_nothing(tmp_path: pathlib.Path) -> None:
    """As `main 2>&1 | tee log` on Ctrl-C, which ends tee, too."""
    workdir = tmp_path / "run"
    with long_runs.running(workdir, NEVER) as process:
        long_runs.wait_for_step(workdir, 7)
        assert process.stdout and process.stderr
        process.stdout.close()
        process.stderr.close()
        long_runs.wait_for_step(workdir, 12)  # it trains on
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=300) == 128 + signal.SIGINT
    assert 12 <= saved_at(workdir) < 60


def test_training_continues_if_standard_output_is_closed(
    tmp_path: pathlib.Path,
) -> None:
    workdir = tmp_path / "run"
    with long_runs.running(workdir, "--config.training.num_steps=12") as process:
        long_runs.wait_for_step(workdir, 1)
        assert process.stdout and process.stderr
        process.stdout.close()
        log = process.stderr.read().decode()
        assert process.wait(timeout=300) == 0, log
    assert log.count("cannot write to standard output") == 1
    # Of both sets.
    scored = {path.name.partition("-")[0] for path in workdir.glob("evaluations/*")}
    assert scored == {"valid", "test"}


def test_a_second_run_in_a_workdir_is_refused_while_the_first_lives(
    tmp_path: pathlib.Path,
) -> None:
    workdir = tmp_path / "run"
    with long_runs.running(workdir) as process:
        long_runs.wait_for_step(workdir, 1)
        process.send_signal(signal.SIGSTOP)  # or it might end before the second begins
        error = runs.error_of(runs.vaswani("main", workdir, *long_runs.FLAGS))
        assert f"in use by process {process.pid} on " in error
        process.kill()
        process.communicate(timeout=300)
    # The lock was the process's.
    long_runs.finish(workdir, "--config.training.num_steps=10")
