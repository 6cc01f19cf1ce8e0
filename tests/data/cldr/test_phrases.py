"""Phrases that babel would write wrongly in some locale."""

import datetime
import random

import pytest

from vaswani_jax.data.cldr import phrases

babel = pytest.importorskip("babel")


def test_arabic_lists_do_not_say_the_last_thing_twice():
    from babel import lists

    arabic = babel.Locale.parse("ar")
    # What babel does where the CLDR inherits the pattern for two.
    assert lists.format_list(["A", "B"], "unit", arabic).count("B") == 2
    with pytest.raises(LookupError, match="ar has no unit list of 2"):
        phrases.list_pattern(2, "unit", locale=arabic)
    pattern = phrases.list_pattern(2, "standard", locale=arabic)
    assert pattern.format("A", "B") == "A وB"


def test_intervals_that_babel_cannot_write_are_left_out():
    from babel import dates

    persian = babel.Locale.parse("fa")
    first, last = datetime.date(1957, 7, 1), datetime.date(1957, 12, 1)
    # Babel puts July into both ends of the Persian pattern.
    july, december = (persian.months["format"]["wide"][month] for month in (7, 12))
    assert july in dates.format_interval(first, last, "yMMMM", locale=persian)
    assert december not in dates.format_interval(first, last, "yMMMM", locale=persian)
    intervals = [
        phrase
        for phrase in phrases.all_phrases(random.Random(1))
        if phrase.kind == "interval" and phrase.code == "yMMMM"
    ]
    assert len(intervals) > 100
    for phrase in intervals:
        with pytest.raises(LookupError, match="yMMMM"):
            phrase.write(locale=persian)
