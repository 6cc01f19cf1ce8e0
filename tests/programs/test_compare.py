"""compare as a user runs it: kept outputs, a new search, files, and what it refuses."""

import json
import pathlib
import shutil
import subprocess
import sys

import pytest

from tests.programs import command_lines, runs


def compare(*words: str | pathlib.Path) -> subprocess.CompletedProcess[bytes]:
    return runs.run(sys.executable, "-m", "vaswani_jax", "compare", *map(str, words))


def test_a_search_finds_again_what_evaluate_kept(
    trained: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(trained, copy)
    shutil.rmtree(copy / "evaluations")
    outputs = [tmp_path / f"c{ending}" for ending in (".html", ".json", ".txt")]
    output = f"--output={','.join(map(str, outputs))}"
    result = compare(trained, copy, "--split=test", output, "--lines=1")
    assert result.returncode == 0, result.stderr.decode()
    shown = result.stdout.decode()
    assert "B - A  +0.00  [+0.00, +0.00]  p = 1.000  no difference" in shown
    assert b"copy (2) has no kept outputs of test: it translates 10" in result.stderr
    assert outputs[0].read_text().startswith("<!doctype html>")
    record = json.loads(outputs[1].read_text())
    assert record["scores"][0]["differences"][0]["num_lines"] == 0
    assert outputs[2].read_text() == shown
    assert not (copy / "evaluations").exists()


def test_a_file_is_compared_with_a_run(
    trained: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    references = (trained / "data/test.target.txt").read_text()
    (tmp_path / "other.out").write_text(references)
    result = compare(trained, tmp_path / "other.out", "--test=bootstrap")
    assert result.returncode == 0, result.stderr.decode()
    shown = result.stdout.decode()
    assert "B  other.out  a file" in shown and "B     100.00" in shown
    assert "different: B is better" in shown
    assert "sacreBLEU's paired bootstrap, 1,000 resamples, seed 12345" in shown


@pytest.mark.skipif(
    sys.platform != "linux", reason="needs /proc, where no file is made"
)
def test_the_other_outputs_are_written_if_one_cannot_be(
    trained: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    outputs = [pathlib.Path("/proc/c.html"), tmp_path / "c.json"]
    result = compare(trained, trained, f"--output={','.join(map(str, outputs))}")
    assert f"error: --output={outputs[0]}: " in runs.error_of(result)
    assert json.loads(outputs[1].read_text())["scores"]


@pytest.mark.parametrize("files", ["text.json", "te*.json"])
def test_a_file_with_columns_of_the_text_is_not_overwritten(
    tmp_path: pathlib.Path, files: str
) -> None:
    (tmp_path / "a").write_text("x\n")
    text = tmp_path / "text.json"
    text.write_text('{"en": "x", "de": "y"}\n')
    name = tmp_path / files
    flags = [f"--source={name}#en", f"--references={name}#de", f"--output={text}"]
    error = runs.error_of(compare(tmp_path / "a", tmp_path / "a", *flags))
    assert "it would be overwritten" in error
    systems = [f"{text}#en", f"{text}#de"]
    error = runs.error_of(compare(*systems, f"--output={text}"))
    assert "it would be overwritten" in error


REFUSED = {
    "RUN": "name 2 to 10 systems, got 1",
    "RUN a": "a has 1 lines, test has 10 references",
    "RUN RUN --output=c.pdf": "--output=c.pdf must end in .html or",
    "RUN RUN --source=x": "--source=x and --references=: give both",
    "RUN a --output=a.txt,x.doc": "x.doc must",
    "RUN RUN --metrics=ter": "this text has no ter",
}


@pytest.fixture(scope="module")
def refusals(
    trained: pathlib.Path, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, subprocess.CompletedProcess[bytes]]:
    """Return the result of each refused command line; all run in one process."""
    lines = []
    for line in REFUSED:
        directory = tmp_path_factory.mktemp("line")
        (directory / "a").write_text("x\n")
        lines.append((line.replace("RUN", str(trained)).split(), directory))
    results = command_lines.run("compare", lines, devices=8)
    return dict(zip(REFUSED, results, strict=True))


@pytest.mark.parametrize("line", REFUSED)
def test_what_cannot_be_compared_is_refused_in_a_line(
    refusals: dict[str, subprocess.CompletedProcess[bytes]], line: str
) -> None:
    assert REFUSED[line] in runs.error_of(refusals[line])
