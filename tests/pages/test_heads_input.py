"""Texts for heads, from a run and from files."""

import pathlib

import numpy as np
import pytest

from tests import settings
from vaswani_jax.data import prepared
from vaswani_jax.pages import heads_input


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run with prepared data and no model."""
    workdir = tmp_path_factory.mktemp("run")
    small = settings.small_settings()
    prepared.open_or_prepare(small, workdir / "data", rebuild=False)
    return small, workdir


def read(run, *names, **files):
    small, workdir = run
    known = {"trees": None, "alignments": None, **files}
    return heads_input.read_input(names, settings=small, workdir=workdir, **known)


def test_a_split_comes_with_the_counts_of_the_training_text(run):
    text = read(run, "valid")
    assert text.name == "the validation text" and len(text.sources) == 8
    data = prepared.open_prepared(run[1] / "data")
    pairs = data.token_pairs("train")
    for counts, tokens in zip(text.counts, pairs, strict=True):
        expected = np.zeros(data.vocabulary.size, int)
        for number in range(len(tokens)):
            ids, _ = tokens.joined(np.array([number]))
            for token in ids:
                expected[token] += 1
        np.testing.assert_array_equal(counts, expected)


def test_files_have_trees_and_alignments(run, tmp_path):
    contents = {
        "source": "a b\nc\n",
        "target": "b\na\n",
        "trees": "(TOP (S (X-SBJ a) (X b)))\n(S (X c))\n",
        "links": "0-0 1-0\n\n",
    }
    for name, lines in contents.items():
        (tmp_path / name).write_text(lines)
    text = read(
        run,
        str(tmp_path / "source"),
        str(tmp_path / "target"),
        trees=str(tmp_path / "trees"),
        alignments=str(tmp_path / "links"),
    )
    assert (text.sources, text.targets) == (["a b", "c"], ["b", "a"])
    assert str(text.trees[0]) == "(S (X-SBJ a) (X b))"
    assert text.alignments == [[(0, 0), (1, 0)], []]
    (tmp_path / "links").write_text("0-0\n0:0\n")
    with pytest.raises(ValueError, match=r"links, line 2: '0:0' is no alignment"):
        read(run, "valid", alignments=str(tmp_path / "links"))


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        # A parser's output, and trees that fill lines as they like.
        ("(S (X a) (X b))\n\n(S (X c))\n", ["(S (X a) (X b))", None, "(S (X c))"]),
        ("(S (X a)\n (X b))\n(S (X c))\n", ["(S (X a) (X b))", "(S (X c))"]),
        ("(S (X a) (X b))\n\n\n(S (X c))\n", ["(S (X a) (X b))", "(S (X c))"]),
    ],
)
def test_an_empty_line_has_no_tree_in_the_output_of_a_parser(
    run, tmp_path, lines, expected
):
    names = [str(tmp_path / name) for name in ("source", "target", "trees")]
    for name, text in zip(names, ("a b\n\nc\n", "b\n\na\n", lines), strict=True):
        pathlib.Path(name).write_text(text)
    trees = read(run, *names[:2], trees=names[2]).trees
    assert [tree and str(tree) for tree in trees] == expected
    pathlib.Path(names[2]).write_text("\n\n\n")
    with pytest.raises(ValueError, match=r"trees has no tree$"):
        read(run, *names[:2], trees=names[2])


def test_the_target_lines_of_a_parser_are_trees(tmp_path):
    source, target = tmp_path / "words", tmp_path / "trees"
    source.write_text("a b\n\nc\n")
    target.write_text("(TOP (S (X-SBJ a) (X b)))\n\n(S (X c))\n")
    parser = settings.small_settings(**settings.TREEBANK), tmp_path
    text = read(parser, str(source), str(target))
    first, empty, last = text.trees
    assert (str(first), empty, str(last)) == ("(S (X-SBJ a) (X b))", None, "(S (X c))")
    reasons = {"(S (X c)": r"\(S is not closed", "(X c) (X c)": "2 trees"}
    for line, reason in reasons.items():
        target.write_text(f"(S (X a) (X b))\n\n{line}\n")
        with pytest.raises(ValueError, match=f"^{target}, line 3: {reason}"):
            read(parser, str(source), str(target))


def test_a_text_that_is_not_there_is_refused(run, tmp_path):
    with pytest.raises(ValueError, match="--heads=some must be valid, test, or two"):
        read(run, "some")
    small, _ = run
    with pytest.raises(ValueError, match=r"--heads=valid: .* has no such text"):
        read((small, tmp_path), "valid")
