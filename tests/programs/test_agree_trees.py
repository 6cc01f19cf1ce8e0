"""`vaswani agree-trees` keeps what two parsers agree on, or says why it cannot."""

import gzip
import os
import pathlib
import subprocess
import sys

from tests.programs import runs

FIRST = "(TOP (S (NP (DT the) (NN man)) (VP (VBZ sleeps))))\n(TOP (S (UH oh)))\n"
SECOND = "(TOP (S (NP (DT the) (NN man) (VBZ sleeps))))\n(TOP (S (UH oh)))\n"


def run(
    directory: pathlib.Path, *words: str, second: str = SECOND
) -> subprocess.CompletedProcess[bytes]:
    (directory / "first.trees").write_text(FIRST)
    (directory / "second.trees").write_text(second)
    command = (sys.executable, "-m", "vaswani_jax", "agree-trees")
    files = ("first.trees", "second.trees")
    return runs.run(*command, *files, *words, devices=None, cwd=directory)


def test_the_output_has_the_trees_that_are_the_same(tmp_path: pathlib.Path) -> None:
    completed = run(tmp_path, "--output=silver.trees")
    assert completed.returncode == 0, completed.stderr
    assert b"1 of 2 trees are the same in both" in completed.stderr
    assert (tmp_path / "silver.trees").read_text() == "(TOP (S (UH oh)))\n"
    assert b"of them" not in completed.stderr
    empty = run(tmp_path, "--output=none.trees", "--min_words=2")
    assert b"1 of 2 trees are the same in both" in empty.stderr
    assert b"0 of them remain without duplicates" in empty.stderr
    assert "no tree is left for --output=none.trees" in runs.error_of(empty)
    assert not (tmp_path / "none.trees").exists()


def test_the_output_may_be_compressed_and_have_the_lengths_of_raw_trees(
    tmp_path: pathlib.Path,
) -> None:
    traces = " (-NONE- *)" * 6
    (tmp_path / "gold.mrg").write_text(f"( (S (UH ah) (NP{traces})) )\n")
    completed = run(
        tmp_path, "--output=silver.trees.gz", "--like=gold.mrg", second=FIRST
    )
    assert completed.returncode == 0, completed.stderr
    trees = gzip.decompress((tmp_path / "silver.trees.gz").read_bytes()).decode()
    assert trees == FIRST


def test_no_tree_is_written_twice(tmp_path: pathlib.Path) -> None:
    run(tmp_path, "--output=silver.trees", second=FIRST)
    for name in ("first.trees", "second.trees"):
        (tmp_path / name).write_text(2 * FIRST)
    files = ("first.trees", "second.trees", "--output=silver.trees")
    command = (sys.executable, "-m", "vaswani_jax", "agree-trees", *files)
    completed = runs.run(*command, devices=None, cwd=tmp_path)
    assert b"4 of 4 trees are the same in both" in completed.stderr
    assert b"2 of them remain without duplicates" in completed.stderr
    assert (tmp_path / "silver.trees").read_text() == FIRST


def flat(num_words: int, word: str) -> str:
    return f"(S{f' (NN {word})' * num_words})\n"


def test_lengths_are_chosen_among_trees_that_are_neither_short_nor_repeated(
    tmp_path: pathlib.Path,
) -> None:
    shapes = [(1, "a"), (2, "a"), (2, "a"), (7, "b"), (2, "c"), (7, "d")]
    trees = [flat(*shape) for shape in shapes]
    for name in ("first.trees", "second.trees"):
        (tmp_path / name).write_text("".join(trees))
    # The short tree does not count here, either.
    (tmp_path / "gold").write_text(flat(1, "x") + flat(7, "x") + flat(2, "x"))
    files = ("first.trees", "second.trees", "--output=silver.trees", "--like=gold")
    command = (sys.executable, "-m", "vaswani_jax", "agree-trees", *files)
    choice = ("--min_words=2", "--num_trees=3")
    completed = runs.run(*command, *choice, devices=None, cwd=tmp_path)
    assert completed.returncode == 0, completed.stderr
    silver = (tmp_path / "silver.trees").read_text()
    assert silver == trees[1] + trees[3] + trees[5]


def test_files_of_other_sentences_are_refused(tmp_path: pathlib.Path) -> None:
    for second, numbers in (
        (SECOND.partition("\n")[0], "first.trees has 2 trees, second.trees 1:"),
        (2 * FIRST, "first.trees has 2 trees, second.trees 4:"),
    ):
        uneven = run(tmp_path, "--output=silver.trees", second=second)
        assert numbers in runs.error_of(uneven)
    lacking = run(tmp_path, "--output=silver.trees", second="(TOP (S (UH oh)))\n")
    message = "first.trees, line 1, and second.trees, line 1: different words, 'oh' and"
    assert message in runs.error_of(lacking)
    same = run(tmp_path, "--output=second.trees")
    assert "--output and --second are the same file" in runs.error_of(same)
    other = run(tmp_path, "--output=silver.trees", second=SECOND.replace("oh", "ah"))
    message = "first.trees, line 2, and second.trees, line 2: different words, 'ah' and"
    assert message in runs.error_of(other)
    assert not (tmp_path / "silver.trees").exists()
    os.link(tmp_path / "first.trees", tmp_path / "alias.trees")
    alias = run(tmp_path, "--output=alias.trees")
    assert "alias.trees is an input or another output, too" in runs.error_of(alias)
    assert (tmp_path / "first.trees").read_text() == FIRST
    (tmp_path / "gold").write_text(f"(S{' (UH ah)' * 6})\n(S (UH ah))\n")
    scarce = run(tmp_path, "--output=silver.trees", "--like=gold")
    assert "--like=gold: 1 of 2 trees to resemble have 6-10 words" in runs.error_of(
        scarce
    )
    alone = run(tmp_path, "--output=silver.trees", "--num_trees=3")
    assert "--num_trees needs --like" in runs.error_of(alone)
    lost = run(tmp_path, "--output=missing/silver.trees")
    assert "--output=missing/silver.trees cannot be a file" in runs.error_of(lost)
