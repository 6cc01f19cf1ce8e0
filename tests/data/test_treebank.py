"""Trees in brackets against a reader that recurs, and what `clean` leaves of them."""

import gzip
import pathlib
import re

import hypothesis
import pytest
from hypothesis import strategies

from tests.data import tuple_trees
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
(NP (-LRB- -LRB-) (NN it) (PRP$ its))(TOP (FRAG-TTL (NN-TTL Yes)))
"""


def write(tmp_path: pathlib.Path, text: str | bytes) -> pathlib.Path:
    path = tmp_path / "trees.mrg"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def test_trees_are_read_as_they_are_written(tmp_path: pathlib.Path) -> None:
    assert [str(tree) for tree in treebank.read(write(tmp_path, PENN))] == [
        "( (S (NP-SBJ-1 (PRP He)) (VP (VBD wanted) (S (NP-SBJ (-NONE- *-1)) (VP (TO to)"
        " (VP (VB go) (PP=2 (-NONE- *ICH*)))))) (. .)))",
        "( (X (-NONE- *)))",
        "(NP (-LRB- -LRB-) (NN it) (PRP$ its))",
        "(TOP (FRAG-TTL (NN-TTL Yes)))",
    ]


def test_the_penn_treebanks_own_layout_becomes_constituents(
    tmp_path: pathlib.Path,
) -> None:
    trees = map(treebank.clean, treebank.read(write(tmp_path, PENN)))
    assert [str(tree) for tree in trees] == [
        "(S (NP (PRP He)) (VP (VBD wanted) (S (VP (TO to) (VP (VB go))))) (. .))",
        "None",
        "(NP (-LRB- -LRB-) (NN it) (PRP$ its))",
        "(FRAG (NN-TTL Yes))",
    ]


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        ("( (TOP (S (NN a))))", "(S (NN a))"),
        ("( (S1 (NP (NN a)) (VP (VB b))))", "(S (NP (NN a)) (VP (VB b)))"),
        ("(TOP (NN a) (NP (NN b)))", "(S (NN a) (NP (NN b)))"),
        ("(ROOT (NN a))", "(S (NN a))"),
        ("(NN a)", "(S (NN a))"),
        ("(ROOT a)", "(S (ROOT a))"),
        ("( (NP (NN a)) (S (-NONE- *)))", "(NP (NN a))"),
        ("(S (ROOT (NN a)))", "(S (ROOT (NN a)))"),
        (
            "(VP (PRT|ADVP-1 (RP a)) (ADVP|PRT (RP b)))",
            "(VP (PRT (RP a)) (PRT (RP b)))",
        ),
        ("(S (NP (NP-SBJ=2 (NN a))))", "(S (NP (NP (NN a))))"),
        ("(NP (-LRB- (NN a)) (JJ|NN b))", "(NP (-LRB- (NN a)) (JJ|NN b))"),
        (r"(NP (CD 1\/2) (SYM \*))", r"(NP (CD 1\/2) (SYM \*))"),
    ],
)
def test_what_is_no_constituent_is_left_out(text: str, cleaned: str) -> None:
    [tree] = treebank.parse([text], name="text")
    assert str(treebank.clean(tree)) == cleaned


@pytest.mark.parametrize(
    ("text", "line", "rule"),
    [
        ("(S (NP (NN a)))\n)", 2, "unmatched closing bracket"),
        ("\n(S (NP (NN a))\n", 2, r"\(S is not closed by the end of the file"),
        ("(S (NN a)) b", 1, "'b' is outside all brackets"),
        ("(S\n(NP))", 2, r"\(NP has neither a word nor children"),
        ("()", 1, r"\( has neither a word nor children"),
        ("(NN a b)", 1, r"\(NN already has a word or children, but 'b' follows"),
        ("(NP (NN a) b)", 1, r"\(NP already has a word or children, but 'b' follows"),
        ("(NN a (NP (NN b)))", 1, r"\(NN has a word and a bracket"),
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


@pytest.mark.parametrize("text", ["", "\n \n"])
def test_a_file_without_a_tree_is_refused(tmp_path: pathlib.Path, text: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(ValueError, match=f"^{path} has no tree$"):
        list(treebank.read(path))


def test_gzipped_trees_are_read(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "trees.mrg.gz"
    path.write_bytes(gzip.compress(b"(NP (NN a))"))
    assert [str(tree) for tree in treebank.read(path)] == ["(NP (NN a))"]


A = treebank.Tree("NN", word="a")


@pytest.mark.parametrize("parts", [{}, {"children": (A,), "word": "b"}])
def test_a_tree_has_either_a_word_or_children(parts: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"\(NP needs either a word or children"):
        treebank.Tree("NP", **parts)  # type: ignore[arg-type]


def test_depth_has_no_limit(tmp_path: pathlib.Path) -> None:
    depth = 20_000
    text = "(A " * depth + "(B c)" + ")" * depth
    [tree] = treebank.read(write(tmp_path, text))
    assert str(tree) == text
    assert tree.leaves() == [treebank.Tree("B", word="c")]
    assert treebank.clean(tree) == tree
    assert len({tree, treebank.clean(tree)}) == 1


def nested(text: str) -> list[tuple_trees.Node]:
    """The trees of a text as nested tuples, by Python's own parser."""
    quoted = re.sub(r"[^()\s]+", lambda match: repr(match[0]) + ",", text, flags=re.A)
    return list(eval(f"[{quoted.replace(')', '),')}]"))


@hypothesis.given(
    expected=strategies.lists(tuple_trees.nodes(), min_size=1, max_size=4),
    space=strategies.sampled_from([" ", "\n", "\t \n"]),
)
def test_any_trees_are_read_as_pythons_parser_reads_them(
    expected: list[tuple_trees.Node], space: str
) -> None:
    texts = list(map(tuple_trees.text_of, expected))
    text = " ".join(texts).replace(" ", space)
    trees = list(treebank.parse(text.split("\n"), name="text"))
    assert nested(text) == expected
    assert list(map(tuple_trees.node_of, trees)) == expected
    assert list(map(str, trees)) == texts
    words = [[leaf.word for leaf in tree.leaves()] for tree in trees]
    assert words == list(map(tuple_trees.words_of, expected))


def cleaned_parts(node: tuple_trees.Node) -> list[tuple_trees.Node]:
    """A tree without empty elements and function tags, or nothing."""
    label, *parts = node
    if isinstance(parts[0], str):
        return [node] if label != "-NONE-" else []
    inside = [part for inner in parts for part in cleaned_parts(inner)]
    category = {"NP-SBJ-1": "NP", "VP=2": "VP", "PRT|ADVP": "PRT"}.get(label, label)
    return [(category, *inside)] if inside else []


def without_roots(node: tuple_trees.Node) -> list[tuple_trees.Node]:
    """What the outermost brackets that are no constituents have."""
    label, *parts = node
    if label not in ("TOP", "ROOT") or isinstance(parts[0], str):
        return [node]
    return [part for inner in parts for part in without_roots(inner)]


@hypothesis.given(tuple_trees.nodes(tuple_trees.PENN_LABELS, tuple_trees.PENN_TAGS))
def test_any_tree_is_cleaned_as_by_recursion(node: tuple_trees.Node) -> None:
    cleaned = treebank.clean(tuple_trees.tree_of(node))
    parts = [part for root in without_roots(node) for part in cleaned_parts(root)]
    if cleaned is None:
        assert not parts
    elif len(parts) == 1 and not isinstance(parts[0][1], str):
        assert tuple_trees.node_of(cleaned) == parts[0]
    else:
        assert tuple_trees.node_of(cleaned) == ("S", *parts)


SHARED = pathlib.Path(__file__).parents[3] / "shared/data/gum_trees"


@pytest.mark.shared
@pytest.mark.skipif(not SHARED.is_dir(), reason=f"needs the trees of GUM, {SHARED}")
def test_real_trees_have_their_words() -> None:
    trees = list(treebank.read(SHARED / "dev.trees.txt"))
    lines = (SHARED / "dev.tokens.txt").read_text().splitlines()
    assert len(trees) == 1575
    for tree, line in zip(trees, lines, strict=True):
        assert " ".join(leaf.word for leaf in tree.leaves()) == line
