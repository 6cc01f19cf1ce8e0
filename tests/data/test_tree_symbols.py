"""Tree symbols as ids: the order that the search relies on, files, unknown symbols."""

import pytest

from vaswani_jax.core import types
from vaswani_jax.data.tree_symbols import TreeSymbols

TREES = [
    "(S (NP (DT The) (NN man)) (VP (VBZ sleeps)) (. .))",
    "(TOP (S (NP-SBJ (NN Bread)) (VP (VBZ is) (NP (-NONE- *)))))",
]


def learned(terminals="tag"):
    return TreeSymbols.learn(TREES, terminals=terminals)


def test_ids_are_special_ones_then_openings_closings_and_words():
    symbols = learned()
    assert symbols.labels == ("NP", "S", "VP")
    assert symbols.spellings == [
        *("<pad>", "<s>", "</s>", "<unk>"),
        *("(NP", "(S", "(VP", ")NP", ")S", ")VP"),
        *(".", "DT", "NN", "VBZ"),
    ]
    assert types.TreeIds(3, b"").first_word == symbols.subword_id(".")
    assert symbols.size == 14


def test_a_tree_becomes_its_symbols_without_functions_and_traces():
    symbols = learned()
    [ids, nothing] = symbols.encode([TREES[1], ""])
    assert symbols.decode(ids) == "(S (NP NN )NP (VP VBZ )VP )S"
    assert nothing == []


def test_words_alone_have_one_symbol():
    symbols = learned("word")
    assert symbols.word_symbols == ("XX",)
    assert symbols.terminals == "word"
    assert learned().terminals == "tag"
    [ids] = symbols.encode(["(S (NP (JJ odd)))"])
    assert symbols.decode(ids) == "(S (NP XX )NP )S"


def test_symbols_that_training_lacks_are_unknown_and_named():
    symbols = learned()
    tree = "(S (ADVP (RB too)) (VP (VBZ is)))"
    [ids] = symbols.encode([tree])
    assert ids.count(types.UNK_ID) == 3
    assert symbols.unknown_characters(tree, replace_unknown=True) == [
        "(ADVP",
        "RB",
        ")ADVP",
    ]
    assert symbols.unknown_characters(TREES[0], replace_unknown=True) == []


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("(S (NN a)) (S (NN b))", "tree 2: a line has one tree, got 2"),
        ("(S (NN a)", "not closed"),
        ("(S (-NONE- *))", "has no word"),
    ],
)
def test_what_is_no_tree_is_refused(text, reason):
    with pytest.raises(ValueError, match=reason):
        learned().encode([TREES[0], text])


def test_a_file_gives_the_same_symbols_and_a_damaged_one_is_named(tmp_path):
    symbols = learned()
    [(name, content)] = symbols.to_files("target").items()
    path = tmp_path / name
    path.write_bytes(content)
    loaded = TreeSymbols.load(path)
    assert loaded.spellings == symbols.spellings
    assert loaded.fingerprint == symbols.fingerprint != learned("word").fingerprint
    path.write_text('{"labels": 3}', encoding="utf-8")
    with pytest.raises(ValueError, match=f"{name} is damaged"):
        TreeSymbols.load(path)
