"""average_checkpoints as a user runs it: decode reads the mean that it writes."""

import pathlib
import shutil

from tests.programs import runs


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


def test_a_checkpoint_is_averaged_once(tmp_path: pathlib.Path) -> None:
    (tmp_path / "checkpoints").mkdir()
    for steps in ("50,50", "50,4,050"):
        result = runs.vaswani("average_checkpoints", tmp_path, f"--steps={steps}")
        assert "--steps must be different numbers, got ['50'" in runs.error_of(result)
