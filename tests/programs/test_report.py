"""report as a user runs it: the paper's tables and figures, or why there are none."""

import json
import pathlib
import subprocess
import sys
import types
from unittest import mock

import pytest

from tests.paper.workdirs import ROWS, leave, read
from tests.programs import command_lines, runs
from vaswani_jax import report
from vaswani_jax.inference.translator import Translator
from vaswani_jax.paper import attention_figures


def test_report_prints_and_draws_the_papers_tables(tmp_path: pathlib.Path) -> None:
    command = [sys.executable, "-m", "vaswani_jax.report", "--lengths=4,8"]
    result = runs.run(*command, f"--output={tmp_path / 'report'}")
    assert result.returncode == 0, result.stderr.decode()
    shown = result.stdout.decode()
    assert shown == (tmp_path / "report/report.md").read_text() + "\n"
    assert "| Transformer (big) | 28.4 | 41.8 | 2.3e+19 | 2.3e+19 |" in shown
    assert "| big | 214.2 M | 213 M |" in shown and "not run" in shown
    assert "| Dyer et al. (2016) | generative | WSJ | section 23 | 93.3 |" in shown
    assert "not run: the treebank is licensed by the LDC (LDC99T42)" in shown
    # What we have run comes with the repository.
    assert (
        "| docs/results/table3_small_base | valid | averaged at 2,000 | 4, 0.6 |"
        in shown
    )
    # The same, for programs.
    report = json.loads((tmp_path / "report/report.json").read_text())
    assert report["command"] == "vaswani report --lengths=4,8"
    assert report["table1"]["lengths"] == [4, 8]
    verdicts = {claim["id"]: claim["verdict"] for claim in report["claims"]}
    assert verdicts["big-ende"] == "not run"
    assert verdicts["too-many-heads-are-worse-by-perplexity"] == "holds"
    assert "| dropout helps, by perplexity | holds | training |" in shown
    assert verdicts["figure-3"] == "not run"
    assert "Ours: not run: no run has six encoder layers" in shown
    assert "Drawn from the running module of the base model: there is no run" in shown
    for name in ("table1", "learning_rate", "positions", "figure1", "figure2"):
        assert f"({name}.png)" in shown
        drawn = (tmp_path / "report" / f"{name}.png").read_bytes()
        assert drawn.startswith(b"\x89PNG") and len(drawn) > 5000


def test_the_figures_show_the_best_run_that_can_be_read(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number, name in enumerate(("damaged", "refuses", "whole", "worse")):
        leave(tmp_path / name, ROWS["base"], bleu=30.0 - number)
        (tmp_path / name / "averaged").mkdir()

    def load(workdir: pathlib.Path) -> mock.Mock:
        if workdir.name == "damaged":
            raise OSError("no data")
        return mock.Mock(spec=Translator)

    def read_heads(shown: attention_figures.ShownRun) -> attention_figures.Heads:
        if shown.run.workdir.name == "refuses":
            raise ValueError("too long")
        return attention_figures.Heads(shown.run, {})

    monkeypatch.setattr(report.api, "load", load)
    monkeypatch.setattr(attention_figures, "read_heads", read_heads)
    shown = report._read_heads(read(tmp_path))
    assert shown.run and shown.heads
    assert shown.run.run.workdir == shown.heads.run.workdir == tmp_path / "whole"
    reasons = [f"{tmp_path}/damaged: no data", f"{tmp_path}/refuses: too long"]
    assert shown.failures == reasons
    assert report._read_heads(read(tmp_path)[:2]) == report._HeadReading(
        None, None, reasons
    )


def test_a_run_that_is_named_twice_counts_once(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for seed in (1, 2):
        leave(tmp_path / f"runs/seeds/seed-{seed}", ROWS["base"], bleu=20.0 + seed)
    names = [str(tmp_path / "runs"), f"{tmp_path}/runs/../runs/seeds"]
    monkeypatch.setattr(
        report, "RUNS", types.SimpleNamespace(value=names), raising=True
    )
    flag_values = {"runs": types.SimpleNamespace(using_default_value=False)}
    monkeypatch.setattr(report.flags, "FLAGS", flag_values)
    assert sorted(run.score for run in report._read_runs()) == [21.0, 22.0]


REFUSED = {
    "--runs=/nowhere/at/all": "--runs=/nowhere/at/all is not a directory",
    "--runs=gs://bucket/runs": "must be a path on this machine",
    "--runs=": "--runs has an empty path: name a file or a directory;",
    "--output=gs://bucket/report": "must be a path on this machine",
    "--lengths=8,4": "--lengths=8,4 must be two or more rising numbers, from 1",
}


@pytest.fixture(scope="module")
def directories(tmp_path_factory: pytest.TempPathFactory) -> dict[str, pathlib.Path]:
    """Return the empty directory of each line, in which it runs."""
    return {line: tmp_path_factory.mktemp("line") for line in REFUSED}


@pytest.fixture(scope="module")
def refusals(
    directories: dict[str, pathlib.Path],
) -> dict[str, subprocess.CompletedProcess[bytes]]:
    """Return the result of each refused command line; all run in one process."""
    lines = [
        ([f"--runs={directory}", f"--output={directory / 'report'}", line], directory)
        for line, directory in directories.items()
    ]
    results = command_lines.run("report", lines, devices=8)
    return dict(zip(directories, results, strict=True))


@pytest.mark.parametrize("line", REFUSED)
def test_a_report_of_nothing_is_refused(
    directories: dict[str, pathlib.Path],
    refusals: dict[str, subprocess.CompletedProcess[bytes]],
    line: str,
) -> None:
    assert REFUSED[line] in runs.error_of(refusals[line])
    assert not (directories[line] / "report").exists()
