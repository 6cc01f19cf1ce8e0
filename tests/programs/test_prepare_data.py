"""prepare_data as a user runs it: the data of a run, without training."""

import pathlib
import sys

from tests.programs import runs


def test_a_run_without_a_workdir_lies_in_runs_by_the_name_of_its_config(
    tmp_path: pathlib.Path,
) -> None:
    command = [sys.executable, "-m", "vaswani_jax.prepare_data"]
    command.append(f"--config={runs.ROOT / 'configs/copy_task.py'}")
    command += [f"--config.{key}={value}" for key, value in runs.SMALL.items()]
    result = runs.run(*command, cwd=tmp_path)
    assert result.returncode == 0, result.stderr.decode()
    assert b"--workdir=runs/copy_task" in result.stderr
    assert result.stderr.decode().splitlines()[-1] == (
        "runs/copy_task/data: vocabulary of 57 subwords; train: 200 pairs; valid: 10 "
        "pairs; test: 10 pairs"
    )
    assert b"allocator" not in result.stderr
    assert (tmp_path / "runs/copy_task/data/manifest.json").exists()
