"""Runs that are told to stop, or started twice: the same command goes on."""

import pathlib
import signal
import time

import pytest

from tests.programs import long_runs, runs
from vaswani_jax.training import checkpoints


@pytest.mark.parametrize(
    ("number", "status"),
    [(signal.SIGTERM, 143), (signal.SIGINT, 130), (signal.SIGHUP, 129)],
)
def test_a_signal_saves_and_the_same_command_goes_on(
    tmp_path: pathlib.Path,
    whole: long_runs.Ended,
    number: signal.Signals,
    status: int,
) -> None:
    workdir = tmp_path / "run"
    with long_runs.start(workdir) as process:
        long_runs.wait_for_step(workdir, 7)
        process.send_signal(number)
        begun = time.monotonic()
        _, told = process.communicate(timeout=60)
        took = time.monotonic() - begun
    assert process.returncode == status, told.decode()
    assert took < 30
    saved = checkpoints.Checkpoints(workdir / "checkpoints", keep=99).steps()
    last = told.decode().splitlines()[-1]
    assert last == (
        f"stopped by {number.name} at step {saved[-1]:,}, which is saved; the same "
        "command goes on"
    )
    assert "Traceback" not in told.decode()
    assert f"resumed at step {saved[-1]}" in long_runs.finish(workdir)
    long_runs.assert_same(long_runs.ended(workdir), whole)


def test_a_second_signal_exits_at_once_and_harms_nothing(
    tmp_path: pathlib.Path, whole: long_runs.Ended
) -> None:
    workdir = tmp_path / "run"
    with long_runs.start(workdir) as process:
        long_runs.wait_for_step(workdir, 12)
        # It finds both when it goes on, before it can save.
        for number in (signal.SIGSTOP, signal.SIGINT, signal.SIGTERM, signal.SIGCONT):
            process.send_signal(number)
            time.sleep(0.05)
        begun = time.monotonic()
        _, told = process.communicate(timeout=60)
        assert time.monotonic() - begun < 5
    assert process.returncode == 128 + signal.SIGTERM
    assert "SIGINT: saving; once more exits at once" in told.decode()
    assert "which is saved" not in told.decode()
    long_runs.finish(workdir)
    long_runs.assert_same(long_runs.ended(workdir), whole)


def test_a_second_run_in_a_workdir_is_refused_while_the_first_lives(
    tmp_path: pathlib.Path, whole: long_runs.Ended
) -> None:
    workdir = tmp_path / "run"
    with long_runs.start(workdir) as process:
        long_runs.wait_for_step(workdir, 1)
        error = runs.error_of(runs.vaswani("main", workdir, *long_runs.FLAGS))
        assert f"in use by process {process.pid} on " in error
        process.kill()
        process.communicate(timeout=60)
    long_runs.finish(workdir)
    long_runs.assert_same(long_runs.ended(workdir), whole)
