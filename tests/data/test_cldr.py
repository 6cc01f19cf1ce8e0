"""The embedded corpus: localised text of the Unicode CLDR."""

import datetime
import json
import os
import re
import subprocess
import sys

import pytest

from vaswani_jax.data import cldr, cldr_lines, cldr_phrases

pytest.importorskip("babel")

# Written from memory, not from the CLDR.
ENGLISH_MONTHS = """
    January February March April May June July August September October November
    December
""".split()
ENGLISH_DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
GERMAN_MONTHS = """
    Januar Februar März April Mai Juni Juli August September Oktober November Dezember
""".split()
GERMAN_DAYS = "Montag Dienstag Mittwoch Donnerstag Freitag Samstag Sonntag".split()
FRENCH_MONTHS = """
    janvier février mars avril mai juin juillet août septembre octobre novembre
    décembre
""".split()
FRENCH_DAYS = "lundi mardi mercredi jeudi vendredi samedi dimanche".split()
GERMAN_NAMES = {
    "Germany": "Deutschland",
    "Austria": "Österreich",
    "Switzerland": "Schweiz",
    "France": "Frankreich",
    "Italy": "Italien",
    "United Kingdom": "Vereinigtes Königreich",
    "South Africa": "Südafrika",
    "German": "Deutsch",
    "Greek": "Griechisch",
    "Japanese": "Japanisch",
}
FRENCH_NAMES = {
    "Germany": "Allemagne",
    "Austria": "Autriche",
    "Switzerland": "Suisse",
    "Japan": "Japon",
    "Spain": "Espagne",
    "United Kingdom": "Royaume-Uni",
    "German": "allemand",
    "Greek": "grec",
}


ALL_PHRASES = cldr_phrases.all_phrases
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


def make_pairs(
    source_locale="en",
    target_locale="de",
    *,
    num_train=3000,
    num_valid=100,
    num_test=200,
    seed=3,
):
    return cldr.cldr_pairs(
        source_locale=source_locale,
        target_locale=target_locale,
        num_train=num_train,
        num_valid=num_valid,
        num_test=num_test,
        seed=seed,
    )


@pytest.fixture(scope="module")
def german():
    return make_pairs(num_train=30_000, num_valid=500, num_test=1000)


@pytest.fixture(scope="module")
def french():
    # Japanese first: babel would give French its months.
    make_pairs("ja", "en", num_train=100, num_valid=0, num_test=0)
    return make_pairs(target_locale="fr", num_train=12_000)


def months_only(rng):
    return (phrase for phrase in ALL_PHRASES(rng) if phrase.kind == "month")


def all_pairs(splits):
    return [pair for pairs in splits.values() for pair in pairs]


def full_dates(splits):
    """Lines that are a date with its weekday, and what was written for that date."""
    pattern = re.compile(rf"({'|'.join(ENGLISH_DAYS)}), (\w+) (\d+), (\d+)")
    for source, target in all_pairs(splits):
        if match := pattern.fullmatch(source):
            weekday, month, day, year = match.groups()
            date = datetime.date(int(year), ENGLISH_MONTHS.index(month) + 1, int(day))
            assert ENGLISH_DAYS[date.weekday()] == weekday
            yield date, target


def names(splits):
    """What stands alone or before the first colon, and its translation."""
    return {
        source.split(": ")[0]: target.split(": ")[0]
        for source, target in all_pairs(splits)
        if source.count(": ") == target.count(": ")
    }


def test_german_dates_are_as_a_german_writes_them(german):
    dates = list(full_dates(german))
    assert len(dates) > 50
    for date, target in dates:
        weekday, month = GERMAN_DAYS[date.weekday()], GERMAN_MONTHS[date.month - 1]
        assert target == f"{weekday}, {date.day}. {month} {date.year}"


def test_french_dates_are_as_a_frenchman_writes_them(french):
    dates = list(full_dates(french))
    assert len(dates) > 50
    for date, target in dates:
        weekday, month = FRENCH_DAYS[date.weekday()], FRENCH_MONTHS[date.month - 1]
        # Babel has no ordinal for the first of the month, "1er".
        assert target == f"{weekday} {date.day} {month} {date.year}"


def test_names_are_those_one_learns_at_school(german, french):
    for splits, translations, months in (
        (german, GERMAN_NAMES, GERMAN_MONTHS),
        (french, FRENCH_NAMES, FRENCH_MONTHS),
    ):
        found = names(splits)
        for source, target in translations.items():
            assert found[source] == target
        for source, target in zip(ENGLISH_MONTHS, months, strict=True):
            assert found[source] == target


def test_spans_of_time_take_the_german_dative(german):
    units = {"day": "Tag", "year": "Jahr", "month": "Monat", "hour": "Stunde"}
    checked = 0
    for source, target in all_pairs(german):
        if match := re.fullmatch(r"in (\d+) (day|year|month|hour)s", source):
            count, unit = match.groups()
            ending = "n" if unit == "hour" else "en"
            assert target == f"in {count} {units[unit]}{ending}"
            checked += 1
        if match := re.fullmatch(r"(\d+) (day|year|month|hour)s ago", source):
            count, unit = match.groups()
            ending = "n" if unit == "hour" else "en"
            assert target == f"vor {count} {units[unit]}{ending}"
            checked += 1
    assert checked > 50


def test_lists_put_the_comma_where_the_language_wants_it(german, french):
    for splits, last_word in ((german, "und"), (french, "et")):
        found = names(splits)
        checked = 0
        for source, target in all_pairs(splits):
            if match := re.fullmatch(r"(\w+), (\w+), and (\w+)", source):
                listed = [found.get(name, "") for name in match.groups()]
                if all(listed):
                    assert target == f"{listed[0]}, {listed[1]} {last_word} {listed[2]}"
                    checked += 1
        assert checked > 20


def test_numbers_swap_commas_and_points_in_german(german):
    checked = 0
    for source, target in all_pairs(german):
        if match := re.fullmatch(r"€([\d,]+)\.(\d\d)", source):
            whole, cents = match.groups()
            assert target == f"{whole.replace(',', '.')},{cents} €"
            checked += 1
    assert checked > 20


def test_asked_sizes_are_given(german):
    assert [len(german[split]) for split in ("train", "valid", "test")] == [
        30_000,
        500,
        1000,
    ]


def test_every_source_line_occurs_once(german):
    sources = [source for source, _ in all_pairs(german)]
    assert len(set(sources)) == len(sources) == 31_500


def test_held_out_targets_occur_in_no_other_split(german):
    targets = {split: {target for _, target in german[split]} for split in german}
    assert not targets["test"] & (targets["train"] | targets["valid"])
    assert not targets["valid"] & targets["train"]
    assert len(targets["test"]) == len(german["test"])


@pytest.mark.parametrize("num_train", [600, 30_000])
def test_held_out_words_all_occur_in_training(german, num_train):
    splits = german if num_train == 30_000 else make_pairs(num_train=600, num_valid=20)
    for side in (0, 1):
        known = set()
        for pair in splits["train"]:
            known.update(re.findall(r"[A-Za-zÀ-ž]+|[0-9]+", pair[side]))
        for pair in splits["valid"] + splits["test"]:
            assert set(re.findall(r"[A-Za-zÀ-ž]+|[0-9]+", pair[side])) <= known


def test_held_out_names_of_two_words_occur_in_training(german):
    known = "\n".join(source for source, _ in german["train"])
    held_out = "\n".join(source for source, _ in german["test"])
    for name in ("United Kingdom", "United States", "South Africa", "South Korea"):
        assert name in held_out
        assert name in known


def test_most_lines_are_short_and_none_is_long(german):
    lengths = sorted(len(source.split()) for source, _ in german["train"])
    assert lengths[len(lengths) // 5] >= 3
    assert lengths[-1] <= 20


def test_a_source_with_two_translations_is_left_out(monkeypatch):
    def bank(translation):
        return lambda locale: {"en": "bank", "de": translation}[str(locale)]

    def phrases(rng):
        yield from months_only(rng)
        for number, translation in enumerate(("Bank", "Ufer")):
            yield cldr_phrases.Phrase("month", f"bank {number}", bank(translation))

    monkeypatch.setattr(cldr_phrases, "all_phrases", phrases)
    splits = make_pairs(num_train=50, num_valid=0, num_test=0)
    assert not any("bank" in source for source, _ in splits["train"])


def test_a_line_drawn_with_another_translation_is_replaced():
    shape = cldr_lines.Shape(1.0, (), "", "")
    drawn = [
        cldr_lines.Line(source, target, (), shape)
        for source, target in (("a; b", "A; B"), ("a; b", "?"), ("b", "B"), ("c", "C"))
    ]
    lines = cldr._draw_into({}, iter(drawn), num_lines=2)
    assert [line.source for line in lines] == ["b", "c"]


def test_a_day_in_may_keeps_to_one_translation(german):
    """A long and a medium date look alike in English in May, and not in German."""
    may = re.compile(r"May \d+, \d{4}")
    assert not any(may.fullmatch(source) for source, _ in all_pairs(german))
    june = re.compile(r"Jun \d+, \d{4}")
    assert any(june.fullmatch(source) for source, _ in all_pairs(german))


def test_another_seed_makes_other_pairs(german):
    train = make_pairs(num_train=300, num_valid=0, num_test=0, seed=4)["train"]
    assert not set(train) <= set(german["train"])


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
    splits = make_pairs(source_locale, target_locale, num_test=50)
    pairs = all_pairs(splits)
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
        cldr_phrases.list_pattern(2, "unit", locale=arabic)
    pattern = cldr_phrases.list_pattern(2, "standard", locale=arabic)
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
        cldr_phrases._interval(first, last, "yMMMM", locale=persian)


@pytest.mark.parametrize("locale", ["klingon", "de-DE", "", "de_XX", "root"])
@pytest.mark.parametrize("key", ["source_locale", "target_locale"])
def test_an_unknown_locale_is_refused_by_name(key, locale):
    locales = {"source_locale": "en", "target_locale": "de", key: locale}
    with pytest.raises(ValueError, match=rf"data\.{key} must .* got '{locale}'$"):
        make_pairs(**locales)


@pytest.mark.parametrize("same", ["en", "en_US"])
def test_locales_that_write_alike_are_refused(monkeypatch, same):
    monkeypatch.setattr(cldr_phrases, "all_phrases", months_only)
    with pytest.raises(ValueError, match=rf"source_locale .* got 'en' and '{same}'"):
        make_pairs("en", same)


def test_more_pairs_than_the_locales_make_are_refused_with_both_counts():
    with pytest.raises(ValueError, match=r"at most the (\d+) pairs.* got 1000000000"):
        make_pairs(num_train=10**15, num_valid=0, num_test=0)


def test_pairs_that_run_out_are_refused_with_both_counts(monkeypatch):
    monkeypatch.setattr(cldr_phrases, "all_phrases", months_only)
    monkeypatch.setattr(cldr_lines, "LISTED", ((1.0, "month", "standard"),))
    # Two months in 12 x 11 ways, and three in 12 x 11 x 10.
    lines = make_pairs(num_train=1452, num_valid=0, num_test=0)["train"]
    assert len(set(lines)) == 12 * 11 + 12 * 11 * 10
    with pytest.raises(ValueError, match=r"at most the 1452 pairs .* got 1453"):
        make_pairs(num_train=1453, num_valid=0, num_test=0)


def test_too_little_training_text_for_the_held_out_is_refused():
    with pytest.raises(
        ValueError, match=r"num_train 3 prepares for only \d+ of the 30"
    ):
        make_pairs(num_train=3, num_valid=10, num_test=20)


@pytest.mark.parametrize("key", ["num_train", "num_valid", "num_test"])
def test_a_negative_size_is_refused(key):
    with pytest.raises(ValueError, match=rf"data\.{key} must be at least \d, got -1"):
        make_pairs(**{key: -1})


def test_without_babel_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "babel", None)
    for call in (make_pairs, cldr.cldr_version):
        with pytest.raises(ImportError, match=r"pip install .*\[demo\]"):
            call()


def test_the_version_names_babel_and_the_cldr():
    assert re.fullmatch(r"babel [\d.]+, CLDR \d+, recipe \d+", cldr.cldr_version())
