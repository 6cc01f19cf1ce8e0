"""`vaswani page` shows what a run does with sentences, or says why not."""

import base64
import json
import pathlib
import re
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import vaswani_jax
from tests.programs import command_lines, runs
from vaswani_jax.pages import contents

LINES = "a b c\n\nd e f g\n"


def page(*words: str, stdin: str = "", stdout: str = "") -> list[str]:
    """Run `vaswani page`, and return all that it logs."""
    command = (sys.executable, "-m", "vaswani_jax", "page", *words)
    completed = runs.run(*command, stdin=stdin.encode(), devices=None)
    assert re.fullmatch(stdout, completed.stdout.decode(), flags=re.DOTALL)
    return completed.stderr.decode().splitlines()


def weights(attention: dict[str, Any], kind: str) -> np.ndarray:
    """Return the weights of a page's JSON."""
    levels = np.frombuffer(base64.b64decode(attention[kind]), np.uint8)
    return levels.reshape(attention["shapes"][kind]) / 255


def test_a_page_has_the_attention_of_each_line(
    trained: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    file = tmp_path / "a.html"
    words = [str(trained), "--input=-", f"--output={file}"]
    *_, last = page(*words, stdin=LINES)
    assert re.fullmatch(
        rf"written: {file}, {file.stat().st_size / 1000:.0f} kB, of which \d+ kB are "
        "attention weights",
        last,
    )
    [data] = re.findall(
        r'<script type="application/json"[^>]*>(.*?)</script>',
        file.read_text(),
        flags=re.DOTALL,
    )
    shown = json.loads(data)
    # Neither has the folders of this machine: pages are sent to others.
    assert shown["title"] == trained.name
    assert shown["command"] == f"vaswani page {trained.name} --input=- --output=a.html"
    assert str(tmp_path) not in data and str(trained.parent) not in data
    assert shown["models"] == [{"name": "averaged", "step": 8}]
    pairs = vaswani_jax.load(trained).attend(LINES.splitlines())
    for number, (sentence, pair) in enumerate(
        zip(shown["sentences"], pairs, strict=True), start=1
    ):
        [view] = sentence["views"]
        assert (sentence["line"], view["text"]) == (number, pair.text)
        assert view["attention"]["target_out"] == list(pair.attention.target_out)
        np.testing.assert_allclose(view["log_probs"], pair.log_probs, atol=1e-5)
        for kind in contents.KINDS:
            exact = getattr(pair.attention, kind)
            quantized = weights(view["attention"], kind)
            np.testing.assert_allclose(quantized, exact, atol=0.5 / 255 + 1e-5)


def test_a_model_in_one_file_has_the_name_of_its_checkpoint(
    trained: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    file, output = tmp_path / "four.safetensors", tmp_path / "a.json"
    vaswani_jax.load(trained, checkpoint="4").save(file)
    page(str(file), "--input=-", f"--output={output}", stdin=LINES)
    shown = json.loads(output.read_text())
    assert shown["models"] == [{"name": "4", "step": 4}]


def test_a_slider_has_the_checkpoints_in_the_order_of_their_steps(
    trained: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    file = tmp_path / "a.json"
    page(str(trained), "--checkpoints=8,4", f"--output={file}")
    shown = json.loads(file.read_text())
    assert [model["step"] for model in shown["models"]] == [4, 8]
    valid = (trained / "data" / "valid.source.txt").read_text().splitlines()
    assert len(shown["sentences"]) == 2
    texts = [sentence["text"] for sentence in shown["sentences"]]
    assert {*texts} <= {*valid}
    pairs = vaswani_jax.load(trained, checkpoint="8").attend(texts)
    for sentence, pair in zip(shown["sentences"], pairs, strict=True):
        first, last = sentence["views"]
        assert last["text"] == pair.text
        quantized = weights(last["attention"], "encoder")
        np.testing.assert_allclose(
            quantized, pair.attention.encoder, atol=0.5 / 255 + 1e-5
        )
        assert first["attention"]["encoder"] != last["attention"]["encoder"]


def test_the_heads_of_a_text_are_printed_and_are_in_the_page(
    trained: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    file = tmp_path / "a.json"
    words = [str(trained), "--input=-", f"--output={file}", "--heads=valid"]
    page(
        *words,
        stdin=LINES,
        stdout=r"10 lines of the validation text, loss \d\.\d+ nats a token\n"
        r"attention +layer +head .*importance +what it does\n"
        r"encoder +1 +1 .*memory +1 +2 .*\n",
    )
    shown = json.loads(file.read_text())
    heads = shown["heads"]
    assert (heads["text"], heads["num_lines"]) == ("the validation text", 10)
    assert [head["kind"] for head in heads["heads"][::2]] == list(contents.KINDS)
    flags = "--input=- --output=a.json --heads=valid"
    assert shown["command"] == f"vaswani page {trained.name} {flags}"
    lines = (trained / "data" / "valid.source.txt").read_text().splitlines()
    targets = (trained / "data" / "valid.target.txt").read_text().splitlines()
    scores = vaswani_jax.load(trained).score(lines, targets)
    log_probs = [each for score in scores for each in score.log_probs]
    np.testing.assert_allclose(heads["loss"], -np.mean(log_probs), rtol=1e-4)


REFUSED = {
    "": "--workdir is missing: name the directory of a run",
    "EMPTY": "EMPTY holds no run: it has no config.json",
    "EMPTY/none": "--workdir=EMPTY/none is not a directory; name that of a run",
    "RUN --output=a.pdf": "--output=a.pdf must end in .html or .json",
    "RUN --output=EMPTY/none/a.html": "--output: there is no directory EMPTY/none",
    "RUN --input=none": "--input: no file none",
    "RUN --target=FILE": "--target needs --input: the lines that it translates",
    "RUN --input=FILE --target=LONG": "--target=LONG has 51 lines, --input=FILE 3",
    "RUN --input=LONG": "--input=LONG: a page has at most 50 sentences, got 51",
    "RUN --input=-": "a page needs a line with text, got none",
    "RUN --input=FILE --max_tokens=4": (
        "source, line 3: 5 tokens are more than max_tokens=4"
    ),
    "RUN --max_tokens=1": (
        "RUN has no validation text of at most --max_tokens=1: name a file of "
        "sentences with --input"
    ),
    "RUN --heads=some": "--heads=some must be valid, test, or two files: SOURCE,TARGET",
    "RUN --heads=valid --checkpoint=4,8": "--heads measures one model: name one",
    "RUN --heads=FILE,LONG": "FILE has 3 source lines, but 51 targets",
    "RUN --trees=FILE": "--trees and --alignments need --heads: the text they belong",
    "RUN --checkpoint=5": "no checkpoint of step 5",
    "RUN --checkpoint=4 --checkpoints=4": (
        "--checkpoint and --checkpoints exclude each other"
    ),
    "RUN --checkpoints=some": "--checkpoints=some must be all, or steps separated by",
    "RUN --checkpoints=4,5": "--checkpoints=5: there is no such step; there are [4, 8]",
    "RUN --checkpoints=1,2,3,4,5,6,7,8,9,10,11,12,13": (
        "--checkpoints has 13 steps, a page has at most 12"
    ),
    "RUN --checkpoints=all --input=FILE": (
        "a page of several checkpoints has at most 2 sentences, got 3"
    ),
}


@pytest.fixture(scope="module")
def paths(
    trained: pathlib.Path, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, pathlib.Path]:
    """Return the paths that words of REFUSED stand for."""
    directory = tmp_path_factory.mktemp("texts")
    (directory / "file").write_text(LINES)
    (directory / "long").write_text("a\n" * 51)
    return {"RUN": trained, "FILE": directory / "file", "LONG": directory / "long"}


@pytest.fixture(scope="module")
def directories(tmp_path_factory: pytest.TempPathFactory) -> dict[str, pathlib.Path]:
    """Return the empty directory of each line, in which it runs."""
    return {line: tmp_path_factory.mktemp("line") for line in REFUSED}


def fill_in_paths(text: str, paths: dict[str, pathlib.Path]) -> str:
    """Return a text of REFUSED with paths for its placeholders."""
    for name, path in paths.items():
        text = text.replace(name, str(path))
    return text


@pytest.fixture(scope="module")
def refusals(
    paths: dict[str, pathlib.Path], directories: dict[str, pathlib.Path]
) -> dict[str, subprocess.CompletedProcess[bytes]]:
    """Return the result of each refused command line; all run in one process."""
    lines = []
    for line, directory in directories.items():
        words = fill_in_paths(line, {**paths, "EMPTY": directory}).split()
        if "--output" not in line:
            words.append(f"--output={directory / 'page.html'}")
        lines.append((words, directory))
    return dict(zip(directories, command_lines.run("page", lines), strict=True))


@pytest.mark.parametrize("line", REFUSED)
def test_a_mistake_is_refused_in_one_line(
    paths: dict[str, pathlib.Path],
    directories: dict[str, pathlib.Path],
    refusals: dict[str, subprocess.CompletedProcess[bytes]],
    line: str,
) -> None:
    directory, completed = directories[line], refusals[line]
    assert completed.returncode == 1 and completed.stdout == b""
    error = completed.stderr.decode().splitlines()[-1]
    reason = fill_in_paths(REFUSED[line], {**paths, "EMPTY": directory})
    assert error.startswith("error: ") and reason in error
    assert not list(directory.iterdir())


def test_an_input_is_never_overwritten(
    trained: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    file = tmp_path / "a.json"
    file.write_text(LINES)
    [error] = page(str(trained), f"--input={file}", f"--output={file}")
    assert error == (
        f"error: --output: {file} is an input or another output, too: it would be "
        "overwritten"
    )
    assert file.read_text() == LINES
