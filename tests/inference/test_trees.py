"""From symbols to one tree over exactly the words of a line."""

import pytest

from tests import settings
from vaswani_jax.data.tree_symbols import TreeSymbols
from vaswani_jax.data.vocabulary import Vocabulary
from vaswani_jax.data.vocabulary_training import learn_subwords
from vaswani_jax.data.word_subwords import WordSubwords
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


@pytest.mark.parametrize("line", ["", "  "])
def test_a_line_without_words_is_empty(vocabulary, line):
    assert trees.format_tree([], line=line, vocabulary=vocabulary) == ""
