"""Trees in brackets to symbols, against a reader that recurs."""

import pathlib
import re

import hypothesis
import pytest
from hypothesis import strategies

from vaswani_jax.data import treebank

PENN = """
( (S
    (NP-SBJ-1 (PRP He) )
    (VP (VBD wanted)
      (S
        (NP-SBJ (-NONE- *-1) )
        (VP (TO to)
          (VP (VB go)
            (PP=2 (-NONE- *ICH*)) ))))
    (. .) ))
( (X (-NONE- *) ))
(NP (-LRB- -LRB-) (NN it) (PRP$ its))(TOP (FRAG-TTL (NN Yes)))
"""


def write(tmp_path: pathlib.Path, text: str | bytes) -> pathlib.Path:
    path = tmp_path / "trees.mrg"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def test_the_penn_treebanks_own_layout(tmp_path: pathlib.Path) -> None:
    trees = list(treebank.read(write(tmp_path, PENN)))
    assert [" ".join(tree.symbols) for tree in trees] == [
        "(S (NP XX )NP (VP XX (S (VP XX (VP XX )VP )VP )S )VP XX )S",
        "(NP XX XX XX )NP",
        "(FRAG XX )FRAG",
    ]
    assert trees[0].words == ["He", "wanted", "to", "go", "."]
    assert trees[0].tags == ["PRP", "VBD", "TO", "VB", "."]
    assert trees[1].tags == ["-LRB-", "NN", "PRP$"]


@pytest.mark.parametrize(
    ("text", "line", "rule"),
    [
        ("(S (NP (NN a)))\n)", 2, "a bracket is closed that was not opened"),
        ("\n(S (NP (NN a))\n", 2, r"\(S is not closed by the end of the file"),
        ("(S (NN a)) b", 1, "'b' stands outside of brackets"),
        ("(S\n(NP))", 2, r"\(NP has neither a word nor parts"),
        ("()", 1, r"\( has neither a word nor parts"),
        ("(NN a b)", 1, r"\(NN has 'b' beside another part"),
        ("(NP (NN a) b)", 1, r"\(NP has 'b' beside another part"),
        ("(NN a (NP (NN b)))", 1, r"\(NN has a bracket beside a word"),
        ("(S ( (NN a)))", 1, "a bracket within another has no label"),
        (b"(NN a)\n(NN \xff)", 2, "not UTF-8"),
    ],
)
def test_what_is_no_tree_is_refused_with_its_place(
    tmp_path: pathlib.Path, text: str | bytes, line: int, rule: str
) -> None:
    path = write(tmp_path, text)
    with pytest.raises(ValueError, match=f"^{path}, line {line}: .*{rule}"):
        list(treebank.read(path))


def test_depth_has_no_limit(tmp_path: pathlib.Path) -> None:
    depth = 20_000
    path = write(tmp_path, "(A " * depth + "(B c)" + ")" * depth)
    [tree] = treebank.read(path)
    assert tree.symbols == ["(A"] * depth + ["XX"] + [")A"] * depth


def nested(text: str) -> list[object]:
    """The nested lists of brackets, by Python's own parser."""
    quoted = re.sub(r"[^()\s]+", lambda match: repr(match[0]) + ",", text)
    nested_lists = quoted.replace("(", "[").replace(")", "],")
    return list(eval(f"[{nested_lists}]"))


def symbols_of(node: list[object]) -> list[str]:
    label, *parts = node
    if isinstance(parts[0], str):
        return ["XX"]
    inside = [symbol for part in parts for symbol in symbols_of(part)]  # type: ignore[arg-type]
    return [f"({label}", *inside, f"){label}"]


def words_of(node: list[object]) -> list[object]:
    if isinstance(node[1], str):
        return [node[1]]
    return [word for part in node[1:] for word in words_of(part)]  # type: ignore[arg-type]


LABELS = strategies.sampled_from(["NP", "VP", "S", "-LRB-"])
LEAVES = strategies.tuples(LABELS, strategies.sampled_from(["a", "Ä", "-", "1/2", "'"]))
TREES = strategies.recursive(
    LEAVES.map(lambda leaf: f"({leaf[0]} {leaf[1]})"),
    lambda inner: strategies.tuples(LABELS, strategies.lists(inner, min_size=1)).map(
        lambda node: f"({node[0]} {' '.join(node[1])})"
    ),
    max_leaves=20,
)


@hypothesis.given(texts=strategies.lists(TREES, min_size=1, max_size=4))
def test_any_tree_is_read_as_a_recursive_reader_reads_it(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str]
) -> None:
    path = write(tmp_path_factory.mktemp("trees"), "\n".join(texts))
    trees = list(treebank.read(path))
    assert [tree.symbols for tree in trees] == [
        symbols_of(node)  # type: ignore[arg-type]
        for node in nested(" ".join(texts))
    ]
    assert [tree.words for tree in trees] == [
        words_of(node)  # type: ignore[arg-type]
        for node in nested(" ".join(texts))
    ]


SHARED = pathlib.Path(__file__).parents[3] / "shared/data/gum_trees"


@pytest.mark.skipif(not SHARED.is_dir(), reason="needs ../shared/data/gum_trees")
def test_real_trees_have_their_words() -> None:
    trees = list(treebank.read(SHARED / "dev.trees.txt"))
    lines = (SHARED / "dev.tokens.txt").read_text().splitlines()
    assert len(trees) == 1575
    assert [" ".join(tree.words) for tree in trees] == lines
