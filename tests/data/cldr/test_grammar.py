"""Lines of German and French as their speakers write them."""

import datetime
import re

import pytest

from tests.data.cldr import small_pairs
from vaswani_jax.data.cldr import phrases

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


@pytest.fixture(scope="module")
def french():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(phrases, "all_phrases", small_pairs.months_only)
        # After Japanese, babel would give French its months.
        small_pairs.generate("ja", "en", num_train=100, num_valid=0, num_test=0)
    return small_pairs.generate(target_locale="fr", num_train=12_000)


def full_dates(splits):
    """Lines that are a date with its weekday, and what was written for that date."""
    pattern = re.compile(rf"({'|'.join(ENGLISH_DAYS)}), (\w+) (\d+), (\d+)")
    for source, target in small_pairs.all_pairs(splits):
        if match := pattern.fullmatch(source):
            weekday, month, day, year = match.groups()
            date = datetime.date(int(year), ENGLISH_MONTHS.index(month) + 1, int(day))
            assert ENGLISH_DAYS[date.weekday()] == weekday
            yield date, target


def names(splits):
    """The text that stands alone or before the first colon, and its translation."""
    return {
        source.split(": ")[0]: target.split(": ")[0]
        for source, target in small_pairs.all_pairs(splits)
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


def test_names_are_those_taught_at_school(german, french):
    for splits, translations, months in (
        (german, GERMAN_NAMES, GERMAN_MONTHS),
        (french, FRENCH_NAMES, FRENCH_MONTHS),
    ):
        expected = translations | dict(zip(ENGLISH_MONTHS, months, strict=True))
        assert expected.items() <= names(splits).items()


def test_spans_of_time_take_the_german_dative(german):
    units = {"day": "Tagen", "year": "Jahren", "month": "Monaten", "hour": "Stunden"}
    pattern = re.compile(r"(in )?(\d+) (day|year|month|hour)s( ago)?")
    checked = 0
    for source, target in small_pairs.all_pairs(german):
        match = pattern.fullmatch(source)
        if match and bool(match[1]) != bool(match[4]):
            preposition = "in" if match[1] else "vor"
            assert target == f"{preposition} {match[2]} {units[match[3]]}"
            checked += 1
    assert checked > 50


def test_lists_put_the_comma_where_the_language_wants_it(german, french):
    for splits, last_word in ((german, "und"), (french, "et")):
        translations = names(splits)
        checked = 0
        for source, target in small_pairs.all_pairs(splits):
            if match := re.fullmatch(r"(\w+), (\w+), and (\w+)", source):
                listed = [translations.get(name, "") for name in match.groups()]
                if all(listed):
                    assert target == f"{listed[0]}, {listed[1]} {last_word} {listed[2]}"
                    checked += 1
        assert checked > 20


def test_numbers_swap_commas_and_points_in_german(german):
    checked = 0
    for source, target in small_pairs.all_pairs(german):
        if match := re.fullmatch(r"€([\d,]+)\.(\d\d)", source):
            euros, cents = match.groups()
            assert target == f"{euros.replace(',', '.')},{cents} €"
            checked += 1
    assert checked > 20


def test_most_lines_are_short_and_none_is_long(german):
    lengths = sorted(len(source.split()) for source, _ in german["train"])
    assert lengths[len(lengths) // 5] >= 3
    assert lengths[-1] <= 20


def test_a_day_in_may_keeps_to_one_translation(german):
    """A long and a medium date look alike in English in May, and not in German."""
    may = re.compile(r"May \d+, \d{4}")
    assert not any(may.fullmatch(source) for source, _ in small_pairs.all_pairs(german))
    june = re.compile(r"Jun \d+, \d{4}")
    assert any(june.fullmatch(source) for source, _ in small_pairs.all_pairs(german))


def test_a_source_with_two_translations_is_left_out(monkeypatch):
    def bank(translation):
        return lambda locale: {"en": "bank", "de": translation}[str(locale)]

    def phrases_with_banks(rng):
        yield from small_pairs.months_only(rng)
        for number, translation in enumerate(("Bank", "Ufer")):
            yield phrases.Phrase("month", f"bank {number}", bank(translation))

    monkeypatch.setattr(phrases, "all_phrases", phrases_with_banks)
    splits = small_pairs.generate(num_train=50, num_valid=0, num_test=0)
    assert not any("bank" in source for source, _ in splits["train"])


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


@pytest.mark.usefixtures("few_phrases")
@pytest.mark.parametrize(("source_locale", "target_locale"), LOCALES)
def test_any_two_locales_give_lines_that_a_person_can_type(
    source_locale, target_locale
):
    splits = small_pairs.generate(source_locale, target_locale, num_test=50)
    pairs = small_pairs.all_pairs(splits)
    assert len(pairs) == 3150
    assert len({source for source, _ in pairs}) == len(pairs)
    for line in (line for pair in pairs for line in pair):
        assert line == line.strip() != ""
        assert not re.search(r"[\t\n\r\u00a0\u2009\u200e\u200f\u202f\u061c{}]", line)
    assert sum(source != target for source, target in pairs) > len(pairs) / 2
