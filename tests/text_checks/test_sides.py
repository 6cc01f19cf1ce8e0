"""Other scripts and swapped sides."""

import pytest

from tests.text_checks import texts
from vaswani_jax.text_checks import sides
from vaswani_jax.text_checks.sample import Pair, pairs_of

EN_DE = ("en", "de")
GERMAN = texts.sentences(300)


def swapped(pairs: list[Pair]) -> list[Pair]:
    return [(target, source) for source, target in pairs]


def find_lines(pairs: list[Pair], train: list[Pair], split: str = "train") -> list[str]:
    profile = sides.Profile.learn(train)
    found = sides.find_swapped_lines(texts.blocks(pairs), profile, EN_DE, split=split)
    return [f"{finding.severity} {finding.kind}" for finding in found]


def test_scripts_tell_other_languages_and_swapped_sides() -> None:
    japanese = texts.blocks(texts.clean("ja")["train"])
    assert sides.find_scripts(japanese, ("en", "ja"), split="train") == []
    [finding] = sides.find_scripts(japanese, ("ja", "en"), split="train")
    assert (finding.kind, finding.severity) == ("swapped", "serious")
    assert (
        "--config.data.source_locale=en --config.data.target_locale=ja"
        in (finding.remedies[1])
    )
    [finding] = sides.find_scripts(japanese, ("en", "ru"), split="valid")
    assert (finding.kind, finding.severity) == ("other_script", "serious")
    assert "Cyrl" in finding.message and "target_locale=ru" in finding.message


def test_some_lines_of_another_script_are_minor() -> None:
    pairs = list(GERMAN)
    pairs[:15] = [(source, "Анна видит собаку") for source, _ in pairs[:15]]
    [finding] = sides.find_scripts(texts.blocks(pairs), EN_DE, split="train")
    assert finding.severity == "minor" and finding.share == 0.05
    assert str(finding.examples[0]) == "line 1: Анна видит собаку"


def test_words_tell_swapped_lines() -> None:
    assert find_lines(GERMAN, GERMAN) == []
    assert find_lines(texts.clean("de")["train"], texts.clean("de")["train"]) == []
    pairs = [*GERMAN[:290], *swapped(GERMAN[290:])]
    assert find_lines(pairs, pairs) == ["minor swapped_lines"]
    pairs = [*GERMAN[:240], *swapped(GERMAN[240:])]
    assert find_lines(pairs, pairs) == ["serious swapped_lines"]


def test_words_tell_a_held_out_text_whose_sides_are_swapped() -> None:
    assert find_lines(GERMAN[200:], GERMAN[:200], "valid") == []
    assert find_lines(swapped(GERMAN[200:]), GERMAN[:200], "valid") == [
        "serious swapped"
    ]


def test_words_tell_sides_in_one_language() -> None:
    pairs = [*GERMAN[:270], *((source, source) for source, _ in GERMAN[270:])]
    assert find_lines(pairs, pairs) == ["minor untranslated"]


def test_evidence_of_words_is_the_logarithm_of_their_ratio() -> None:
    pairs = [("the dog runs", "der Hund rennt")] * 9
    profile = sides.Profile.learn(pairs)
    assert profile.evidence["the"] == pytest.approx(2.302585)  # log(10 / 1)
    assert profile.evidence_of("der Hund rennt") == pytest.approx(-2.302585)
    assert profile.evidence_of("the dog") == 0  # too few words
    assert not pairs_of([])
