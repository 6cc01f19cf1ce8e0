"""average_checkpoints as a user runs it: decode reads the mean that it writes."""

import pathlib
import shutil
import sys

import pytest

from tests.programs import runs


@pytest.mark.parametrize(
    ("flag", "error"),
    [
        ("--quiet", "--last=N and --steps=A,B,C are missing: give one of them"),
        ("--steps=4,x", "--steps must be whole numbers, got ['4', 'x']"),
        ("--steps=50,50", "--steps must be different numbers, got ['50', '50']"),
        (
            "--steps=50,4,050",
            "--steps must be different numbers, got ['50', '4', '050']",
        ),
    ],
)
def test_wrong_steps_are_refused_before_anything_is_logged(
    flag: str, error: str
) -> None:
    command = [sys.executable, "-m", "vaswani_jax", "average", "/nowhere", flag]
    result = runs.run(*command, devices=None)
    assert result.stderr.decode().splitlines() == [f"error: {error}"]


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
