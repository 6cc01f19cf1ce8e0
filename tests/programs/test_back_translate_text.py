"""back-translate as a user runs it: killed, resumed, and on other devices."""

import json
import pathlib
import re
import signal
import subprocess

import pytest

from tests.programs import command_lines, runs

# A shard is three batches of eight rows, for as many devices.
FLAGS = [
    "--method=sampling",
    "--shard_lines=20",
    "--config.search.temperature=0.8",
    "--config.search.source_tokens_per_batch=128",
]


NUM_SHARDS = 20


@pytest.fixture(scope="module")
def mono(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    path = tmp_path_factory.mktemp("text") / "mono.txt"
    lines = [f"{'abcdefg'[n % 7]} b {'c ' * (n % 9)}" for n in range(20 * NUM_SHARDS)]
    path.write_text("\n".join([*lines, ""]))
    return path


def contents(directory: pathlib.Path) -> dict[str, bytes]:
    """The shards and the manifest of a corpus."""
    names = ("shard-*", "manifest.json")
    return {
        path.name: path.read_bytes() for name in names for path in directory.glob(name)
    }


def test_a_killed_corpus_on_eight_devices_is_that_of_one(
    trained: pathlib.Path, mono: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    command = [*runs.command("back_translate_text", trained), f"--input={mono}", *FLAGS]
    result = runs.run(*command, f"--output={whole}", devices=1)
    assert result.returncode == 0, result.stderr.decode()
    assert b"400 lines in, 400 pairs out" in result.stderr
    assert len(contents(whole)) == 2 * NUM_SHARDS + 1

    words = [*command, f"--output={killed}"]
    with runs.running(words, env=runs.environment(devices=1)) as process:
        assert process.stderr
        log = []
        for line in process.stderr:
            log.append(line)
            if b"shard 2 of 20" in line:
                process.kill()
                break
        assert process.wait(timeout=300) == -signal.SIGKILL, log
    assert not (killed / "corpora.toml").exists()
    num_written = len(json.loads((killed / "manifest.json").read_text())["shards"])
    assert 2 <= num_written < NUM_SHARDS

    result = runs.run(*words, devices=8)
    assert result.returncode == 0, result.stderr.decode()
    numbers = re.findall("shard ([0-9]+) of 20", result.stderr.decode())
    assert list(map(int, numbers)) == list(range(num_written + 1, NUM_SHARDS + 1))
    assert contents(killed) == contents(whole)


REFUSED = {
    "--word_blank=0.2": "--word_blank needs --method=noised_beam",
    "--method=beam --config.search.sampling": (
        "--method=beam contradicts config.search.sampling=True"
    ),
    "--method=noised_beam --word_shuffle=-1": "must be at least 0, got -1",
    "--config.search.top_k=2": "top_k=2 needs config.search.sampling=True",
    "--output=s3://bucket/out": "must be a path on this machine",
    "--input=missing": "no file missing",
}


@pytest.fixture(scope="module")
def directories(tmp_path_factory: pytest.TempPathFactory) -> dict[str, pathlib.Path]:
    """Return the empty directory of each line, in which it runs."""
    return {line: tmp_path_factory.mktemp("line") for line in REFUSED}


@pytest.fixture(scope="module")
def refusals(
    trained: pathlib.Path, mono: pathlib.Path, directories: dict[str, pathlib.Path]
) -> dict[str, subprocess.CompletedProcess[bytes]]:
    """Return the result of each refused command line; all run in one process."""
    _, _, _, *flags = runs.command("back_translate_text", trained)
    lines = []
    for line, directory in directories.items():
        names = [f"--input={mono}", f"--output={directory / 'out'}"]
        lines.append(([*flags, *names, *line.split()], directory))
    results = command_lines.run("back-translate", lines, devices=8)
    return dict(zip(directories, results, strict=True))


@pytest.mark.parametrize("line", REFUSED)
def test_flags_that_make_no_sense_are_refused(
    directories: dict[str, pathlib.Path],
    refusals: dict[str, subprocess.CompletedProcess[bytes]],
    line: str,
) -> None:
    assert REFUSED[line] in runs.error_of(refusals[line])
    assert not (directories[line] / "out").exists()
