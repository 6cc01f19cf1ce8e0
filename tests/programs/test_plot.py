"""`vaswani plot` draws what a run has logged and where it looks, or says why not."""

import pathlib
import re
import shutil
import subprocess
import sys

import pytest

import vaswani_jax
from tests.plots import figures
from tests.programs import command_lines, runs

pytest.importorskip("matplotlib", reason="matplotlib is not installed: .[plot]")


def plot(*words: str) -> str:
    """Run `vaswani plot`, and return what it logs last or why it fails."""
    return lines_of(*words)[-1]


def lines_of(*words: str) -> list[str]:
    """Run `vaswani plot`, and return all that it logs."""
    command = (sys.executable, "-m", "vaswani_jax", "plot", *words)
    completed = runs.run(*command, devices=None)
    assert completed.stdout == b""
    return completed.stderr.decode().splitlines()


def test_runs_are_drawn_together(trained: pathlib.Path, tmp_path: pathlib.Path) -> None:
    output = tmp_path / "curves.svg"
    assert plot(str(trained), str(trained), f"--output={output}") == (
        f"written: {output}"
    )
    svg = output.read_text()
    # A comment of matplotlib shows each text; a path may be drawn in several lines.
    for text in ("updates", "minutes of training", "BLEU (validation)", "training"):
        assert f"<!-- {text} -->" in svg


def test_the_attention_has_the_subwords_of_the_translation(
    trained: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    output = tmp_path / "attention.svg"
    words = [str(trained), "--sentence=a b c", "--layer=1", f"--output={output}"]
    assert plot(*words) == f"written: {output}"
    attention = vaswani_jax.load(trained).attention("a b c")
    svg = output.read_text()
    H = attention.encoder.shape[1]
    for kind in ("Encoder self-attention", "Decoder self-attention"):
        assert svg.count(f"<!-- {kind} -->") == 1
    assert svg.count(f"<!-- head {H} -->") == 3
    for subword in (*attention.source, *attention.target_in, *attention.target_out):
        if subword.strip("</s>"):  # Comments have no brackets.
            assert f"<!-- {subword} -->" in svg


def test_a_figure_of_the_paper_has_the_words_of_the_sentence(
    trained: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    output = tmp_path / "figure.svg"
    words = [str(trained), "--figure=3", "--sentence=a b c", "--word=b"]
    assert plot(*words, "--heads=2", f"--output={output}") == f"written: {output}"
    svg = output.read_text()
    # The title has the path of the run, and may be wrapped.
    title = " ".join(" ".join(re.findall("<!--(.*?)-->", svg, flags=re.S)).split())
    assert "encoder self-attention, layer 1 of 1" in title
    for text in ("from “b”: head 2", "a", "b", "c"):
        assert f"<!-- {text} -->" in svg


def test_a_figure_of_text_without_spaces_has_subwords(
    trained: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    run = shutil.copytree(trained, tmp_path / "run")
    for path in (run / "config.json", run / "data/manifest.json"):
        text = path.read_text().replace('"zxx"', '"zh"')
        path.write_text(text.replace('"text_form": "tok', '"text_form": "detok'))
    output = tmp_path / "figure.svg"
    words = [str(run), "--figure=3", "--sentence=a b c", "--word=b"]
    assert plot(*words, f"--output={output}") == f"written: {output}"
    svg = output.read_text()
    for subword in vaswani_jax.load(trained).attention("a b c").source[:-1]:
        assert f"<!-- {subword} -->" in svg
    assert "<!-- a -->" not in svg


def test_figures_1_and_2_need_no_training(
    trained: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    output = tmp_path / "figure.svg"
    # The run's vocabulary, not the one that its settings plan.
    assert plot(str(trained), "--figure=1", f"--output={output}") == (
        f"written: {output}"
    )
    V = vaswani_jax.load(trained).vocabulary.size
    assert f"<!-- table [{V:,}, 16] -->" in output.read_text()
    assert plot("--figure=2", f"--output={output}") == f"written: {output}"
    assert "<!-- base_ende -->" in output.read_text()


def test_of_a_run_on_a_store_the_records_alone_are_fetched(
    trained: pathlib.Path, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VASWANI_JAX_MIRRORS", str(tmp_path / "mirrors"))
    output = tmp_path / "curves.png"
    assert plot(f"file://{trained}", f"--output={output}") == f"written: {output}"
    assert output.read_bytes().startswith(figures.PNG)
    [mirror] = (path for path in (tmp_path / "mirrors").iterdir() if path.is_dir())
    assert [path.name for path in mirror.iterdir()] == ["metrics.jsonl"]


REFUSED = {
    "": "--workdir is missing: name the directory of a run",
    "EMPTY": "--workdir=EMPTY has no metrics.jsonl: no run has trained there",
    "EMPTY/none": "--workdir=EMPTY/none is not a directory; name that of a run",
    "EMPTY --sentence=a": "EMPTY holds no run: it has no config.json",
    "EMPTY/none --sentence=a": (
        "--workdir=EMPTY/none is not a directory; name that of a run"
    ),
    "RUN --output=a.jpg": "--output=a.jpg must end in .png, .svg or .pdf",
    "RUN --output=s3://bucket/a.png": "--output: there is no directory ",
    "RUN --layer=1": "--layer needs --sentence or --figure",
    "RUN --kind=memory": "--kind needs --sentence",
    "RUN --checkpoint=best": "--checkpoint needs --sentence or --tree",
    "RUN --sentence=": "--sentence is empty",
    "RUN RUN --sentence=a": "--sentence draws the attention of one run, got 2",
    "RUN --tree=a": " translates: train one with config.data.source=treebank",
    "RUN --tree=a --sentence=a": "--sentence and --tree exclude each other",
    "RUN --sentence=a --tokenize": "--tokenize needs --tree",
    "RUN --sentence=a --layer=0": "--layer=0 must be from 1 to 1",
    "RUN --sentence=a --layer=2": "--layer=2 must be from 1 to 1",
    "RUN --sentence=a --layer=top": "--layer must be a whole number, got 'top'",
    "RUN --sentence=a --kind=all": (
        "--kind must be one of encoder, decoder, memory, got 'all'"
    ),
    "RUN --sentence=a --checkpoint=5": "no checkpoint of step 5",
    "RUN --word=a": "--word needs --figure",
    "RUN --figure=6": "--figure must be ",
    "RUN --figure=3 --sentence=a": "--sentence needs --word, the word that looks",
    "RUN --figure=3 --sentence=": "--sentence is empty",
    "RUN --figure=5 --word=a": "--word is of no use with --figure=5",
    "RUN --figure=3 --kind=memory": "--kind is of no use with --figure=3",
    "RUN --figure=3 --layer=2": "--layer=2 must be from 1 to 1",
    "RUN --figure=3 --heads=a": "--heads=a must be numbers, such as 1,2",
    "RUN --figure=3 --heads=99": "--heads=99 must be different numbers from 1 to ",
    "RUN --figure=1 --layer=1": "--layer is of no use with --figure=1",
    "nothing --figure=2": "nothing is no preset, FILE.py or workdir",
    "RUN RUN --figure=3": "--figure draws one model, got 2",
    "RUN --figure=3 --sentence=a --word=b": "has no --word=b: it has a, </s>",
}


def test_a_missing_argument_is_refused_before_anything_is_logged() -> None:
    assert lines_of() == ["error: --workdir is missing: name the directory of a run"]
    [line] = lines_of("--workdir=")
    assert line == "error: --workdir is empty: name the directory of a run"


def fill_in_paths(text: str, *, run: pathlib.Path, empty: pathlib.Path) -> str:
    """Return a text of REFUSED with paths for its placeholders."""
    return text.replace("RUN", str(run)).replace("EMPTY", str(empty))


@pytest.fixture(scope="module")
def directories(tmp_path_factory: pytest.TempPathFactory) -> dict[str, pathlib.Path]:
    """Return the empty directory of each line, in which it runs."""
    return {line: tmp_path_factory.mktemp("line") for line in REFUSED}


@pytest.fixture(scope="module")
def refusals(
    trained: pathlib.Path, directories: dict[str, pathlib.Path]
) -> dict[str, subprocess.CompletedProcess[bytes]]:
    """Return the result of each refused command line; all run in one process."""
    lines = []
    for line, directory in directories.items():
        words = fill_in_paths(line, run=trained, empty=directory).split()
        if "--output" not in line:
            words.append(f"--output={directory / 'picture.png'}")
        lines.append((words, directory))
    return dict(zip(directories, command_lines.run("plot", lines), strict=True))


@pytest.mark.parametrize("line", REFUSED)
def test_a_mistake_is_refused_in_one_line(
    trained: pathlib.Path,
    directories: dict[str, pathlib.Path],
    refusals: dict[str, subprocess.CompletedProcess[bytes]],
    line: str,
) -> None:
    directory, completed = directories[line], refusals[line]
    assert completed.returncode == 1 and completed.stdout == b""
    error = completed.stderr.decode().splitlines()[-1]
    reason = fill_in_paths(REFUSED[line], run=trained, empty=directory)
    assert error.startswith("error: ") and reason in error
    assert not list(directory.iterdir())
