"""Runs that are told to stop, or started twice: the same command resumes it."""

import ctypes
import functools
import os
import pathlib
import pty
import re
import signal
import subprocess

from tests.programs import long_runs, runs
from vaswani_jax.checkpoints import store


def stop_with_signal(
    workdir: pathlib.Path, step: int, *, number: signal.Signals, status: int
) -> str:
    """Tell a run to save and exit, after a step; return its messages."""
    with long_runs.running(workdir) as process:
        long_runs.wait_for_step(workdir, step)
        process.send_signal(number)
        _, messages = process.communicate(timeout=300)
    assert process.returncode == status, messages.decode()
    saved = store.steps(workdir / "checkpoints")
    assert step <= saved[-1] < 60
    last = messages.decode().splitlines()[-1]
    assert last == (
        f"stopped by {number.name} at step {saved[-1]:,}, which is saved; the same "
        "command resumes it"
    )
    assert "Traceback" not in messages.decode()
    return messages.decode()


def tell_main_thread(
    process: subprocess.Popen[bytes], *numbers: signal.Signals
) -> None:
    """Signals that are noticed in the order of their numbers, by one thread."""
    for number in numbers:
        assert ctypes.CDLL(None).tgkill(process.pid, process.pid, number) == 0


def stop_while_saving(workdir: pathlib.Path, step: int) -> str:
    """Stop a run after a step, and interrupt it before it saves; return its log."""
    with long_runs.running(workdir) as process:
        long_runs.wait_for_step(workdir, step)
        # It finds both when it goes on, before it can save.
        process.send_signal(signal.SIGSTOP)
        tell_main_thread(process, signal.SIGHUP, signal.SIGINT)
        process.send_signal(signal.SIGCONT)
        _, messages = process.communicate(timeout=300)
    assert process.returncode == 128 + signal.SIGINT
    assert "SIGHUP: saving; Ctrl-C exits without saving" in messages.decode()
    assert "which is saved" not in messages.decode()
    return messages.decode()


def stop_in_garbage_collection(workdir: pathlib.Path, step: int) -> str:
    """Interrupt a run twice in one collection, after a step; return its messages."""
    python, _, _, *flags = [*runs.command("main", workdir), *long_runs.FLAGS]
    program = "tests.programs.interrupted_twice"
    result = runs.run(python, "-m", program, str(workdir), str(step), *flags)
    messages = result.stderr.decode()
    assert result.returncode == 128 + signal.SIGINT, messages
    assert "SIGINT: saving; a second Ctrl-C exits without saving" in messages
    assert messages.endswith("\nerror: interrupted\n")
    assert "ignored" not in messages and "Traceback" not in messages
    return messages


def last_step(workdir: pathlib.Path) -> int:
    """Return the last step that a run has recorded, saved or not."""
    path = workdir / "metrics.jsonl"
    text = path.read_text() if path.exists() else ""
    return max(map(int, re.findall(r'"step": (\d+),', text)), default=0)


def test_a_run_that_is_stopped_four_times_ends_as_if_it_never_was(
    tmp_path: pathlib.Path, uninterrupted_end: long_runs.Ended
) -> None:
    workdir = tmp_path / "run"
    saved = 0
    # SIGHUP comes from a terminal, below.
    for stop in (
        functools.partial(stop_with_signal, number=signal.SIGTERM, status=143),
        stop_in_garbage_collection,
        functools.partial(stop_with_signal, number=signal.SIGINT, status=130),
        stop_while_saving,
    ):
        messages = stop(workdir, last_step(workdir) + 5)
        assert not saved or f"resumed at step {saved}" in messages
        saved = store.steps(workdir / "checkpoints")[-1]
    assert f"resumed at step {saved}" in long_runs.finish(workdir)
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


def test_a_terminal_that_closes_costs_nothing(tmp_path: pathlib.Path) -> None:
    terminal, program_end = pty.openpty()
    workdir = tmp_path / "run"
    streams = dict.fromkeys(("stdin", "stdout", "stderr"), program_end)
    python, _, *train = [*runs.command("main", workdir), *long_runs.FLAGS, NEVER]
    command = [python, "-m", "tests.programs.in_its_terminal", *train]
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
