"""Each rule leaves out the pairs that break it, and no other."""

import dataclasses
import unicodedata
from collections.abc import Callable
from fractions import Fraction

import hypothesis
import hypothesis.strategies as st
import pytest

from tests import settings
from tests.data.unclean_pairs import GOOD, PLANTED, TEXTS, cleaned, data_of
from vaswani_jax.core import config
from vaswani_jax.data import cleaning, cleaning_rules

KEYS = [
    key.removeprefix("data.clean_")
    for key in config.SETTINGS
    if key.startswith("data.clean_")
]


def test_every_rule_has_planted_pairs_and_a_preset_value_to_turn_it_off() -> None:
    assert list(PLANTED) == KEYS == [*cleaning_rules.RULES, "duplicates"]
    assert not cleaning.Cleaner(settings.small_settings().data).is_on


@pytest.mark.parametrize("name", PLANTED)
def test_a_rule_leaves_out_the_pairs_that_break_it(name: str) -> None:
    value, planted = PLANTED[name]
    pairs = [*GOOD, *planted]
    cleaner = cleaned(pairs, data_of(**{name: value}))
    assert cleaner.counts == {name: len(planted)}
    assert list(cleaner.keep(iter(pairs))) == GOOD


def has_category(text: str, *kinds: str) -> bool:
    return any(unicodedata.category(c) in kinds and c != "\t" for c in text)


def share_of(text: str, is_meant: Callable[[str], bool]) -> Fraction:
    characters = [character for character in text if not character.isspace()]
    return Fraction(sum(map(is_meant, characters)), max(1, len(characters)))


def letters(text: str) -> str:
    return "".join(c for c in text if unicodedata.category(c)[0] == "L")


# The rules once more, written otherwise; each of source and target.
ORACLES: dict[str, tuple[object, Callable[[str, str], bool]]] = {
    "empty": (True, lambda *sides: any(not side.split() for side in sides)),
    "control_characters": (
        True,
        lambda *sides: any(has_category(side, "Cc", "Co") for side in sides),
    ),
    "max_characters": (4, lambda *sides: any(side[4:] for side in sides)),
    "equal_sides": (
        True,
        lambda s, t: " ".join(s.lower().split()) == " ".join(t.lower().split()),
    ),
    "max_ratio": (
        1.25,
        lambda s, t: (
            max(
                Fraction(len(a.strip()) + 10, len(b.strip()) + 10)
                for a, b in ((s, t), (t, s))
            )
            > Fraction(5, 4)
        ),
    ),
    "min_letters": (
        0.5,
        lambda *sides: any(
            side.split() and share_of(side, str.isalpha) < Fraction(1, 2)
            for side in sides
        ),
    ),
    "min_script": (
        0.5,
        lambda *sides: any(
            letters(side)
            and share_of(letters(side), lambda c: c < "\u0250") < Fraction(1, 2)
            for side in sides
        ),
    ),
}


@pytest.mark.parametrize("name", ORACLES)
@hypothesis.settings(max_examples=30)
@hypothesis.given(pairs=st.lists(st.tuples(TEXTS, TEXTS), max_size=8))
def test_a_rule_agrees_with_its_definition(
    name: str, pairs: list[tuple[str, str]]
) -> None:
    value, is_named = ORACLES[name]
    cleaner = cleaned(pairs, data_of(**{name: value}))
    expected = [pair for pair in pairs if not is_named(*pair)]
    assert list(cleaner.keep(iter(pairs))) == expected


@pytest.mark.parametrize("name", ["min_script", "language_odds", "equal_sides"])
def test_the_tag_of_a_target_language_decides_its_locale_and_is_no_text(
    name: str,
) -> None:
    values = settings.TWO_TARGETS | {f"data.clean_{name}": PLANTED[name][0]}
    values |= {"data.target_locale": "de,ru", "data.user_symbols": "<2de>,<2ru>"}
    data = settings.small_settings(**values).data
    german, russian = "Zwei Hunde spielen auf der Wiese.", "Две собаки играют на траве."
    english = GOOD[0][0]
    pairs = [(f"<2de> {english}", german), (f"<2ru> {english}", russian)]
    swapped = [(f"<2ru> {english}", german), (f"<2de> {english}", russian)]
    swapped = [] if name == "equal_sides" else swapped
    equal = [(f"<2de> {english}", english)] if name != "min_script" else []
    cleaner = cleaned(pairs + swapped + equal, data)
    assert list(cleaner.keep(iter(pairs + swapped + equal))) == pairs


def test_a_line_of_a_language_that_the_identifier_does_not_know_stays() -> None:
    data = settings.small_settings(**{"data.clean_language_odds": 100.0}).data
    text = "Zwei Hunde spielen auf der Wiese."
    pairs = [(f"{code} {text}", text) for code in (">>tlh<<", ">>fra<<", ">>Nein<<")]
    english = dataclasses.replace(data, source_locale="de", target_locale="en")
    assert list(cleaned(pairs, english).keep(iter(pairs))) == pairs[:1]


def test_a_language_that_the_identifier_does_not_know_is_refused() -> None:
    data = settings.small_settings(
        **{"data.clean_language_odds": 100.0, "data.target_locale": "tlh"}
    ).data
    with pytest.raises(ValueError, match=r"knows, got 'tlh' in config.data.target_loc"):
        cleaning.Cleaner(data)


def test_the_language_code_of_a_line_is_no_text() -> None:
    text = GOOD[0][0]
    pairs = [(f">>fra<< {text}", text), (f">>Nein<< {text}", text)]
    cleaner = cleaned(pairs, data_of(equal_sides=True))
    assert list(cleaner.keep(iter(pairs))) == pairs[1:]
