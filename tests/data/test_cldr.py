"""Generated pairs of German and French: names, dates, lists, splits."""

import datetime
import re

import pytest

from tests.data import cldr_pairs

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
def german():
    return cldr_pairs.make_pairs(num_train=30_000, num_valid=500, num_test=1000)


@pytest.fixture(scope="module")
def french():
    # Japanese first: babel would give French its months.
    cldr_pairs.make_pairs("ja", "en", num_train=100, num_valid=0, num_test=0)
    return cldr_pairs.make_pairs(target_locale="fr", num_train=12_000)


def full_dates(splits):
    """Lines that are a date with its weekday, and what was written for that date."""
    pattern = re.compile(rf"({'|'.join(ENGLISH_DAYS)}), (\w+) (\d+), (\d+)")
    for source, target in cldr_pairs.all_pairs(splits):
        if match := pattern.fullmatch(source):
            weekday, month, day, year = match.groups()
            date = datetime.date(int(year), ENGLISH_MONTHS.index(month) + 1, int(day))
            assert ENGLISH_DAYS[date.weekday()] == weekday
            yield date, target


def names(splits):
    """What stands alone or before the first colon, and its translation."""
    return {
        source.split(": ")[0]: target.split(": ")[0]
        for source, target in cldr_pairs.all_pairs(splits)
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
    for source, target in cldr_pairs.all_pairs(german):
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
        for source, target in cldr_pairs.all_pairs(splits):
            if match := re.fullmatch(r"(\w+), (\w+), and (\w+)", source):
                listed = [found.get(name, "") for name in match.groups()]
                if all(listed):
                    assert target == f"{listed[0]}, {listed[1]} {last_word} {listed[2]}"
                    checked += 1
        assert checked > 20


def test_numbers_swap_commas_and_points_in_german(german):
    checked = 0
    for source, target in cldr_pairs.all_pairs(german):
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
    sources = [source for source, _ in cldr_pairs.all_pairs(german)]
    assert len(set(sources)) == len(sources) == 31_500


def test_held_out_targets_occur_in_no_other_split(german):
    targets = {split: {target for _, target in german[split]} for split in german}
    assert not targets["test"] & (targets["train"] | targets["valid"])
    assert not targets["valid"] & targets["train"]
    assert len(targets["test"]) == len(german["test"])


@pytest.mark.parametrize("num_train", [600, 30_000])
def test_held_out_words_all_occur_in_training(german, num_train):
    splits = (
        german
        if num_train == 30_000
        else cldr_pairs.make_pairs(num_train=600, num_valid=20)
    )
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


def test_a_day_in_may_keeps_to_one_translation(german):
    """A long and a medium date look alike in English in May, and not in German."""
    may = re.compile(r"May \d+, \d{4}")
    assert not any(may.fullmatch(source) for source, _ in cldr_pairs.all_pairs(german))
    june = re.compile(r"Jun \d+, \d{4}")
    assert any(june.fullmatch(source) for source, _ in cldr_pairs.all_pairs(german))


def test_another_seed_makes_other_pairs(german):
    train = cldr_pairs.make_pairs(num_train=300, num_valid=0, num_test=0, seed=4)[
        "train"
    ]
    assert not set(train) <= set(german["train"])
