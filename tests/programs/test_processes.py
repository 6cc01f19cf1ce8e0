"""Several processes on this machine, as hosts would be: one run, whatever they are."""

import json
import pathlib
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator, Sequence
from typing import Any

import jax
import numpy as np
import pytest

from tests import workers
from tests.programs import command_lines, runs
from tests.programs.long_runs import ended, wait_for_step
from vaswani_jax.core import plurals

# W_1 and W_2 are as large as a tile, so that devices can share their moments.
SETTINGS = {
    "training.num_steps": 12,
    "training.log_every_steps": 1,
    "training.evaluate_every_steps": 12,
    "model.dropout_rate": 0.2,
    "model.d_model": 64,
    "model.d_ff": 128,
}
FLAGS = [f"--config.{key}={value}" for key, value in SETTINGS.items()]
LOST_AFTER_SECONDS = 60
STARTED: list[subprocess.Popen[bytes]] = []


@pytest.fixture(autouse=True)
def none_outlives_its_test() -> Iterator[None]:
    """A test that fails leaves no processes to train on beside the others."""
    yield
    for process in STARTED:
        process.kill()
        process.wait(timeout=300)
    STARTED.clear()


def start(
    program: str,
    workdir: pathlib.Path | str,
    *flags: str,
    processes: int,
    devices: int,
    mirrors: pathlib.Path | None = None,
    workdirs: Sequence[pathlib.Path] = (),
    inputs: Sequence[pathlib.Path] = (),
) -> list[subprocess.Popen[bytes]]:
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    hosts = []
    for number in range(processes):
        environment = runs.environment(devices=devices)
        if mirrors:
            environment["VASWANI_JAX_MIRRORS"] = str(mirrors / str(number))
        words = [
            *runs.command(program, workdirs[number] if workdirs else workdir),
            *FLAGS,
            *flags,
            *([f"--input={inputs[number]}"] if inputs else []),
            f"--coordinator=localhost:{port}",
            f"--num_processes={processes}",
            f"--process_id={number}",
        ]
        hosts.append(runs.start(words, env=environment))
    STARTED.extend(hosts)
    return hosts


def finish(hosts: list[subprocess.Popen[bytes]]) -> list[tuple[str, str]]:
    """Wait for the hosts, and return what each has printed."""
    messages = [process.communicate(timeout=300) for process in hosts]
    for process, (_, errors) in zip(hosts, messages, strict=True):
        assert process.returncode == 0, errors.decode()
    return [(output.decode(), errors.decode()) for output, errors in messages]


@pytest.fixture(scope="session")
def alone(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """A run of one process with eight devices, which knows of no others."""

    def train(workdir: pathlib.Path) -> None:
        runs.finish(workdir, *FLAGS)

    return workers.copy_once(tmp_path_factory, "run/alone", train)


def assert_same_run(workdir: pathlib.Path, expected: pathlib.Path) -> None:
    (run, losses), (expected_run, expected_losses) = map(ended, (workdir, expected))
    assert run.step == expected_run.step
    assert sorted(losses) == sorted(expected_losses)
    for step, value in expected_losses.items():
        np.testing.assert_allclose(losses[step], value, rtol=1e-5)
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-5),
        run.items,
        expected_run.items,
    )
    for key in ("vocabulary", "training_text", "skipped"):
        assert run.record[key] == expected_run.record[key]


def further(
    saved: int, alone: pathlib.Path, tmp_path: pathlib.Path
) -> tuple[str, pathlib.Path]:
    """A goal that is beyond a step, and a run of one process that has reached it."""
    if saved < SETTINGS["training.num_steps"]:
        return f"--config.training.num_steps={SETTINGS['training.num_steps']}", alone
    goal = f"--config.training.num_steps={saved + 1}"
    runs.finish(tmp_path / "expected", *FLAGS, goal)
    return goal, tmp_path / "expected"


def scores(workdir: pathlib.Path) -> dict[str, Any]:
    [path] = workdir.glob("evaluations/test-*.json")
    return dict(json.loads(path.read_text()))


# "store": as hosts that share no file system, each with a mirror of the same URL. With
# it, each device has a part of the moments.
@pytest.mark.parametrize(
    ("processes", "devices", "storage"),
    [
        pytest.param(1, 8, "shared", marks=pytest.mark.slow),
        (2, 4, "store"),
        (4, 2, "shared"),
    ],
)
def test_processes_make_the_run_of_one(
    tmp_path: pathlib.Path,
    alone: pathlib.Path,
    processes: int,
    devices: int,
    storage: str,
) -> None:
    workdir = tmp_path / "run"
    named = f"file://{workdir}" if storage == "store" else workdir
    mirrors = tmp_path / "mirrors"
    how = {"processes": processes, "devices": devices}
    flags = ["--config.training.shard_optimizer"] if storage == "store" else []
    messages = finish(start("main", named, *flags, **how, mirrors=mirrors))
    if storage == "store":
        hosts = [next(p for p in m.iterdir() if p.is_dir()) for m in mirrors.iterdir()]
        assert len(hosts) == processes
        for host in hosts:
            assert (host / "data/manifest.json").exists()
    count = plurals.format_count(processes, "process", plural="processes")
    assert f"8 cpu devices (cpu), {count}" in messages[0][1]
    for output, errors in messages[1:]:
        # One of them writes and prints; Gloo's threads print, in one another's lines.
        assert "lines in" in messages[0][0]
        assert "lines in" not in output
        assert "step 12" not in errors
    assert_same_run(workdir, alone)
    record, expected = scores(workdir), scores(alone)
    assert record["scores"] == expected["scores"]
    np.testing.assert_allclose(record["test/loss"], expected["test/loss"], rtol=1e-5)


def test_lines_come_back_in_order_from_several_processes(
    tmp_path: pathlib.Path, alone: pathlib.Path
) -> None:
    lines = [f"{'abcdefg'[n % 7]} b {'c ' * (n % 9)}" for n in range(50)]
    (tmp_path / "input").write_text("\n".join(lines) + "\n\n")
    flags = [f"--input={tmp_path / 'input'}", "--num_hypotheses=2"]
    files = {name: tmp_path / name for name in ("output", "words", "arrays.npz")}
    output_flags = [
        f"--output={files['output']}",
        f"--alignments={files['words']}",
        f"--attention={files['arrays.npz']}",
    ]
    finish(start("decode", alone, *flags, *output_flags, processes=2, devices=2))
    single = runs.vaswani("decode", alone, *FLAGS, *flags)
    rows = [row.split("\t") for row in files["output"].read_text().splitlines()]
    expected_rows = [row.split("\t") for row in single.stdout.decode().splitlines()]
    assert [row[:2] + row[3:] for row in rows] == [
        row[:2] + row[3:] for row in expected_rows
    ]
    assert len(files["words"].read_text().splitlines()) == 51
    assert len(np.load(files["arrays.npz"]).files) == 5 * 50


def test_processes_that_read_other_lines_are_refused(
    tmp_path: pathlib.Path, alone: pathlib.Path
) -> None:
    """As if a file lay on the disks of two hosts, and was changed on one of them."""
    inputs, output = [tmp_path / name for name in ("one", "two")], tmp_path / "output"
    for path, text in zip(inputs, ("a b c\nd\n", "c b a\nd\n"), strict=True):
        path.write_text(text)
    flag = f"--output={output}"
    hosts = start("decode", alone, flag, processes=2, devices=2, inputs=inputs)
    messages = [process.communicate(timeout=300)[1].decode() for process in hosts]
    assert [process.returncode for process in hosts] == [1, 1], messages
    for message in messages:
        assert "processes [1] differ from process 0 in input: all need" in message
    assert not output.exists()


@pytest.mark.slow
def test_processes_write_the_synthetic_corpus_of_one(
    tmp_path: pathlib.Path, alone: pathlib.Path
) -> None:
    lines = [f"{'abcdefg'[n % 7]} b {'c ' * (n % 9)}" for n in range(50)]
    (tmp_path / "mono").write_text("\n".join([*lines, ""]))
    flags = [f"--input={tmp_path / 'mono'}", "--method=sampling", "--shard_lines=20"]
    program = "back_translate_text"
    shared, single = tmp_path / "shared", tmp_path / "single"
    hosts = start(program, alone, *flags, f"--output={shared}", processes=2, devices=2)
    finish(hosts)
    result = runs.vaswani(program, alone, *FLAGS, *flags, f"--output={single}")
    assert result.returncode == 0, result.stderr.decode()
    paths = sorted(single.glob("shard-*"))
    assert len(paths) == 2 * 3
    for path in paths:
        assert (shared / path.name).read_bytes() == path.read_bytes()


def test_a_signal_to_one_process_saves_and_ends_all(
    tmp_path: pathlib.Path, alone: pathlib.Path
) -> None:
    workdir = tmp_path / "run"
    long = ["--config.training.num_steps=5000"]
    hosts = start("main", workdir, *long, processes=2, devices=4)
    wait_for_step(workdir, 5)
    hosts[1].send_signal(signal.SIGTERM)
    messages = [process.communicate(timeout=300)[1].decode() for process in hosts]
    assert [process.returncode for process in hosts] == [143, 143], messages
    assert "stopped by SIGTERM at step" in messages[0]
    # The run goes on with fewer of them.
    saved = ended(workdir)[0].step
    goal, expected = further(saved, alone, tmp_path)
    assert f"resumed at step {saved}" in runs.finish(workdir, *FLAGS, goal)
    assert_same_run(workdir, expected)


@pytest.mark.slow  # It trains one seed before.
def test_a_signal_during_a_later_seed_saves_and_ends_all(
    tmp_path: pathlib.Path, alone: pathlib.Path
) -> None:
    workdir, flags = tmp_path / "run", ["--config.training.num_steps=60", "--seeds=2"]
    hosts = start("main", workdir, *flags, processes=2, devices=4)
    wait_for_step(workdir / "seed-2", 5)
    hosts[1].send_signal(signal.SIGTERM)
    messages = [process.communicate(timeout=300)[1].decode() for process in hosts]
    assert [process.returncode for process in hosts] == [143, 143], messages
    assert "seed 2, 2 of 2: " in messages[0]
    assert "stopped by SIGTERM at step" in messages[0]
    assert 5 <= ended(workdir / "seed-2")[0].step < 60


# The first of them serves, writes and prints.
@pytest.mark.slow  # for most of a minute it waits
@pytest.mark.parametrize("killed", [0, 1])
def test_when_one_process_is_killed_the_others_end_and_the_run_goes_on(
    tmp_path: pathlib.Path, alone: pathlib.Path, killed: int
) -> None:
    workdir = tmp_path / "run"
    slow = ["--config.training.num_steps=100000"]
    hosts = start("main", workdir, *slow, processes=2, devices=4)
    wait_for_step(workdir, 9)
    hosts[killed].kill()
    survivor = hosts[1 - killed]
    messages = survivor.communicate(timeout=LOST_AFTER_SECONDS + 60)[1].decode()
    assert survivor.returncode == -signal.SIGABRT
    assert "another task died" in messages, messages
    assert "Traceback" not in messages
    hosts[killed].communicate(timeout=300)
    saved = ended(workdir)[0].step
    assert saved >= 8
    goal, expected = further(saved, alone, tmp_path)
    finish(start("main", workdir, goal, processes=4, devices=2))
    assert_same_run(workdir, expected)


def test_copies_of_a_run_are_no_shared_workdir(
    tmp_path: pathlib.Path, alone: pathlib.Path
) -> None:
    """As if a run was copied to the disks of two hosts, and resumed there."""
    workdirs = [tmp_path / name for name in ("one", "two")]
    for workdir in workdirs:
        shutil.copytree(alone, workdir)
    longer = f"--config.training.num_steps={SETTINGS['training.num_steps'] + 1}"
    hosts = start("main", "", longer, processes=2, devices=4, workdirs=workdirs)
    messages = [process.communicate(timeout=300)[1].decode() for process in hosts]
    assert [process.returncode for process in hosts] == [1, 1], messages
    for workdir, message in zip(workdirs, messages, strict=True):
        assert f"processes [1] see another --workdir={workdir} than" in message


def test_auto_is_refused_without_a_cluster(tmp_path: pathlib.Path) -> None:
    error = runs.error_of(runs.vaswani("main", tmp_path, "--coordinator=auto"))
    assert "--coordinator=auto" in error


REFUSED = {
    "--coordinator=localhost:1": "goes with --num_processes and --process_id",
    "--num_processes=2 --process_id=0": "--coordinator=HOST:PORT goes with",
    "--coordinator=localhost:port --num_processes=1 --process_id=0": (
        "got 'localhost:port', 1 and 0"
    ),
    "--coordinator=localhost:0 --num_processes=1 --process_id=0": (
        "got 'localhost:0', 1 and 0"
    ),
    "--coordinator=auto --process_id=0": "--coordinator=auto goes alone",
}


@pytest.fixture(scope="module")
def refusals(
    tmp_path_factory: pytest.TempPathFactory,
) -> dict[str, subprocess.CompletedProcess[bytes]]:
    """Return the result of each refused command line; all run in one process."""
    lines = []
    for line in REFUSED:
        directory = tmp_path_factory.mktemp("line")
        _, _, _, *flags = runs.command("main", directory)
        lines.append(([*flags, *line.split()], directory))
    results = command_lines.run("train", lines, devices=8)
    return dict(zip(REFUSED, results, strict=True))


@pytest.mark.parametrize("line", REFUSED)
def test_what_does_not_describe_processes_is_refused(
    refusals: dict[str, subprocess.CompletedProcess[bytes]], line: str
) -> None:
    assert REFUSED[line] in runs.error_of(refusals[line])
