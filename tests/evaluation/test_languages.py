"""Codes of languages against the Unicode consortium's list."""

import pytest

from vaswani_jax.evaluation import bleu


def test_long_codes_are_those_of_the_short_ones() -> None:
    core = pytest.importorskip("babel.core", reason="babel is not installed: .[demo]")
    aliases = core.get_global("language_aliases")
    assert {code: aliases[code] for code in bleu.SHORT} == bleu.SHORT


@pytest.mark.parametrize(
    ("locale", "language"),
    [("jpn", "ja"), ("cmn-Hans", "zh"), ("DEU_AT", "de"), ("fil", "fil"), ("pt", "pt")],
)
def test_a_language_has_one_code(locale: str, language: str) -> None:
    assert bleu.of(locale) == language
