"""Lines and sides in other languages."""

import random

import pytest

from tests.text_checks import texts
from vaswani_jax.data import language_identification
from vaswani_jax.text_checks import side_languages
from vaswani_jax.text_checks.sample import Pair

EN_DE = ("en", "de")
GERMAN = texts.sentences(300)
FRENCH = "Un chien noir court dans le jardin avec un ballon."


def swapped(pairs: list[Pair]) -> list[Pair]:
    return [(target, source) for source, target in pairs]


def find(pairs: list[Pair], locales: tuple[str, str]) -> list[side_languages.Finding]:
    shares = side_languages.languages(texts.blocks(pairs), locales)
    return side_languages.find_languages(shares, locales, split="train")


def languages_of(pairs: list[Pair], locales: tuple[str, str]) -> list[str]:
    blocks = texts.blocks(pairs)
    shares = side_languages.languages(blocks, locales)
    found = side_languages.find_languages(shares, locales, split="train")
    return [f"{finding.severity} {finding.kind}" for finding in found]


def test_languages_tell_wrong_codes_and_swapped_sides() -> None:
    pytest.importorskip("py3langid")
    for pairs in (GERMAN, texts.clean("de")["train"]):
        assert languages_of(pairs, EN_DE) == []
        assert languages_of(swapped(pairs), EN_DE) == ["serious swapped"]
        assert languages_of(pairs, ("en", "fr")) == ["serious language"]
        assert languages_of(pairs, ("pt_BR", "de")) == ["serious language"]
    mixed = [*GERMAN[:200], *((target, target) for _, target in GERMAN[200:])]
    assert languages_of(mixed, EN_DE) == ["minor language"]


def test_languages_need_their_identifier(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(side_languages.importlib.util, "find_spec", lambda name: None)
    assert not side_languages.can_identify("de")
    assert "vaswani-jax[langid]" in side_languages.how_to_identify()
    assert languages_of(swapped(GERMAN), EN_DE) == []


@pytest.mark.parametrize("share", [0.03, 0.1, 0.25])
def test_scattered_lines_of_another_language_are_counted(share: float) -> None:
    pytest.importorskip("py3langid")
    pairs = list(GERMAN)
    numbers = sorted(random.Random(0).sample(range(300), round(300 * share)))
    for number in numbers:
        pairs[number] = (pairs[number][0], FRENCH)
    [finding] = find(pairs, EN_DE)
    assert (finding.severity, finding.share) == ("minor", share)
    assert "of the target lines seem to be in fr" in finding.message
    assert str(finding.examples[0]) == f"line {numbers[0] + 1}: {FRENCH}"
    assert len(finding.examples) == 3


def test_few_lines_of_another_language_are_no_finding() -> None:
    pytest.importorskip("py3langid")
    pairs = [*GERMAN[:295], *((source, FRENCH) for source, _ in GERMAN[:5])]
    assert find(pairs, EN_DE) == []


def test_short_lines_are_read_together() -> None:
    pytest.importorskip("py3langid")
    pairs = [
        (source.partition(" in the ")[0], target.partition(" in dem ")[0])
        for source, target in GERMAN
    ]
    assert find(pairs, EN_DE) == []
    [finding] = find(pairs, ("en", "fr"))
    assert "of the target text seems to be in de" in finding.message
    assert "--config.data.target_locale=de" in finding.remedies[0]


def test_of_a_very_long_line_the_beginning_is_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pytest.importorskip("py3langid")
    longest = 0
    probabilities = language_identification.probabilities

    def note(lines: list[str]) -> list[dict[str, float]]:
        nonlocal longest
        longest = max(longest, *map(len, lines))
        return probabilities(lines)

    monkeypatch.setattr(language_identification, "probabilities", note)
    long_pair = (GERMAN[0][0] * 20_000, GERMAN[0][1] * 20_000)
    assert find([*GERMAN, long_pair], EN_DE) == []
    assert 0 < longest < 20_000
