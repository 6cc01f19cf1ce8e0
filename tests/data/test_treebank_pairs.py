"""Trees of files as pairs, their record, and what two splits may not share."""

import dataclasses

import pytest

from tests import settings
from vaswani_jax.data import sources, treebank_pairs

TREEBANK = {
    "data.source": "treebank",
    "data.train_trees": "02-03",
    "data.valid_trees": "22",
    "data.test_trees": "",
    "data.vocabulary_sharing": "separate",
    "training.best_metric": "f1",
}
TREES = {
    "02/a.mrg": "( (S (NP-SBJ (NN Bread)) (VP (VBZ is) (NP (-NONE- *)))) )",
    "03/b.mrg": "(S (-NONE- *))\n(S (NP (DT The)\n (NN man)) (VP (VBZ sleeps)))",
    "22/c.mrg": "(ROOT (UH Oh))",
    "silver/d.trees": "(S (NP (PRP I)) (VP (VBP am)))",
}


@pytest.fixture
def data(tmp_path):
    for name, text in TREES.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text + "\n", encoding="utf-8")
    overrides = TREEBANK | {"data.text_directory": str(tmp_path)}
    return settings.small_settings(**overrides).data


def test_pairs_are_words_and_clean_trees(data):
    assert list(treebank_pairs.read_pairs(data, "train")) == [
        ("Bread is", "(S (NP (NN Bread)) (VP (VBZ is)))"),
        ("The man sleeps", "(S (NP (DT The) (NN man)) (VP (VBZ sleeps)))"),
    ]
    assert list(sources.pairs(data, "valid", seed=1)) == [("Oh", "(S (UH Oh))")]
    assert sources.splits(data) == ["train", "valid"]


def test_gold_trees_are_repeated_and_silver_trees_follow_once(data):
    data = dataclasses.replace(data, silver_trees="silver", gold_repeats=3)
    words = [source for source, _ in treebank_pairs.read_pairs(data, "train")]
    assert words == ["Bread is", "The man sleeps"] * 3 + ["I am"]


def test_the_record_changes_with_a_file_and_not_with_its_place(data, tmp_path):
    record = treebank_pairs.describe_files(data, "train", previous={})
    assert list(record) == ["train_trees:02/a.mrg", "train_trees:03/b.mrg"]
    assert treebank_pairs.describe_files(data, "train", previous=record) == record
    identity = sources.content_identity(record)
    (tmp_path / "03/b.mrg").write_text("(S (UH No))", encoding="utf-8")
    changed = treebank_pairs.describe_files(data, "train", previous=record)
    assert sources.content_identity(changed) != identity


def test_trees_may_lie_elsewhere_but_their_order_counts(data, tmp_path):
    def identity(**changes):
        record = treebank_pairs.describe_files(
            dataclasses.replace(data, **changes), "train", previous={}
        )
        return sources.content_identity(record)

    first = identity(train_trees="02,03")
    assert identity(train_trees="03,02") != first
    (tmp_path / "wsj").mkdir()
    (tmp_path / "02").rename(tmp_path / "wsj/02")
    assert identity(train_trees="wsj/02,03") == first


@pytest.mark.parametrize(
    "tree",
    ["(S (NN a\0b))", "(S (a\0b c))", "(S (a\0b (NN c)))"],
    ids=["word", "tag", "label"],
)
def test_a_nul_in_a_tree_is_named_with_file_and_line(data, tmp_path, tree):
    (tmp_path / "03/b.mrg").write_text(f"(S (UH No))\n{tree}\n", encoding="utf-8")
    with pytest.raises(ValueError) as caught:
        sources.count(data, "train", seed=1)
    assert str(caught.value) == (
        f"{tmp_path / '03/b.mrg'}, line 2: 'a\\x00b' of this tree has a NUL character, "
        "which no word, tag or label can have: remove it"
    )


def test_an_entry_without_trees_is_named(data):
    data = dataclasses.replace(data, valid_trees="24")
    with pytest.raises(FileNotFoundError, match=r"config\.data\.valid_trees.*24"):
        sources.prepare(data)


def test_a_word_of_white_space_is_refused_with_its_tree(data, tmp_path):
    (tmp_path / "22/c.mrg").write_text("(S (UH Oh))(S (NN \xa0))", encoding="utf-8")
    with pytest.raises(ValueError, match=r"c\.mrg, line 1: the word '\\xa0'"):
        list(treebank_pairs.read_pairs(data, "valid"))


@pytest.mark.parametrize("key", ["valid_trees", "silver_trees"])
def test_no_file_may_be_in_two_splits(data, key):
    data = dataclasses.replace(data, **{key: "03/b.mrg"})
    with pytest.raises(ValueError, match=f"config.data.{key} and config.data.train"):
        sources.prepare(data)


def test_trees_in_a_folder_of_any_name_come_from_a_store(
    data, tmp_path, tmp_path_factory, monkeypatch
):
    # Prepared data, which counts once it has its manifest, has a folder of this name.
    (tmp_path / "02").rename(tmp_path / "data")
    mirrors = tmp_path_factory.mktemp("mirrors")
    monkeypatch.setenv("VASWANI_JAX_MIRRORS", str(mirrors))
    stored = dataclasses.replace(
        data, text_directory=f"file://{tmp_path}", train_trees="data"
    )
    [(words, _)] = sources.pairs(stored, "train", seed=1)
    assert words == "Bread is"
