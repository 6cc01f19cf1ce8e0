"""The scripts of letters and of languages are Unicode's."""

import pytest
from babel import core

from vaswani_jax.core import locales
from vaswani_jax.data import scripts


@pytest.mark.parametrize(
    ("text", "script"),
    [
        ("Grüße, Ærø!", "Latn"),
        ("Привет, мир", "Cyrl"),
        ("Γειά σου", "Grek"),
        ("שלום", "Hebr"),
        ("مرحبا", "Arab"),
        ("नमस्ते", "Deva"),
        ("สวัสดี", "Thai"),
        ("გამარჯობა", "Geor"),
        ("안녕하세요", "Hang"),
        ("你好", "Hani"),
        ("こんにちは", "Hira"),
        ("ﾃｽﾄ", "Kana"),
        ("ＡＢＣ", "Latn"),
        ("𐌲𐌿𐍄", "Zzzz"),
        ("12:30 – 50 %, 3ª µ", ""),
        ("", ""),
    ],
)
def test_the_script_of_a_text_is_that_of_most_letters(text: str, script: str) -> None:
    assert scripts.script_of(text) == script


def test_every_script_that_a_language_has_is_one_that_letters_have() -> None:
    known = set(scripts.SCRIPTS_BY_NAME.values())
    for locale in ("zh_Hant", "ja_Jpan", "ko_Kore", "ain_Hrkt", "en", "mni", "nan"):
        assert scripts.scripts_of_locale(locale) <= known


def test_a_language_has_the_script_that_the_cldr_gives_it() -> None:
    likely = core.get_global("likely_subtags")
    other_codes = {"Hans": "Hani", "Hant": "Hani", "Jpan": "Hira", "Kore": "Hang"}
    num_compared = 0
    own_codes = {c: c for c in likely if len(c) == 2 and locales.language_code(c) == c}
    for code, short in (own_codes | locales.LANGUAGE_CODES).items():
        [script] = [part for part in likely[short].split("_") if len(part) == 4]
        expected = other_codes.get(script, script)
        if short == "ae":  # Avestan, which this module does not know
            continue
        assert expected in scripts.scripts_of_locale(code), code
        num_compared += 1
    assert num_compared > 350


@pytest.mark.parametrize(
    ("locale", "expected"),
    [
        ("pt_BR", "Latn"),
        ("uz-Cyrl-UZ", "Cyrl"),
        ("zh_hant", "Hani"),
        ("sr", "Cyrl Latn"),
    ],
)
def test_a_locale_may_name_its_script(locale: str, expected: str) -> None:
    assert scripts.scripts_of_locale(locale) == set(expected.split())


def test_the_share_of_letters_counts_letters_alone() -> None:
    assert scripts.share_in_scripts("Цена: 5 USD 100 %", {"Cyrl"}) == 4 / 7
    assert scripts.share_in_scripts("100 %", {"Cyrl"}) == 1


@pytest.mark.parametrize(
    ("locale", "text", "share"),
    [
        ("ur_Aran", "مرحبا", 1),
        ("de_Latf", "Grüße", 1),
        ("cu_Cyrs", "Привет", 1),
        ("syr_Syrn", "ܫܠܡܐ", 1),
        ("zh_Hanb", "你ㄋ", 1),
        ("ff_Adlm", "𞤀𞤣", 1),
        ("ff_Adlm", "Привет", 0),
        # Of a script that is not known, nothing is judged.
        ("got_Goth", "𐌲𐌿𐍄", 1),
        ("got_Goth", "gut", 1),
    ],
)
def test_a_variant_of_a_script_has_its_letters(
    locale: str, text: str, share: float
) -> None:
    expected = scripts.scripts_of_locale(locale)
    assert scripts.share_in_scripts(text, expected) == share
