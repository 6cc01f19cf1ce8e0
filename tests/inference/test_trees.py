"""From symbols to one tree over exactly the words of a line."""

import numpy as np
import pytest

from tests import settings, ugly_text
from vaswani_jax.data import treebank
from vaswani_jax.data.tree_symbols import TreeSymbols
from vaswani_jax.data.vocabulary import Vocabulary
from vaswani_jax.data.vocabulary_training import learn_subwords
from vaswani_jax.data.word_subwords import WordSubwords, split_words
from vaswani_jax.inference import trees

TREE = "(S (NP (DT The) (NN man)) (VP (VBZ sleeps)))"
LINE = "The man sleeps"


@pytest.fixture(scope="module")
def vocabulary():
    data = settings.small_settings(**{"data.vocab_size": 30}).data
    words = WordSubwords(learn_subwords([LINE] * 9, data).model)
    symbols = TreeSymbols.learn([TREE], terminals="tag")
    return Vocabulary(words, symbols, is_shared=False)


def ids(vocabulary, line, tree):
    return vocabulary.encode([line])[0], vocabulary.encode([tree], target=True)[0]


def test_symbols_of_a_tree_give_it_back_under_a_top(vocabulary):
    pair = ids(vocabulary, LINE, TREE)
    text = trees.format_tree([pair], line=LINE, vocabulary=vocabulary)
    assert text == f"(TOP {TREE})"


def test_the_pieces_of_a_long_line_stand_side_by_side(vocabulary):
    pieces = [
        ids(vocabulary, "The man", "(NP (DT The) (NN man))"),
        ids(vocabulary, "sleeps", "(VP (VBZ sleeps))"),
    ]
    text = trees.format_tree(pieces, line=LINE, vocabulary=vocabulary)
    assert text == f"(TOP {TREE})"


def test_words_without_an_output_are_kept(vocabulary):
    pair = ids(vocabulary, "The man", "(NP (DT The) (NN man))")
    text = trees.format_tree([pair], line="The man ( sleeps", vocabulary=vocabulary)
    assert text == "(TOP (S (NP (DT The) (NN man)) (S (XX -LRB-) (XX sleeps))))"


@pytest.mark.parametrize(
    ("tree", "is_tree"),
    [
        (TREE, True),
        ("(S (NP (DT The) (NN man) (VBZ sleeps)))", True),
        ("(S (NP (DT The) (NN man)))", False),  # a word is left
        ("(S (NP (DT The) (NN man)) (VP (VBZ sleeps) (NN man)))", False),
    ],
)
def test_symbols_are_a_tree_over_the_words_or_none(vocabulary, tree, is_tree):
    source, symbols = ids(vocabulary, LINE, tree)
    arguments = {"line": LINE, "vocabulary": vocabulary}
    assert trees.are_trees([(source, symbols)], **arguments) == is_tree
    # Without its last closing it is none, whatever its words.
    assert not trees.are_trees([(source, symbols[:-1])], **arguments)


def test_each_piece_of_a_long_line_is_a_tree_or_all_are_not(vocabulary):
    good = ids(vocabulary, "The man", "(NP (DT The) (NN man))")
    bad = ids(vocabulary, "sleeps", "(VP (VBZ sleeps))")[0], []
    arguments = {"line": LINE, "vocabulary": vocabulary}
    assert not trees.are_trees([good, bad], **arguments)
    assert not trees.are_trees([good], **arguments)


def test_any_symbols_of_any_line_are_one_line_with_its_words(vocabulary):
    generator = np.random.default_rng(0)
    for line in [*ugly_text.LINES, "a\0b ( c )"]:
        [source] = vocabulary.encode([line])
        words = split_words(line.replace("\0", " ")) if line.strip() else []
        for num_symbols in (0, 3, 30):
            symbols = generator.integers(vocabulary.target.size, size=num_symbols)
            pair = source, symbols.tolist()
            text = trees.format_tree([pair], line=line, vocabulary=vocabulary)
            assert "\n" not in text
            parsed = list(treebank.parse([text], name="output"))
            assert [leaf.word for tree in parsed for leaf in tree.leaves()] == words
            assert len(parsed) == bool(words)


@pytest.mark.parametrize("line", ["", "  ", "\u3000\u2003", "\0"])
def test_a_line_without_words_is_empty(vocabulary, line):
    assert trees.format_tree([], line=line, vocabulary=vocabulary) == ""


@pytest.mark.parametrize(
    ("line", "target", "message"),
    [
        (LINE, TREE[:-1], r"target, line 7: \(S is not closed"),
        (LINE, "", "line 7: 0 trees for 3 words"),
        (LINE, f"{TREE} {TREE}", "line 7: 2 trees for 3 words"),
        (" ", TREE, "line 7: 1 trees for 0 words"),
        ("The man", TREE, "line 7: the tree has 3 words, the line has 2"),
        (
            "The men sleeps",
            TREE,
            "word 2 of the tree is 'man', that of the line is 'men'",
        ),
    ],
)
def test_a_target_that_is_no_tree_over_the_words_is_refused(line, target, message):
    trees.check_trees([LINE, ""], [f"(TOP {TREE})", ""], first_line=1)
    trees.check_trees(["( a"], ["(S (-LRB- -LRB-) (-NONE- *) (X a))"], first_line=1)
    with pytest.raises(ValueError, match=message):
        trees.check_trees([LINE, line], [TREE, target], first_line=6)
