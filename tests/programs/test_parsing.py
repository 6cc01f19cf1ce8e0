"""Parsing as a user runs it: train on trees, parse lines, score."""

import json
import pathlib
import re
import sys

import pytest

import vaswani_jax
from tests import workers
from tests.programs import runs, toy_treebank
from vaswani_jax.data import treebank
from vaswani_jax.paper import scored_runs, table4

PRESET = "configs/parsing_gum.py:options"


def vaswani(program: str, workdir: pathlib.Path, *flags: str, **options: bytes) -> str:
    """Run a program with the settings of a toy; what it printed."""
    words = [
        *(sys.executable, "-m", f"vaswani_jax.{program}", f"--workdir={workdir}"),
        f"--config={runs.ROOT / PRESET}",
        *(f"--config.{key}={value}" for key, value in toy_treebank.SETTINGS.items()),
        f"--config.data.text_directory={workdir.parent}",
    ]
    result = runs.run(*words, *flags, devices=2, **options)
    assert result.returncode == 0, result.stderr.decode()
    return result.stdout.decode()


@pytest.fixture(scope="session")
def parser(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """Return the workdir of a parser, which lies in the directory of its treebank."""

    def train(directory: pathlib.Path) -> None:
        directory.mkdir(exist_ok=True)
        toy_treebank.write_treebank(directory)
        assert "\nf1  " in vaswani("main", directory / "run")

    return workers.copy_once(tmp_path_factory, "treebank", train) / "run"


def test_a_toy_learns_to_parse_and_f1_chooses_its_best(parser: pathlib.Path) -> None:
    rows = [
        json.loads(row)
        for row in (parser / "metrics.jsonl").read_text().split("\n")
        if row
    ]
    scores = {row["step"]: row["valid/f1"] for row in rows if "valid/f1" in row}
    assert max(scores.values()) > 95
    [record] = (parser / "evaluations").glob("valid-averaged-*.json")
    first = json.loads(record.read_text())["scores"][0]
    assert first["name"] == "f1"
    assert first["signature"].startswith("bracketing|evalb|prm:COLLINS|tags:reference")


def test_lines_of_words_become_trees_that_score_as_evaluate_says(
    parser: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    gold = parser.parent / "dev.trees.txt"
    lines = [
        " ".join(leaf.word for leaf in tree.leaves()) for tree in treebank.read(gold)
    ]
    output = vaswani("decode", parser, "--input=-", stdin="\n".join(lines).encode())
    assert len(output.splitlines()) == len(lines)
    test = tmp_path / "test.trees"
    test.write_text(output, encoding="utf-8")
    result = runs.run(
        *(sys.executable, "-m", "vaswani_jax.evaluate_trees"),
        *(f"--gold={gold}", f"--test={test}"),
    )
    assert result.returncode == 0, result.stderr.decode()
    [record] = (parser / "evaluations").glob("valid-averaged-*.json")
    f1 = json.loads(record.read_text())["scores"][0]["value"]
    assert result.stdout.decode().startswith(f"f1 {f1:.2f}")


def test_any_words_become_one_tree_over_them_and_an_empty_line_stays(
    parser: pathlib.Path,
) -> None:
    lines = ["the man ( sees ) every ▁ ½ .", "", "?"]
    output = vaswani("decode", parser, "--input=-", stdin="\n".join(lines).encode())
    first, empty, last = output.split("\n")[:3]
    assert empty == ""
    [of_first, of_last] = treebank.parse([first, last], name="output")
    words = "the man -LRB- sees -RRB- every ▁ ½ .".split()
    assert [leaf.word for leaf in of_first.leaves()] == words
    assert [leaf.word for leaf in of_last.leaves()] == ["?"]


def test_plain_text_is_split_by_a_tokeniser_that_is_named(
    parser: pathlib.Path,
) -> None:
    pytest.importorskip("nltk", reason="nltk is not installed: .[parsing]")
    result = runs.run(
        *(sys.executable, "-m", "vaswani_jax.decode", f"--workdir={parser}"),
        *("--input=-", "--tokenize"),
        devices=2,
        stdin=b"The man can't see (every) river.\n",
    )
    [tree] = treebank.parse([result.stdout.decode()], name="output")
    words = "The man ca n't see -LRB- every -RRB- river .".split()
    assert [leaf.word for leaf in tree.leaves()] == words
    assert "each line is split into tokens by NLTK " in result.stderr.decode()


def test_python_parses_tokens_and_warns_of_plain_text(
    parser: pathlib.Path, caplog: pytest.LogCaptureFixture
) -> None:
    pytest.importorskip("nltk", reason="nltk is not installed: .[parsing]")
    text = "The man can't see."
    translator = vaswani_jax.load(parser)
    [output] = translator.translate(translator.tokenize([text]))
    [tree] = treebank.parse([output], name="output")
    assert [leaf.word for leaf in tree.leaves()] == "The man ca n't see .".split()
    assert "plain text" not in caplog.text
    translator.translate([text])
    assert '1 line looks like plain text, with words such as "can\'t"' in caplog.text


def test_a_page_names_the_line_of_a_target_that_is_no_tree(
    parser: pathlib.Path,
) -> None:
    translator = vaswani_jax.load(parser)
    targets = ["(S (DT every) (NN river))", "(S (DT every)"]
    with pytest.raises(ValueError, match=r"^target, line 2: \(S is not closed"):
        vaswani_jax.make_page(translator, ["every river"] * 2, targets=targets)


def test_the_tree_of_plain_text_is_drawn(
    parser: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    pytest.importorskip("matplotlib", reason="matplotlib is not installed: .[plot]")
    pytest.importorskip("nltk", reason="nltk is not installed: .[parsing]")
    output = tmp_path / "tree.svg"
    words = "every river builds a song".split()
    result = runs.run(
        *(sys.executable, "-m", "vaswani_jax.plot", f"--workdir={parser}"),
        *("--tree=every river builds a song.", "--tokenize", f"--output={output}"),
        devices=2,
    )
    assert result.stderr.decode().endswith(f"written: {output}\n")
    drawn = re.findall("<!-- (.+) -->", output.read_text())
    assert [text for text in drawn if text in words] == words
    assert "S" in drawn and "NP" in drawn


def test_a_run_without_test_trees_names_their_setting(parser: pathlib.Path) -> None:
    result = runs.run(
        *(sys.executable, "-m", "vaswani_jax.evaluate", f"--workdir={parser}"),
        devices=2,
    )
    error = runs.error_of(result)
    assert "--split=test: the data has only train, valid" in error
    assert "name config.data.test_trees, and prepare it" in error


def test_a_run_is_a_row_of_table_4(parser: pathlib.Path) -> None:
    records = scored_runs.read(parser.parent)
    assert not records.unreadable
    [run] = records.runs
    directory = parser.parent.name
    row = (
        "| **Transformer (1 layer), deterministic attention, legal trees, this code** "
        f"| {directory} only | {directory} | valid (dev.trees.txt) | {run.score:.2f} |"
    )
    assert row in table4.format_table(records.runs)
