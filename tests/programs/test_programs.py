"""The programs as a user runs them: what they give, and how they go on."""

import json
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

from tests.programs.runs import ROOT, SMALL, error_of, run, vaswani


def test_main_leaves_what_the_readme_lists(trained: pathlib.Path) -> None:
    names = {path.name for path in trained.iterdir()}
    assert names >= {"averaged", "best", "checkpoints", "data", "metrics.jsonl"}
    scored = {path.name for path in (trained / "evaluations").iterdir()}
    assert scored >= {f"{s}-averaged-beam2-alpha0.6.json" for s in ("valid", "test")}
    rows = [
        json.loads(row) for row in (trained / "metrics.jsonl").read_text().splitlines()
    ]
    keys = set().union(*rows)
    expected = "train/loss train/perplexity valid/loss valid/perplexity valid/bleu"
    assert keys >= set(expected.split())
    assert "time/tokens_per_second" in keys
    # The test set plays no part in training.
    assert not any("test" in key for key in keys)


def test_a_run_without_a_workdir_lies_in_runs_by_the_name_of_its_config(
    tmp_path: pathlib.Path,
) -> None:
    command = [sys.executable, "-m", "vaswani_jax.prepare_data"]
    command.append(f"--config={ROOT / 'configs/copy_task.py'}")
    command += [f"--config.{key}={value}" for key, value in SMALL.items()]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    result = subprocess.run(
        command,
        capture_output=True,
        cwd=tmp_path,
        env=environment,
        timeout=300,
        check=True,
    )
    assert b"--workdir=runs/copy_task" in result.stderr
    assert (tmp_path / "runs/copy_task/data/manifest.json").exists()


def test_report_prints_and_draws_the_papers_tables(tmp_path: pathlib.Path) -> None:
    command = [sys.executable, "-m", "vaswani_jax.report", "--lengths=4,8"]
    result = run(*command, f"--output={tmp_path / 'report'}")
    assert result.returncode == 0, result.stderr.decode()
    shown = result.stdout.decode()
    assert shown == (tmp_path / "report/report.md").read_text() + "\n"
    assert "| Transformer (big) | 28.4 | 41.8 | 2.3e+19 | 2.3e+19 |" in shown
    assert "| big | 214.2 M | 213 M |" in shown and "not run" in shown
    # What we have run comes with the repository.
    assert (
        "| docs/results/table3_small_base | valid | averaged at 2,000 | 4, 0.6 |"
        in shown
    )
    for name in ("table1", "learning_rate", "positions"):
        assert f"({name}.png)" in shown
        drawn = (tmp_path / "report" / f"{name}.png").read_bytes()
        assert drawn.startswith(b"\x89PNG") and len(drawn) > 5000


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--runs=/nowhere/at/all"], "--runs=/nowhere/at/all is not a directory"),
        (["--runs=gs://bucket/runs"], "must be a directory of this machine"),
        (["--runs="], "--runs= must be a directory of this machine"),
        (["--output=gs://bucket/report"], "must be a directory of this machine"),
        (["--lengths=8,4"], "--lengths=8,4 must be two or more rising numbers, from 1"),
    ],
)
def test_a_report_of_nothing_is_refused(
    tmp_path: pathlib.Path, flags: list[str], message: str
) -> None:
    command = [sys.executable, "-m", "vaswani_jax.report", f"--runs={tmp_path}"]
    result = run(*command, f"--output={tmp_path / 'report'}", *flags)
    assert message in error_of(result)
    assert not (tmp_path / "report").exists()


def test_decode_gives_one_line_for_each_line(trained: pathlib.Path) -> None:
    lines = ["a b c", "", "   ", "z " * 90, "\u00fc\u2028\x0b", "<unk> \u2581", "a b c"]
    result = vaswani("decode", trained, stdin="\n".join(lines).encode())
    assert result.returncode == 0, result.stderr.decode()
    outputs = result.stdout.decode().split("\n")
    assert len(outputs) == len(lines) + 1 and outputs[-1] == ""
    assert outputs[1] == outputs[2] == ""
    assert outputs[0] == outputs[6]


def test_decode_reads_and_writes_files(
    trained: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    (tmp_path / "in").write_bytes(b"a b\r\nc d\r\n")
    flags = [f"--input={tmp_path / 'in'}", f"--output={tmp_path / 'out'}"]
    result = vaswani("decode", trained, *flags, "--checkpoint=average:2")
    assert result.returncode == 0, result.stderr.decode()
    assert len((tmp_path / "out").read_text().split("\n")) == 3


def test_empty_input_gives_empty_output(trained: pathlib.Path) -> None:
    result = vaswani("decode", trained, stdin=b"")
    assert (result.returncode, result.stdout) == (0, b"")


def test_evaluate_prints_scores_with_signatures(trained: pathlib.Path) -> None:
    result = vaswani("evaluate", trained, "--split=test", "--samples=2")
    assert result.returncode == 0, result.stderr.decode()
    shown = result.stdout.decode()
    assert "10 lines in, 10 lines out" in shown
    assert "multi-bleu|" in shown and "test/perplexity" in shown
    assert shown.count("reference ") == 2
    written = trained / "evaluations/test-averaged-beam2-alpha0.6.json"
    record = json.loads(written.read_text())
    assert record["averaged"] == [4, 8] and record["lines"] == 10


def test_average_checkpoints_writes_what_decode_reads(
    trained: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    workdir = tmp_path / "copy"
    shutil.copytree(trained, workdir)
    shutil.rmtree(workdir / "averaged")
    result = vaswani("average_checkpoints", workdir, "--steps=4,8")
    assert result.returncode == 0, result.stderr.decode()
    both = [
        vaswani("decode", workdir, f"--checkpoint={name}", stdin=b"a b c\nd e\n").stdout
        for name in ("averaged", "average:2")
    ]
    assert both[0] == both[1] and both[0].count(b"\n") == 2


def test_a_checkpoint_is_averaged_once(tmp_path: pathlib.Path) -> None:
    (tmp_path / "checkpoints").mkdir()
    for steps in ("50,50", "50,4,050"):
        result = vaswani("average_checkpoints", tmp_path, f"--steps={steps}")
        assert "--steps must be different numbers, got ['50'" in error_of(result)


def test_config_is_found_from_any_directory(
    trained: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    result = subprocess.run(
        [
            *(sys.executable, "-m", "vaswani_jax.decode", f"--workdir={trained}"),
            f"--config={ROOT / 'configs' / 'demo.py'}:none",
        ],
        cwd=tmp_path,
        capture_output=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        timeout=300,
        check=False,
    )
    # The config was read, and its function has no such argument: no traceback.
    error = error_of(result)
    assert "demo.py:none" in error and "has no variants" in error


def test_rerun_of_the_same_command_resumes(
    trained: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    workdir = tmp_path / "copy"
    shutil.copytree(trained, workdir)
    result = vaswani("main", workdir, "--config.training.num_steps=12")
    assert result.returncode == 0, result.stderr.decode()
    assert b"resumed at step 8" in result.stderr
    assert b"learned" not in result.stderr
