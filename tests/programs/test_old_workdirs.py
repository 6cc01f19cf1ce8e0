"""A workdir that commit 047e61b left resumes, decodes and scores as it did there.

`workdir_047e61b.tar.gz` is a run of configs/copy_task.py:reverse with one layer of
width 16, stopped at its 60th update. The numbers below are those of 047e61b, which
resumed and decoded a copy of it.
"""

import json
import pathlib
import sys
import tarfile

import pytest

from tests.programs import runs

ARCHIVE = pathlib.Path(__file__).with_name("workdir_047e61b.tar.gz")
SOURCES = "e v u i v c s s u u\ns f e q a m o\nd j h g m s g k y l i w\n"
TARGETS = "u u s s c v i u v e\no m a q e f s\nw i l y k g s m g h j d\n"
LOSSES = {70: 3.2055238226, 80: 3.1278539351, 90: 3.0114256028}
LOG_PROBS = [-32.813538, -25.643883, -41.693404]
# Of each line the two best outputs; the lines of "tsv".
HYPOTHESES = [
    ("1", "1", -9.667422, "s s s s s"),
    ("1", "2", -9.994435, "s s s s v"),
    ("2", "1", -9.971688, "m l l l"),
    ("2", "2", -10.082298, "m m m m"),
    ("3", "1", -10.249708, "g g g g g"),
    ("3", "2", -10.348103, "d g g g g"),
]


@pytest.fixture
def workdir(tmp_path: pathlib.Path) -> pathlib.Path:
    """Return the old run, unpacked."""
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(tmp_path, filter="data")
    return tmp_path / "run"


def run(program: str, workdir: pathlib.Path, *flags: str) -> str:
    """Run a program on the old run, from its own record; return what it prints."""
    config = f"--config={runs.ROOT / 'configs/of_run.py'}:{workdir}"
    command = [sys.executable, "-m", f"vaswani_jax.{program}", config, *flags]
    process = runs.run(*command, devices=1)
    assert process.returncode == 0, process.stderr.decode()
    return process.stdout.decode()


def test_an_old_workdir_resumes_with_the_losses_it_had(workdir):
    run("main", workdir, "--config.training.num_steps=90")
    lines = (workdir / "metrics.jsonl").read_text().splitlines()
    losses = {
        record["step"]: record["train/loss"]
        for record in map(json.loads, lines)
        if "train/loss" in record and record["step"] > 60
    }
    assert losses == pytest.approx(LOSSES, rel=1e-5)


def test_an_old_workdir_decodes_and_scores_as_it_did(workdir, tmp_path):
    (tmp_path / "sources").write_text(SOURCES)
    (tmp_path / "targets").write_text(TARGETS)
    source = f"--input={tmp_path / 'sources'}"
    output = run("decode", workdir, source, "--num_hypotheses=2")
    rows = [line.split("\t") for line in output.splitlines()]
    texts = [(number, rank, text) for number, rank, _, text in rows]
    assert texts == [(number, rank, text) for number, rank, _, text in HYPOTHESES]
    scores = [score for _, _, score, _ in HYPOTHESES]
    assert [float(row[2]) for row in rows] == pytest.approx(scores, rel=1e-5)
    scored = run("decode", workdir, source, "--score", f"--target={tmp_path}/targets")
    assert list(map(float, scored.split())) == pytest.approx(LOG_PROBS, rel=1e-5)


def test_a_page_of_an_old_workdir_has_the_probabilities_it_had(workdir, tmp_path):
    (tmp_path / "sources").write_text(SOURCES)
    (tmp_path / "targets").write_text(TARGETS)
    files = {"input": "sources", "target": "targets", "output": "page.json"}
    flags = [f"--{name}={tmp_path / file}" for name, file in files.items()]
    command = [sys.executable, "-m", "vaswani_jax.page", f"--workdir={workdir}"]
    process = runs.run(*command, *flags, devices=1)
    assert process.returncode == 0, process.stderr.decode()
    page = json.loads((tmp_path / "page.json").read_text())
    totals = [sum(each["views"][0]["log_probs"]) for each in page["sentences"]]
    assert totals == pytest.approx(LOG_PROBS, rel=1e-5)
