"""main as a user runs it: what it leaves, resumes and starts from."""

import json
import pathlib
import shutil
import sys

import jax
import numpy as np

import vaswani_jax
from tests.programs import long_runs, runs


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


def test_a_rerun_resumes_with_settings_that_may_change_and_no_others(
    trained: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    workdir = tmp_path / "copy"
    shutil.copytree(trained, workdir)
    flags = ["--config.data.num_buckets=3", "--config.training.label_smoothing=0.2"]
    refused = runs.error_of(runs.vaswani("main", workdir, *flags))
    assert "config.data.num_buckets is 3, was" in refused
    assert "config.training.label_smoothing is 0.2, was" in refused
    old_starts = (workdir / "starts.jsonl").read_text().splitlines()
    flags = ["--config.model.dropout_rate=0.1", "--config.training.num_steps=10"]
    result = runs.vaswani("main", workdir, *flags)
    assert result.returncode == 0, result.stderr.decode()
    assert b"resumed at step 8" in result.stderr
    assert b"learned" not in result.stderr  # The vocabulary is there.
    assert b"config.model.dropout_rate is 0.1, was" in result.stderr
    starts = (workdir / "starts.jsonl").read_text().splitlines()
    assert starts[:-1] == old_starts
    start = json.loads(starts[-1])
    assert start["step"] == 8
    assert {change["key"]: change["now"] for change in start["changes"]} == {
        "model.dropout_rate": 0.1,
        "training.num_steps": 10,
    }
    second = runs.vaswani("main", workdir, *flags, "--config.training.num_steps=4")
    assert b"nothing to train: the run is at step 10" in second.stderr


def test_a_new_run_starts_from_another_ones_parameters(
    tmp_path: pathlib.Path, uninterrupted_run: pathlib.Path
) -> None:
    first, second = uninterrupted_run, tmp_path / "second"
    checkpoint = long_runs.ended(first)[0]
    new = ["--config.data.source=reverse"]
    # As a kill between its best parameters and its first checkpoint leaves a run.
    shutil.copytree(first / "best", second / "best")
    first_messages = long_runs.finish(
        second, *new, "--config.training.num_steps=1", f"--init_from={first}@60"
    )
    assert (
        f"parameters from {first}@60" in first_messages
        and "gives no parameters" not in first_messages
    )
    assert "given vocabulary" in first_messages
    started, losses = long_runs.ended(second)
    assert started.step == 1 and len(losses) == 1
    assert started.record["vocabulary"] == checkpoint.record["vocabulary"]
    # After one update of the first rate of a warm-up they are almost the same ones.
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, atol=2e-3),
        started.items["params"],
        checkpoint.items["params"],
    )
    starts = (second / "starts.jsonl").read_text().splitlines()
    assert json.loads(starts[0])["init_from"] == f"{first}@60"
    # Where it has begun it goes on.
    second_messages = long_runs.finish(
        second, *new, "--config.training.num_steps=2", f"--init_from={first}"
    )
    assert (
        "--init_from gives no parameters" in second_messages
        and "resumed at step 1" in second_messages
    )
    # It gives the vocabulary again to a run that has lost its data.
    shutil.rmtree(second / "data")
    resumed_messages = long_runs.finish(
        second, *new, "--config.training.num_steps=3", f"--init_from={first}"
    )
    assert (
        "given vocabulary" in resumed_messages
        and "resumed at step 2" in resumed_messages
    )
    for name, message in (
        (f"{first}@99", "no checkpoint of step 99"),
        (str(first / "checkpoints" / "1000"), "no checkpoint of step 1000"),
        (str(tmp_path), "is no workdir of a run"),
    ):
        third = runs.vaswani(
            "main", tmp_path / "3", *long_runs.FLAGS, f"--init_from={name}"
        )
        assert message in runs.error_of(third)
    wider = runs.vaswani(
        *("main", tmp_path / "3", *long_runs.FLAGS, f"--init_from={first}"),
        "--config.model.d_ff=20",
    )
    assert "is of another model" in runs.error_of(wider)


def test_new_symbols_extend_the_vocabulary_of_another_run(
    tmp_path: pathlib.Path, uninterrupted_run: pathlib.Path
) -> None:
    old = long_runs.ended(uninterrupted_run)[0]
    # A model in one file is as good as its run.
    file = tmp_path / "old.safetensors"
    vaswani_jax.load(uninterrupted_run, checkpoint="60").save(file)
    messages = long_runs.finish(
        tmp_path / "extended",
        *("--config.data.user_symbols=<2de>", "--config.training.num_steps=1"),
        f"--init_from={file}",
    )
    assert f"parameters from {file}" in messages
    # The symbol, after a space and alone, has rows of its own behind the old ones.
    assert "2 new subwords, whose embeddings begin at random" in messages
    extended, _ = long_runs.ended(tmp_path / "extended")
    assert extended.record["vocabulary"] != old.record["vocabulary"]
    old_table, table = (
        checkpoint.items["params"]["embedding"]["embedding"]
        for checkpoint in (old, extended)
    )
    rows = len(old_table)
    assert len(table) == rows + 2 and table[rows:].all()
    np.testing.assert_allclose(table[:rows], old_table, atol=2e-3)


def test_seeds_are_trained_one_after_the_other_and_refused_as_one_run(
    trained: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    workdir = tmp_path / "several"
    result = runs.vaswani("main", workdir, "--seeds=2")
    assert result.returncode == 0, result.stderr.decode()
    assert b"seed 1, 1 of 2: " in result.stderr
    shown = result.stdout.decode()
    *_, seeds = shown.split("\n\n")
    assert "\nseed 2\ntest: 10 lines in" in shown
    head, *scores = seeds.splitlines()
    assert head == "mean of the seeds 1, 2"
    assert all(" sd " in line and " to " in line for line in scores)
    names = f"but one run is needed: name {workdir}/seed-1 or {workdir}/seed-2; or"
    for program, *flags in (
        ["main"],
        ["decode"],
        ["evaluate"],
        ["average_checkpoints", "--last=1"],
    ):
        refused = runs.vaswani(program, workdir, *flags, stdin=b"a\n")
        assert names in runs.error_of(refused)
    # Without settings they are not found in the directory either.
    for words in (["decode", f"--workdir={workdir}"], ["main", f"--config={workdir}"]):
        program, flag = words
        command = [sys.executable, "-m", f"vaswani_jax.{program}", flag]
        assert names in runs.error_of(runs.run(*command))
    for name, message in (("--seeds=0", "[1, 100]"), ("--config.seed=4294967295", "")):
        error = runs.error_of(runs.vaswani("main", tmp_path / "x", "--seeds=2", name))
        assert (message or "config.seed must be at most 4294967294, so") in error
    error = runs.error_of(runs.vaswani("main", trained, "--seeds=2"))
    assert "holds one run; several seeds need another directory" in error
