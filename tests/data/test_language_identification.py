"""Lines are told to be in another language only where that is far likelier."""

import itertools
import random

import numpy as np
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
# Languages that are not distinguished.
ALIKE = {"zh": ["zh", "yue", "wuu"]}
# Correct lines that say little of their language.
SHORT = {
    "de": ["Hallo", "Ein Hund", "OK", "Tom", "Na ja.", "TOM!", "12:30 Uhr", "", "Ja"],
    "en": ["Hello", "Tom", "OK", "No.", "Hi, Tom.", "Yes", "3 days", "Go!", "London"],
    "fr": ["Salut", "Merci", "Tom", "Non.", "Oui", "Ça va ?", "Va !", "Paris", "3 km"],
}


@pytest.mark.parametrize("language", SENTENCES)
def test_a_sentence_is_in_its_language_and_in_no_other(language: str) -> None:
    lines = [SENTENCES[language]] * len(SENTENCES)
    verdicts = language_identification.judge(lines, list(SENTENCES))
    for other, verdict in zip(SENTENCES, verdicts, strict=True):
        assert verdict.is_other == (other != language)
        assert verdict.language == language


@pytest.mark.parametrize("language", SHORT)
def test_a_short_line_is_in_the_language_that_it_should_be_in(language: str) -> None:
    lines = SHORT[language]
    verdicts = language_identification.judge(lines, [language] * len(lines))
    assert [verdict.is_other for verdict in verdicts] == [False] * len(lines)


def test_languages_that_are_alike_are_not_told_apart() -> None:
    croatian = "Dva psa igraju se na travi ispred stare kuće."
    serbian, english = language_identification.judge([croatian] * 2, ["sr", "en"])
    assert serbian.odds == 1
    assert english.is_other


def mixed_lines() -> list[str]:
    """Return 4,000 lines: beginnings and mixtures of the sentences, and odd ones."""
    generator = random.Random(1)
    words = [word for line in SENTENCES.values() for word in line.split()]
    lines = [line[:size] for line in SENTENCES.values() for size in range(len(line))]
    lines += [line.upper() for line in lines]
    odd = ["", " ", "\0", "\udc80", "e\u0301", "\U0001f600", "3" * 300, "Ä" * 300]
    while len(lines) < 4000:
        line = " ".join(generator.choices(words, k=generator.randrange(1, 12)))
        lines.append(line + generator.choice(["", *odd]))
    return lines + odd


def test_many_lines_at_a_time_get_the_probabilities_of_py3langid() -> None:
    langid = pytest.importorskip("py3langid").langid
    identifier = langid.LanguageIdentifier.from_model_file(
        langid.MODEL_FILE, norm_probs=True
    )
    # Verdicts look at so many characters.
    lines = [line[: language_identification.NUM_CHARACTERS] for line in mixed_lines()]
    rankings = [dict(identifier.rank(line)) for line in lines]
    probabilities = language_identification.probabilities(lines)
    codes = sorted(language_identification.languages())
    assert set(codes) == probabilities[0].keys() == rankings[0].keys()
    np.testing.assert_allclose(
        [[row[code] for code in codes] for row in probabilities],
        [[row[code] for code in codes] for row in rankings],
        rtol=2e-3,
        atol=1e-7,
    )
    languages = list(itertools.islice(itertools.cycle(SENTENCES), len(lines)))
    verdicts = language_identification.judge(lines, languages)
    for ranking, language, verdict in zip(rankings, languages, verdicts, strict=True):
        likeliest = max(ranking.values())
        assert ranking[verdict.language] == pytest.approx(likeliest, rel=1e-3)
        expected = max(ranking[code] for code in ALIKE.get(language, [language]))
        if verdict.odds != 1:  # neither expected nor a word or two
            assert verdict.odds == pytest.approx(likeliest / expected, rel=5e-3)
    assert sum(verdict.is_other for verdict in verdicts) > len(lines) / 2


@pytest.mark.parametrize(
    ("locale", "code"),
    [("pt_BR", "pt"), ("deu", "de"), ("nb_NO", "no"), ("iw", "he"), ("tlh", "")],
)
def test_a_locale_has_the_identifiers_code(locale: str, code: str) -> None:
    assert language_identification.language_of(locale) == code
