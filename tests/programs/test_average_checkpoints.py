"""average_checkpoints as a user runs it: decode reads the mean that it writes."""

import pathlib
import shutil
import subprocess

import pytest

from tests.programs import command_lines, runs

REFUSED = {
    "--quiet": "--last=N and --steps=A,B,C are missing: give one of them",
    "--steps=4,x": "--steps must be whole numbers, got ['4', 'x']",
    "--steps=50,50": "--steps must be different numbers, got ['50', '50']",
    "--steps=50,4,050": "--steps must be different numbers, got ['50', '4', '050']",
}


@pytest.fixture(scope="module")
def refusals(
    tmp_path_factory: pytest.TempPathFactory,
) -> dict[str, subprocess.CompletedProcess[bytes]]:
    """Return the result of each refused command line; all run in one process."""
    lines = [(["/nowhere", flag], tmp_path_factory.mktemp("line")) for flag in REFUSED]
    return dict(zip(REFUSED, command_lines.run("average", lines), strict=True))


@pytest.mark.parametrize("flag", REFUSED)
def test_wrong_steps_are_refused_before_anything_is_logged(
    refusals: dict[str, subprocess.CompletedProcess[bytes]], flag: str
) -> None:
    completed = refusals[flag]
    assert completed.returncode == 1
    assert completed.stderr.decode().splitlines() == [f"error: {REFUSED[flag]}"]


def test_average_checkpoints_writes_what_decode_reads(
    trained: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    workdir = tmp_path / "copy"
    shutil.copytree(trained, workdir)
    shutil.rmtree(workdir / "averaged")
    result = runs.vaswani("average_checkpoints", workdir, "--steps=4,8")
    assert result.returncode == 0, result.stderr.decode()
    both = [
        runs.vaswani(
            "decode", workdir, f"--checkpoint={name}", stdin=b"a b c\nd e\n"
        ).stdout
        for name in ("averaged", "average:2")
    ]
    assert both[0] == both[1] and both[0].count(b"\n") == 2
