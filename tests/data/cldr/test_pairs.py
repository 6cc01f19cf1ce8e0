"""Pairs in splits: how many, which may be held out, what is refused."""

import json
import re

import pytest

from tests import interpreter
from tests.data.cldr import small_pairs
from vaswani_jax.data.cldr import grammar, pairs

pytest.importorskip("babel")
WORD = re.compile(r"[A-Za-zÀ-ž]+|[0-9]+")


def test_splits_have_the_sizes_that_were_asked_for(german):
    sizes = {split: len(pairs) for split, pairs in german.items()}
    assert sizes == {"train": 30_000, "valid": 500, "test": 1000}


def test_every_source_line_occurs_once(german):
    sources = [source for source, _ in small_pairs.all_pairs(german)]
    assert len(set(sources)) == len(sources) == 31_500


def test_held_out_targets_occur_in_no_other_split(german):
    targets = {split: {target for _, target in german[split]} for split in german}
    assert not targets["test"] & (targets["train"] | targets["valid"])
    assert not targets["valid"] & targets["train"]
    assert len(targets["test"]) == len(german["test"])


def assert_held_out_words_occur_in_training(splits):
    for side in (0, 1):
        words = {word for pair in splits["train"] for word in WORD.findall(pair[side])}
        for pair in splits["valid"] + splits["test"]:
            assert set(WORD.findall(pair[side])) <= words


def test_held_out_words_all_occur_in_training(german):
    assert_held_out_words_occur_in_training(german)


@pytest.mark.usefixtures("few_phrases")
def test_held_out_words_all_occur_in_little_training_text():
    splits = small_pairs.generate(num_train=600, num_valid=20)
    assert_held_out_words_occur_in_training(splits)


def test_held_out_names_of_two_words_occur_in_training(german):
    train = "\n".join(source for source, _ in german["train"])
    held_out = "\n".join(source for source, _ in german["test"])
    for name in ("United Kingdom", "United States", "South Africa", "South Korea"):
        assert name in held_out
        assert name in train


@pytest.mark.usefixtures("few_phrases")
def test_another_seed_makes_other_pairs():
    first, second = (
        small_pairs.generate(num_train=300, num_valid=0, num_test=0, seed=seed)
        for seed in (3, 4)
    )
    assert len(set(first["train"]) & set(second["train"])) < 150


@pytest.mark.usefixtures("months_only")
def test_a_line_drawn_with_another_translation_is_replaced(monkeypatch):
    template = grammar.Template(1.0, (), "", "")
    draws = [
        grammar.Line(source, target, (), template)
        for source, target in (("a; b", "A; B"), ("a; b", "?"), ("b", "B"), ("c", "C"))
    ]
    monkeypatch.setattr(grammar.Grammar, "draw", lambda self, rng: iter(draws))
    splits = small_pairs.generate(num_train=2, num_valid=0, num_test=0)
    assert splits["train"] == [("b", "B"), ("c", "C")]


def test_processes_with_different_hashes_make_the_same_pairs():
    program = """
import json
from tests.data.cldr import small_pairs
small_pairs.phrases.all_phrases = small_pairs.every_seventh_phrase
print(json.dumps(small_pairs.generate("en", "fr", num_train=500, num_valid=20)))
"""
    outputs = [
        interpreter.output_of(program, PYTHONHASHSEED=hash_seed, LANG=language)
        for hash_seed, language in (("1", "C"), ("2", "de_DE.UTF-8"))
    ]
    assert len(json.loads(outputs[0])["train"]) == 500
    assert outputs[0] == outputs[1]


def test_importing_loads_neither_babel_nor_jax():
    program = """
import sys
from vaswani_jax.data.cldr import pairs
assert not {"babel", "jax"} & set(sys.modules)
"""
    interpreter.output_of(program)


@pytest.mark.parametrize("locale", ["klingon", "de-DE", "", "de_XX", "root"])
@pytest.mark.parametrize("key", ["source_locale", "target_locale"])
def test_an_unknown_locale_is_refused_by_name(key, locale):
    locales = {"source_locale": "en", "target_locale": "de", key: locale}
    with pytest.raises(ValueError, match=rf"data\.{key} must .* got '{locale}'$"):
        small_pairs.generate(**locales)


@pytest.mark.usefixtures("months_only")
@pytest.mark.parametrize("locale", ["en", "en_US"])
def test_locales_that_write_alike_are_refused(locale):
    with pytest.raises(ValueError, match=rf"source_locale .* got 'en' and '{locale}'"):
        small_pairs.generate("en", locale)


@pytest.mark.usefixtures("months_only")
def test_more_pairs_than_the_locales_make_are_refused_with_both_counts():
    with pytest.raises(ValueError, match=r"at most the (\d+) pairs.* got 1000000000"):
        small_pairs.generate(num_train=10**15, num_valid=0, num_test=0)


@pytest.mark.usefixtures("months_only")
def test_pairs_that_run_out_are_refused_with_both_counts(monkeypatch):
    monkeypatch.setattr(grammar, "LISTED", ((1.0, "month", "standard"),))
    # Two months in 12 x 11 ways, and three in 12 x 11 x 10.
    train = small_pairs.generate(num_train=1452, num_valid=0, num_test=0)["train"]
    assert len(set(train)) == 12 * 11 + 12 * 11 * 10
    with pytest.raises(ValueError, match=r"at most the 1452 pairs .* got 1453"):
        small_pairs.generate(num_train=1453, num_valid=0, num_test=0)


@pytest.mark.usefixtures("few_phrases")
def test_too_little_training_text_for_the_held_out_is_refused():
    with pytest.raises(
        ValueError, match=r"num_train 3 prepares for only \d+ of the 30"
    ):
        small_pairs.generate(num_train=3, num_valid=10, num_test=20)


def test_the_version_names_babel_and_the_cldr():
    assert re.fullmatch(r"babel [\d.]+, CLDR \d+, recipe \d+", pairs.cldr_version())
