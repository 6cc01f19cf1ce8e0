"""Wrongly decoded text is told from text that looks a little like it."""

import unicodedata

import hypothesis
import hypothesis.strategies as st
import pytest

from vaswani_jax.data import encodings

CLEAN = [
    "Straßenbahn, Äpfel, Öl, Übung, „Anführung“ – und ‚so‘ …",
    "Voilà ! Ça s’est passé à Besançon : « été »… déjà vu – 20 °C, n° 5, 3 €",
    "NESCAFÉ® CAFÉ™ É»",
    "A palavra «IRMû, a “MANHÔ.",
    "bokstaven ”Å” och Ä–Ö; „der Buchstabe Ä“",
    "SÃO PAULO, Ânions, PRÊTÀ, Â",
    "Příliš žluťoučký kůň úpěl ďábelské ódy",
    "Zażółć gęślą jaźń",
    "Привет, СССР: «Р…» и С“…",
    "МІНІСТЕРСТВО, МІСІЯ І ЛІНІЯ; Лінії, Візії, Філії, Лівії та Лідії",
    "ДЗІЦІ, СІНІЦЫ і сініцы",
    "МОЈОЈ РОЂЕЊЕ, моје рођење",
    "Ελληνικά – «Καλημέρα»",
    "日本語の文章です。",
    "ไทย ภาษา",
    "A, Å–Ö, Œuvre",
    "Tiếng Việt có dấu Ã Õ",
    "naïve 😀 café",
    "Mötley Crüe — Björk & Sigur Rós ± ½ × ÷",
]
# What is in UTF-8, and what it is read in.
BROKEN = [
    ("für", "cp1252"),
    ("Größe", "cp1252"),
    ("it’s", "cp1252"),
    ("5 €", "cp1252"),
    ("20 °C", "latin-1"),
    ("garçon", "latin-1"),
    ("cœur", "cp1252"),
    ("Öl", "cp1252"),
    ("Привет", "cp1251"),
    ("Привет", "cp1252"),
    ("мои", "cp1251"),
    ("вулиця", "cp1251"),
    ("„ви“ – ви", "cp1251"),
    ("Příliš žlutý", "cp1250"),
    ("Γεια", "cp1253"),
    ("日本語", "latin-1"),
    ("smile 😀", "latin-1"),
    ("Übermäßig", "mac_roman"),
    ("für größere äöü", "cp437"),
]


@pytest.mark.parametrize("text", CLEAN)
def test_text_of_many_languages_is_not_taken_for_mojibake(text: str) -> None:
    assert encodings.mojibake(text) == ""


@pytest.mark.parametrize(("text", "codec"), BROKEN)
def test_text_that_was_read_in_another_encoding_is_found(text: str, codec: str) -> None:
    broken = text.encode().decode(codec)
    assert encodings.mojibake(broken)
    assert encodings.mojibake(broken) in broken
    assert not encodings.mojibake(text)


@hypothesis.given(
    st.text(st.characters(min_codepoint=0xC0, max_codepoint=0x17F), min_size=2)
)
def test_two_letters_in_a_row_are_always_found(text: str) -> None:
    assert encodings.mojibake(f"x {text.encode().decode('latin-1')} x")


@hypothesis.given(st.text(st.characters(max_codepoint=0x7F)))
def test_ascii_is_never_mojibake(text: str) -> None:
    assert not encodings.mojibake(text)


@hypothesis.given(st.text())
def test_control_characters_are_those_of_unicodes_categories(text: str) -> None:
    expected = [
        character
        for character in text
        if unicodedata.category(character) in ("Cc", "Co") and character != "\t"
    ]
    assert list(encodings.control_characters(text)) == expected
