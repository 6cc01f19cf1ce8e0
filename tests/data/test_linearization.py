"""Trees to symbols and back: published examples, any tree, any symbols."""

import itertools
import pathlib
import random

import hypothesis
import pytest
from hypothesis import strategies

from tests.data import tuple_trees
from vaswani_jax.data import linearization, treebank

JOHN = "(S (NP (NNP John)) (VP (VBZ has) (NP (DT a) (NN dog))) (. .))"


def tree_of(text: str) -> treebank.Tree:
    [tree] = treebank.parse([text], name="text")
    return tree


def words_of(tree: treebank.Tree) -> list[str]:
    return [leaf.word for leaf in tree.leaves()]


@pytest.mark.parametrize(
    ("terminals", "symbols"),
    [
        # The docstring of tensor2tensor's wsj_parsing.py writes it with /NP for )NP:
        # S NP NNP /NP VP VBZ NP DT NN /NP /VP . /S
        ("tag", "(S (NP NNP )NP (VP VBZ (NP DT NN )NP )VP . )S"),
        # Figure 2 of Vinyals et al. (2015), with the tags replaced as in section 2.3.
        ("word", "(S (NP XX )NP (VP XX (NP XX XX )NP )VP XX )S"),
    ],
)
def test_the_published_example_has_its_symbols(terminals: str, symbols: str) -> None:
    tree = tree_of(JOHN)
    assert " ".join(linearization.linearize(tree, terminals)) == symbols
    built = linearization.build_tree(symbols.split(), words_of(tree))
    assert linearization.linearize(built, terminals) == symbols.split()
    assert words_of(built) == ["John", "has", "a", "dog", "."]
    assert terminals == "word" or built == tree


def test_terminals_are_tags_or_words() -> None:
    with pytest.raises(ValueError, match=r"terminals are one of .*, not 'XX'"):
        linearization.linearize(tree_of(JOHN), "XX")


@hypothesis.given(tuple_trees.nodes())
def test_any_tree_comes_back_from_its_symbols(node: tuple_trees.Node) -> None:
    node = ("S", node)  # A constituent, as `clean` leaves it.
    symbols = tuple_trees.symbols_of(node)
    assert linearization.linearize(tuple_trees.tree_of(node)) == symbols
    tree = linearization.build_tree(symbols, tuple_trees.words_of(node))
    assert tuple_trees.node_of(tree) == node


@pytest.mark.parametrize(
    ("symbols", "words", "tree"),
    [
        # Nothing, and bare words.
        ("", "a b", "(S (XX a) (XX b))"),
        ("NN", "a b", "(S (NN a) (XX b))"),
        # A closing symbol closes the innermost bracket; one too many is left out.
        ("(S (NP NN )VP VB )NP", "a b", "(S (NP (NN a)) (VB b))"),
        (")S (NP NN )NP )NP", "a", "(NP (NN a))"),
        # One symbol of a word too many.
        ("(NP DT NN NN )NP", "a b", "(NP (DT a) (NN b))"),
        # Words that are left go into the innermost open bracket,
        ("(S (NP NN )NP (VP VB", "a b c", "(S (NP (NN a)) (VP (VB b) (XX c)))"),
        ("(S (NP NN )NP (VP", "a b c", "(S (NP (NN a)) (VP (XX b) (XX c)))"),
        # or into the last constituent, also one that has no word yet,
        ("(NP NN )NP", "a b", "(NP (NN a) (XX b))"),
        ("(S (NP NN )NP )S", "a b", "(S (NP (NN a)) (XX b))"),
        ("(NP NN )NP (VP VB )VP", "a b c", "(S (NP (NN a)) (VP (VB b) (XX c)))"),
        ("(NP NN )NP (VP )VP", "a b", "(S (NP (NN a)) (VP (XX b)))"),
        ("(NP )NP", "a", "(NP (XX a))"),
        # but never before a word.
        ("(NP NN )NP .", "a b c", "(S (NP (NN a)) (. b) (XX c))"),
        ("(NP )NP .", "a b", "(S (. a) (XX b))"),
        # What is open is closed.
        ("(S (NP (NP NN", "a", "(S (NP (NP (NN a))))"),
        # Constituents without a word are left out.
        ("(S (PP (NP )NP )PP (NP NN )NP (VP )VP )S", "a", "(S (NP (NN a)))"),
        ("(NP NN )NP (VP (S", "a", "(NP (NN a))"),
        # Several parts get S around them.
        ("(NP NN )NP (VP VB )VP", "a b", "(S (NP (NN a)) (VP (VB b)))"),
        ("NN (VP VB )VP", "a b", "(S (NN a) (VP (VB b)))"),
    ],
)
def test_symbols_that_are_no_tree_are_repaired(
    symbols: str, words: str, tree: str
) -> None:
    assert str(linearization.build_tree(symbols.split(), words.split())) == tree


def test_a_tree_needs_a_word() -> None:
    with pytest.raises(ValueError, match="a tree needs a word"):
        linearization.build_tree(["(S", ")S"], [])


def is_legal(symbols: list[str], num_words: int) -> bool:
    """Whether symbols are one constituent over the words, by removing from within."""
    text = f" {' '.join(symbols)} "
    if sum(symbol[0] not in "()" for symbol in symbols) != num_words:
        return False
    for symbol in set(symbols):
        if symbol[0] not in "()":
            text = text.replace(f" {symbol} ", " . ").replace(f" {symbol} ", " . ")
    labels = {symbol[1:] for symbol in symbols if symbol[0] == "("}
    # What was found is "." if it is a word, and "!" if it is a constituent.
    for _ in symbols:
        text = text.replace(" . . ", " . ").replace(" ! . ", " . ")
        text = text.replace(" . ! ", " . ").replace(" ! ! ", " . ")
        for label in labels:
            text = text.replace(f" ({label} . ){label} ", " ! ")
            text = text.replace(f" ({label} ! ){label} ", " ! ")
    return text == " ! "


SYMBOLS = ["(S", ")S", "(NP", ")NP", "(-X", ")-X", "NN", "-LRB-", ".", "XX", "<unk>"]


def check_is_a_tree(symbols: list[str], words: list[str]) -> bool:
    """Build a tree and check what holds for each; return whether it is as asked for."""
    tree = linearization.build_tree(symbols, words)
    assert words_of(tree) == words
    assert list(treebank.parse([str(tree)], name="tree")) == [tree]
    assert treebank.clean(tree) == tree
    result = linearization.linearize(tree)
    assert is_legal(result, len(words))
    assert linearization.build_tree(result, words) == tree
    return result == symbols


@hypothesis.given(
    symbols=strategies.lists(strategies.sampled_from(SYMBOLS), max_size=40),
    words=strategies.lists(strategies.sampled_from(tuple_trees.WORDS), min_size=1),
)
def test_any_symbols_become_a_tree_over_the_words(
    symbols: list[str], words: list[str]
) -> None:
    is_kept = check_is_a_tree(symbols, words)
    assert is_kept == is_legal(symbols, len(words))


def test_all_short_symbols_become_trees_over_the_words() -> None:
    num_kept = 0
    for length in range(6):
        for symbols in itertools.product(
            ["(S", ")S", "(NP", ")NP", "NN"], repeat=length
        ):
            for words in (["a"], ["a", "b"]):
                is_kept = check_is_a_tree(list(symbols), words)
                assert is_kept == is_legal(list(symbols), len(words))
                num_kept += is_kept
    # One label around one word or two, and two around one word.
    assert num_kept == 2 + 2 + 2 * 2


def test_long_symbols_become_trees_over_the_words() -> None:
    generator = random.Random(1)
    for _ in range(1_000):
        symbols = generator.choices(SYMBOLS, k=generator.randrange(100))
        check_is_a_tree(symbols, list("abcdefghi" * generator.randint(1, 5)))


def test_depth_has_no_limit() -> None:
    depth = 20_000
    symbols = ["(A"] * depth + ["B"] + [")A"] * depth
    tree = linearization.build_tree(symbols, ["c"])
    assert linearization.linearize(tree) == symbols
    assert linearization.build_tree(symbols[: depth + 1], ["c"]) == tree


SHARED = pathlib.Path(__file__).parents[3] / "shared/data"
GUM, CRAFT = SHARED / "gum_trees", SHARED / "craft_trees"


def check_round_trip(path: pathlib.Path) -> int:
    """Check that the symbols of each tree are those of the tree that they build."""
    count = 0
    for tree in map(treebank.clean, treebank.read(path)):
        assert tree, "a tree without words"
        count += 1
        words = words_of(tree)
        for terminals in linearization.TERMINALS:
            symbols = linearization.linearize(tree, terminals)
            built = linearization.build_tree(symbols, words)
            assert linearization.linearize(built, terminals) == symbols
            assert words_of(built) == words
    return count


@pytest.mark.shared
@pytest.mark.skipif(not GUM.is_dir(), reason=f"needs the trees of GUM, {GUM}")
def test_real_trees_come_back() -> None:
    assert check_round_trip(GUM / "dev.trees.txt") == 1575


@pytest.mark.slow
@pytest.mark.shared
@pytest.mark.skipif(not CRAFT.is_dir(), reason=f"needs the trees of CRAFT, {CRAFT}")
def test_all_trees_at_hand_come_back() -> None:
    paths = [GUM / "train.trees.txt", *sorted(CRAFT.glob("*/*.tree"))]
    assert len(paths) == 1 + 60 + 7
    assert sum(map(check_round_trip, paths)) == 10_224 + 18_951 + 2_780
