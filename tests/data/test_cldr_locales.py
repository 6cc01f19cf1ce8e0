"""Generated pairs of any locales: what is left out, what is refused."""

import datetime
import json
import os
import re
import subprocess
import sys

import pytest

from tests.data import cldr_pairs
from vaswani_jax.data.cldr import (
    locale_lines,
    locale_phrases,
    phrase_pairs,
)

# Right to left, without spaces, with many plurals, with few words in the CLDR.
LOCALES = [
    ("fr", "pt_BR"),
    ("en", "zh_Hans"),
    ("ja", "ko"),
    ("ar", "en"),
    ("he", "fa"),
    ("ru", "pl"),
    ("hi", "th"),
    ("en", "vai"),
]


def test_a_source_with_two_translations_is_left_out(monkeypatch):
    def bank(translation):
        return lambda locale: {"en": "bank", "de": translation}[str(locale)]

    def phrases(rng):
        yield from cldr_pairs.months_only(rng)
        for number, translation in enumerate(("Bank", "Ufer")):
            yield locale_phrases.Phrase("month", f"bank {number}", bank(translation))

    monkeypatch.setattr(locale_phrases, "all_phrases", phrases)
    splits = cldr_pairs.make_pairs(num_train=50, num_valid=0, num_test=0)
    assert not any("bank" in source for source, _ in splits["train"])


def test_a_line_drawn_with_another_translation_is_replaced():
    shape = locale_lines.Shape(1.0, (), "", "")
    drawn = [
        locale_lines.Line(source, target, (), shape)
        for source, target in (("a; b", "A; B"), ("a; b", "?"), ("b", "B"), ("c", "C"))
    ]
    lines = phrase_pairs._draw_into({}, iter(drawn), num_lines=2)
    assert [line.source for line in lines] == ["b", "c"]


def test_processes_with_different_hashes_make_the_same_pairs():
    program = """
import json
from vaswani_jax.data import cldr
sizes = {"num_train": 500, "num_valid": 20, "num_test": 30}
pairs = cldr.cldr_pairs(source_locale="en", target_locale="fr", seed=7, **sizes)
print(json.dumps(pairs))
"""
    outputs = [
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": hash_seed, "LANG": language},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for hash_seed, language in (("1", "C"), ("2", "de_DE.UTF-8"))
    ]
    assert len(json.loads(outputs[0])["train"]) == 500
    assert outputs[0] == outputs[1]


def test_importing_loads_neither_babel_nor_jax():
    program = """
import sys
from vaswani_jax.data import cldr
assert not {"babel", "jax"} & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.parametrize(("source_locale", "target_locale"), LOCALES)
def test_any_two_locales_give_lines_that_a_person_can_type(
    source_locale, target_locale
):
    splits = cldr_pairs.make_pairs(source_locale, target_locale, num_test=50)
    pairs = cldr_pairs.all_pairs(splits)
    assert len(pairs) == 3150
    assert len({source for source, _ in pairs}) == len(pairs)
    for line in (line for pair in pairs for line in pair):
        assert line == line.strip() != ""
        assert not re.search(r"[\t\n\r\u00a0\u2009\u200e\u200f\u202f\u061c{}]", line)
    assert sum(source != target for source, target in pairs) > len(pairs) / 2


def test_arabic_lists_do_not_say_the_last_thing_twice():
    from babel import Locale, lists

    arabic = Locale.parse("ar")
    # What babel does where the CLDR inherits the pattern for two.
    assert lists.format_list(["A", "B"], "unit", arabic).count("B") == 2
    with pytest.raises(LookupError, match="ar has no unit list of 2"):
        locale_phrases.list_pattern(2, "unit", locale=arabic)
    pattern = locale_phrases.list_pattern(2, "standard", locale=arabic)
    assert pattern.format("A", "B") == "A وB"


def test_intervals_that_babel_cannot_write_are_left_out():
    from babel import Locale, dates

    persian = Locale.parse("fa")
    first, last = datetime.date(1957, 7, 1), datetime.date(1957, 12, 1)
    # Babel puts July into both ends of the Persian pattern.
    july, december = (persian.months["format"]["wide"][month] for month in (7, 12))
    assert july in dates.format_interval(first, last, "yMMMM", locale=persian)
    assert december not in dates.format_interval(first, last, "yMMMM", locale=persian)
    with pytest.raises(LookupError, match="yMMMM"):
        locale_phrases._interval(first, last, "yMMMM", locale=persian)


@pytest.mark.parametrize("locale", ["klingon", "de-DE", "", "de_XX", "root"])
@pytest.mark.parametrize("key", ["source_locale", "target_locale"])
def test_an_unknown_locale_is_refused_by_name(key, locale):
    locales = {"source_locale": "en", "target_locale": "de", key: locale}
    with pytest.raises(ValueError, match=rf"data\.{key} must .* got '{locale}'$"):
        cldr_pairs.make_pairs(**locales)


@pytest.mark.parametrize("same", ["en", "en_US"])
def test_locales_that_write_alike_are_refused(monkeypatch, same):
    monkeypatch.setattr(locale_phrases, "all_phrases", cldr_pairs.months_only)
    with pytest.raises(ValueError, match=rf"source_locale .* got 'en' and '{same}'"):
        cldr_pairs.make_pairs("en", same)


def test_more_pairs_than_the_locales_make_are_refused_with_both_counts():
    with pytest.raises(ValueError, match=r"at most the (\d+) pairs.* got 1000000000"):
        cldr_pairs.make_pairs(num_train=10**15, num_valid=0, num_test=0)


def test_pairs_that_run_out_are_refused_with_both_counts(monkeypatch):
    monkeypatch.setattr(locale_phrases, "all_phrases", cldr_pairs.months_only)
    monkeypatch.setattr(locale_lines, "LISTED", ((1.0, "month", "standard"),))
    # Two months in 12 x 11 ways, and three in 12 x 11 x 10.
    lines = cldr_pairs.make_pairs(num_train=1452, num_valid=0, num_test=0)["train"]
    assert len(set(lines)) == 12 * 11 + 12 * 11 * 10
    with pytest.raises(ValueError, match=r"at most the 1452 pairs .* got 1453"):
        cldr_pairs.make_pairs(num_train=1453, num_valid=0, num_test=0)


def test_too_little_training_text_for_the_held_out_is_refused():
    with pytest.raises(
        ValueError, match=r"num_train 3 prepares for only \d+ of the 30"
    ):
        cldr_pairs.make_pairs(num_train=3, num_valid=10, num_test=20)


@pytest.mark.parametrize("key", ["num_train", "num_valid", "num_test"])
def test_a_negative_size_is_refused(key):
    with pytest.raises(ValueError, match=rf"data\.{key} must be at least \d, got -1"):
        cldr_pairs.make_pairs(**{key: -1})


def test_without_babel_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "babel", None)
    for call in (cldr_pairs.make_pairs, phrase_pairs.cldr_version):
        with pytest.raises(ImportError, match=r"pip install .*\[demo\]"):
            call()


def test_the_version_names_babel_and_the_cldr():
    assert re.fullmatch(
        r"babel [\d.]+, CLDR \d+, recipe \d+", phrase_pairs.cldr_version()
    )
