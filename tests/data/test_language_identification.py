"""Lines are told to be in another language only where that is far likelier."""

import pytest

from vaswani_jax.data import language_identification

SENTENCES = {
    "de": "Zwei Hunde spielen auf der Wiese vor dem alten Haus.",
    "en": "Two dogs are playing on the grass in front of the old house.",
    "fr": "Deux chiens jouent sur l'herbe devant la vieille maison.",
    "es": "Dos perros juegan en la hierba delante de la casa vieja.",
    "ru": "Две собаки играют на траве перед старым домом.",
    "ja": "二匹の犬が古い家の前の芝生で遊んでいます。",
    "zh": "两只狗在老房子前面的草地上玩耍。",
    "ar": "كلبان يلعبان على العشب أمام البيت القديم.",
    "cs": "Dva psi si hrají na trávě před starým domem.",
}
# Correct lines that say little of their language.
SHORT = {
    "de": ["Hallo", "Ein Hund", "OK", "Tom", "Na ja.", "TOM!", "12:30 Uhr", "", "Ja"],
    "en": ["Hello", "Tom", "OK", "No.", "Hi, Tom.", "Yes", "3 days", "Go!", "London"],
    "fr": ["Salut", "Merci", "Tom", "Non.", "Oui", "Ça va ?", "Va !", "Paris", "3 km"],
}


@pytest.mark.parametrize("language", SENTENCES)
def test_a_sentence_is_in_its_language_and_in_no_other(language: str) -> None:
    line = SENTENCES[language]
    for other in SENTENCES:
        verdict = language_identification.judge(line, other)
        assert verdict.is_other == (other != language)
        assert verdict.language == language


@pytest.mark.parametrize(
    ("language", "line"),
    [(language, line) for language, lines in SHORT.items() for line in lines],
)
def test_a_short_line_is_in_the_language_that_it_should_be_in(
    language: str, line: str
) -> None:
    assert not language_identification.judge(line, language).is_other


def test_languages_that_are_alike_are_not_told_apart() -> None:
    croatian = "Dva psa igraju se na travi ispred stare kuće."
    assert language_identification.judge(croatian, "sr").odds == 1
    assert language_identification.judge(croatian, "en").is_other


def test_probabilities_are_of_all_languages() -> None:
    probabilities = language_identification.probabilities(SENTENCES["de"])
    assert set(probabilities) == language_identification.languages()
    assert sum(probabilities.values()) == pytest.approx(1, abs=1e-4)
    assert next(iter(probabilities)) == "de"


@pytest.mark.parametrize(
    ("locale", "code"),
    [("pt_BR", "pt"), ("deu", "de"), ("nb_NO", "no"), ("iw", "he"), ("tlh", "")],
)
def test_a_locale_has_the_identifiers_code(locale: str, code: str) -> None:
    assert language_identification.language_of(locale) == code
