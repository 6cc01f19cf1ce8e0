"""Warnings of trees while they are prepared, and of the lengths that they need."""

import logging

import numpy as np
import pytest

from tests import settings
from vaswani_jax.data import prepared, sources, token_files, treebank_checks

TREEBANK = {
    "data.source": "treebank",
    "data.train_trees": "02-03",
    "data.valid_trees": "22",
    "data.test_trees": "",
    "data.vocabulary_sharing": "separate",
    "data.vocab_size": 20,
    "training.best_metric": "f1",
}
TREES = {
    "02/a.mrg": "( (S (NP-SBJ (NN Bread)) (VP (VBZ is) (NP (-NONE- *)))) )",
    "03/b.mrg": "(S (-NONE- *))\n(S (NP (DT The)\n (NN man)) (VP (VBZ sleeps)))",
    "22/c.mrg": "(ROOT (UH Oh))",
    "words/d.trees": "(S (NP (XX I)) (VP (XX am)))",
}


@pytest.fixture
def treebank(tmp_path):
    for name, text in TREES.items():
        path = tmp_path / name
        path.parent.mkdir()
        path.write_text(f"{text}\n", encoding="utf-8")
    return tmp_path


def make_settings(treebank, **overrides):
    overrides = TREEBANK | {"data.text_directory": str(treebank)} | overrides
    return settings.small_settings(**overrides)


def test_pairs_are_counted_and_trees_without_a_word_are_logged(treebank, caplog):
    caplog.set_level(logging.INFO)
    data = make_settings(treebank, **{"data.gold_repeats": 3}).data
    assert sources.count(data, "train", seed=1) == 2 * 3
    assert (
        "config.data.train_trees: 1 of 3 trees have no word and are left out"
        in caplog.text
    )
    assert sources.count(data, "valid", seed=1) == 1
    assert "valid_trees: " not in caplog.text


def test_sections_with_another_number_of_trees_bring_a_warning(treebank, caplog):
    data = make_settings(treebank).data
    sources.count(data, "valid", seed=1)
    [record] = caplog.records
    assert record.levelname == "WARNING"
    assert (
        record.message
        == "config.data.valid_trees=22: section 22 has 1,700 trees in LDC99T42, here 1"
    )


@pytest.mark.parametrize(
    ("terminals", "key", "warns"),
    [
        ("tag", "train_trees", True),
        ("tag", "silver_trees", True),
        ("word", "train_trees", False),
    ],
)
def test_trees_without_tags_bring_a_warning(treebank, caplog, terminals, key, warns):
    overrides = {"data.train_trees": "02", "data.tree_terminals": terminals}
    data = make_settings(treebank, **overrides | {f"data.{key}": "words"}).data
    sources.count(data, "train", seed=1)
    expected = f"all tags of config.data.{key} are XX: set "
    assert (expected in caplog.text) == warns


def token_pairs(directory, source_lengths, target_lengths):
    sides = []
    for side, lengths in (("source", source_lengths), ("target", target_lengths)):
        with token_files.open_writer(directory / side, vocab_size=9) as writer:
            writer.write([[4] * int(length) for length in lengths])
        sides.append(token_files.TokenFile.open(directory / side))
    return token_files.TokenPairs(*sides)


def test_outputs_that_many_trees_exceed_bring_a_warning(tmp_path, caplog):
    # Of 1,000 trees two have 12 symbols and 3 subwords, others 6: 12 + 1 - (3 + 1).
    symbols = np.full(1000, 6)
    symbols[[3, 700]] = 12
    trees = token_pairs(tmp_path, np.full(1000, 3), symbols)
    counts = {"kept": 1000, "empty": 0, "too_long": 0}
    few, enough = (
        settings.small_settings(**{"search.max_extra_tokens": extra})
        for extra in (8, 9)
    )
    facts = {"counts": counts, "vocabulary": settings.letters_vocabulary()}
    treebank_checks.warn_of_lengths(trees, settings=enough, **facts)
    assert not caplog.records
    treebank_checks.warn_of_lengths(trees, settings=few, **facts)
    assert (
        "config.search.max_extra_tokens=8 is too small: 99.9 % of the training trees "
        "need up to 9; increase it" in caplog.text
    )


@pytest.mark.parametrize("dropout", [0.0, 0.9])
def test_the_warning_measures_sources_without_dropout(treebank, caplog, dropout):
    """Training reads a source in more subwords than a search."""
    (treebank / "04.trees").write_text("(S" + " (NP (NN bread))" * 4 + ")\n")
    overrides = {
        "data.train_trees": "04.trees",
        # Four special ids, six characters and four merges: a word is two subwords.
        "data.vocab_size": 14,
        "data.max_length": 30,
        "data.subword_model": "bpe",
        "data.subword_dropout": dropout,
        "data.subword_samples": 3 if dropout else 1,
        "search.max_extra_tokens": 5,
    }
    small = make_settings(treebank, **overrides)
    data = prepared.open_or_prepare(small, treebank / "prepared", rebuild=False)
    pairs = data.token_pairs("train")
    assert (pairs.source.lengths() > 8).all() == bool(dropout)
    caplog.clear()
    treebank_checks.warn_of_lengths(
        pairs,
        settings=small,
        counts=data.counts["train"],
        vocabulary=data.vocabulary,
    )
    # Each word has a tag and two brackets, the sentence two more.
    assert "need up to 6; increase it" in caplog.text


@pytest.mark.parametrize(("too_long", "warns"), [(5, False), (6, True)])
def test_a_length_that_leaves_many_trees_out_brings_a_warning(
    tmp_path, caplog, too_long, warns
):
    counts = {"kept": 100 - too_long, "empty": 0, "too_long": too_long}
    treebank_checks.warn_of_lengths(
        token_pairs(tmp_path, [3], [5]),
        settings=settings.small_settings(),
        counts=counts,
        vocabulary=settings.letters_vocabulary(),
    )
    expected = "config.data.max_length=16 leaves out 6.0 % of the training trees"
    assert (expected in caplog.text) == warns


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"data.tree_terminals": "word"}, "data.tree_terminals is 'word', was 'tag'"),
        ({"data.gold_repeats": 2}, "data.gold_repeats is 2, was 1"),
        ({"data.train_trees": "03"}, "the text of 'train' has changed"),
        ({"data.valid_trees": ""}, "data.valid_trees is empty, but a validation set"),
    ],
)
def test_prepared_trees_of_other_settings_are_refused(treebank, overrides, message):
    directory = treebank / "prepared"
    prepared.open_or_prepare(make_settings(treebank), directory, rebuild=False)
    prepared.open_or_prepare(make_settings(treebank), directory, rebuild=False)
    with pytest.raises(ValueError, match=message):
        prepared.open_or_prepare(
            make_settings(treebank, **overrides), directory, rebuild=False
        )


def test_prepared_trees_of_a_file_that_changed_are_refused(treebank):
    directory = treebank / "prepared"
    prepared.open_or_prepare(make_settings(treebank), directory, rebuild=False)
    (treebank / "03/b.mrg").write_text("(S (UH No))", encoding="utf-8")
    with pytest.raises(ValueError, match="the text of 'train' has changed"):
        prepared.open_or_prepare(make_settings(treebank), directory, rebuild=False)
