"""`vaswani evaluate-trees` scores trees of any parser, or refuses them in one line."""

import gzip
import json
import pathlib
import subprocess
import sys
from collections.abc import Sequence

import pytest

import vaswani_jax
from tests import interpreter
from tests.programs import command_lines, runs

GOLD = """\
(TOP (S (NP (DT the) (NN man)) (VP (VBZ sleeps)) (. .)))
(TOP (S (NP (PRP it)) (VP (VBZ rains)) (. .)))
"""
TEST = """\
(TOP (S (NP (DT the) (NN man)) (VBZ sleeps) (. .)))
(TOP (S (VP (PRP it)) (VP (VBZ rains)) (. .)))
"""


def run(
    directory: pathlib.Path, *words: str, gold: str = GOLD, test: str = TEST
) -> subprocess.CompletedProcess[bytes]:
    """Write both files into a directory, and score them there."""
    write_trees(directory, gold=gold, test=test)
    command = (sys.executable, "-m", "vaswani_jax", "evaluate-trees")
    return runs.run(*command, *name_files(words), devices=None, cwd=directory)


def write_trees(directory: pathlib.Path, *, gold: str, test: str) -> None:
    """Write both files into a directory."""
    (directory / "gold.trees").write_text(gold)
    (directory / "test.trees").write_text(test)


def name_files(words: Sequence[str]) -> list[str]:
    """Return the words, after the names of both files unless they have --gold."""
    files = [] if "--gold" in "".join(words) else ["gold.trees", "test.trees"]
    return [*files, *words]


def test_the_first_line_has_f1_and_its_signature(tmp_path: pathlib.Path) -> None:
    completed = run(tmp_path, "--by_label")
    assert completed.stderr == b"" and completed.returncode == 0
    lines = completed.stdout.decode().splitlines()
    signature = "bracketing|evalb|prm:COLLINS|tags:reference|sentences:2"
    # 4 of 6 constituents of the reference, 4 of 5 of the test.
    assert lines[:4] == [
        f"f1 72.73  {signature}|v:{vaswani_jax.__version__}",
        "precision 80.00",
        "recall 66.67",
        "complete_match 0.00",
    ]
    assert "NP      66.67     100.00   50.00       2       1" in lines


def test_a_sentence_without_words_has_no_tree_of_a_parser(
    tmp_path: pathlib.Path,
) -> None:
    first, second = GOLD.splitlines(keepends=True)
    completed = run(tmp_path, gold=f"{first}(TOP (S (-NONE- *)))\n{second}")
    assert completed.stdout.startswith(b"f1 72.73"), completed.stderr
    assert b"1 tree without words left out" in completed.stderr
    wrong = run(
        tmp_path,
        gold=f"(S (-NONE- *))\n{first}{second}",
        test=f"{first}{second.replace('rains', 'snows')}",
    )
    assert "line 2 (gold: gold.trees, line 3)" in runs.error_of(wrong)


def test_a_tree_may_take_several_lines_and_a_file_be_compressed(
    tmp_path: pathlib.Path,
) -> None:
    (tmp_path / "gold.mrg.gz").write_bytes(
        gzip.compress(GOLD.replace(" (VP", "\n    (VP").encode())
    )
    completed = run(
        tmp_path, "--gold=gold.mrg.gz", "--test=test.trees", "--json", "--by_label"
    )
    values = json.loads(completed.stdout)
    assert values["f1"] == pytest.approx(800 / 11)
    assert values["by_label"]["VP"] == {
        "f1": 50,
        "precision": 50,
        "recall": 50,
        "gold": 2,
        "test": 2,
        "matched": 1,
    }


def test_evalb_leaves_out_what_it_calls_errors_and_skips(
    tmp_path: pathlib.Path,
) -> None:
    other = "(TOP (S (NP (DT a) (NN man)) (VP (VBZ sleeps)) (. .)))\n"
    last = TEST.splitlines(keepends=True)[1]
    completed = run(
        tmp_path,
        "--evalb",
        gold=GOLD * 3,
        test=f"{TEST}{other}\n(S (NP\n{last}",
    )
    line = completed.stdout.decode().partition("\n")[0]
    # 6 of 9 constituents of the reference, 6 of 8 of the test.
    assert line.startswith("f1 70.59  bracketing|evalb|prm:COLLINS|tags:own|")
    assert "|sentences:3|errors:2|skips:1|" in line
    assert completed.stderr.decode().splitlines() == [
        "warning: test.trees, line 5: (S is not closed by the end; counted as an "
        "error, as are all lines that are not of trees, 1 in this file",
        "warning: line 3: word 1 is 'the' in the gold tree, 'a' in the test tree; "
        "counted as an error, as are all lines with different words, 1 in these files",
    ]


def test_evalb_warns_of_a_root_that_counts(tmp_path: pathlib.Path) -> None:
    root = GOLD.replace("TOP", "ROOT")
    completed = run(tmp_path, "--evalb", gold=root, test=root)
    assert completed.stderr.decode().splitlines() == [
        "warning: EVALB counts the outermost bracket 'ROOT' as a constituent, on 2 "
        "lines of gold.trees"
    ]
    completed = run(tmp_path, gold=root, test=TEST)
    assert completed.stderr == b""
    assert completed.stdout.startswith(b"f1 72.73 ")


REFUSED = {
    "the test has another word": (
        [],
        TEST.replace("it", "he"),
        "test.trees, line 2 (gold: gold.trees, line 2): word 1 is 'it' in the gold "
        "tree, 'he' in the test tree; the words must be the same, or --evalb leaves "
        "the sentence out",
    ),
    "the test has one tree": (
        [],
        TEST.partition("\n")[0],
        "gold.trees has 2 trees, test.trees 1: every gold tree needs one test tree, "
        "and none is left for gold.trees, line 2",
    ),
    "a tree is missing before others": (
        [],
        "\n" + TEST.splitlines()[1],
        "test.trees, line 2 (gold: gold.trees, line 1): word 1 is 'the' in the gold "
        "tree, 'it' in the test tree; the words must be the same, or --evalb leaves "
        "the sentence out",
    ),
    "no tree has words": (
        [],
        "(S (-NONE- *))",
        "test.trees: no tree has words",
    ),
    "the test is a directory": (
        ["--gold=gold.trees", "--test=."],
        TEST,
        "--test: . is a directory; name a file",
    ),
    "the test is no tree": (
        [],
        TEST.replace("(VP (PRP it))", "(VP)"),
        "test.trees, line 2: (VP has neither a word nor children",
    ),
    "the test is empty": ([], "", "test.trees has no tree"),
    "all is left out": (
        ["--evalb"],
        "\n(NN a)",
        "no sentence is left to score (errors: 1, skips: 1); line 2: word 1 is 'it' in "
        "the gold tree, 'a' in the test tree",
    ),
    "no such file": (
        ["--gold=none.trees", "--test=test.trees"],
        TEST,
        "--gold: no file none.trees",
    ),
    "nk has a rule that is not here": (
        ["--evalb", "--parameters=nk"],
        TEST,
        "--evalb does not support --parameters=nk, with which EVALB also repairs tags "
        "of quotes; use --parameters=COLLINS",
    ),
    "a flag is mistyped": (
        ["--by_lable"],
        TEST,
        "unknown flag --by_lable; did you mean --by_label?",
    ),
    "several processes": (
        ["--coordinator=auto"],
        TEST,
        "--coordinator is a flag of train, translate, back-translate and evaluate "
        "alone: leave it out",
    ),
}


@pytest.fixture(scope="module")
def refusals(
    tmp_path_factory: pytest.TempPathFactory,
) -> dict[str, subprocess.CompletedProcess[bytes]]:
    """Return the result of each refused command line; all run in one process."""
    lines = []
    for words, test, _ in REFUSED.values():
        directory = tmp_path_factory.mktemp("line")
        write_trees(directory, gold=GOLD, test=test)
        lines.append((name_files(words), directory))
    results = command_lines.run("evaluate-trees", lines)
    return dict(zip(REFUSED, results, strict=True))


@pytest.mark.parametrize("name", REFUSED)
def test_a_mistake_is_refused_in_one_line(
    refusals: dict[str, subprocess.CompletedProcess[bytes]], name: str
) -> None:
    completed, (_, _, reason) = refusals[name], REFUSED[name]
    assert completed.returncode == 1 and completed.stdout == b""
    assert completed.stderr.decode() == f"error: {reason}\n"


def test_another_word_is_found_on_the_line_where_its_tree_begins(
    tmp_path: pathlib.Path,
) -> None:
    gold = "\n" + GOLD.replace(" (VP", "\n (VP")
    completed = run(tmp_path, gold=gold, test=TEST.replace("it", "he"))
    assert b"test.trees, line 2 (gold: gold.trees, line 4)" in completed.stderr


def test_it_starts_without_jax(tmp_path: pathlib.Path) -> None:
    (tmp_path / "gold.trees").write_text(GOLD)
    path = str(tmp_path / "gold.trees")
    program = (
        "import sys; from vaswani_jax.cli import commands\n"
        "try: commands.main(['evaluate-trees', sys.argv[1], sys.argv[1], '--evalb'])\n"
        "except SystemExit as end: assert not end.code\n"
        "assert 'jax' not in sys.modules"
    )
    assert interpreter.output_of(program, path).startswith("f1 100.00 ")
