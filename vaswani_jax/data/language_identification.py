"""Identify the language of a line by py3langid: the extra `langid`.

Its model comes with the package, and gives a probability to each of 140 languages. The
shorter a line is, the less sure it is. So a line is in another language only if that is
far likelier than the expected one (`MARGIN`), and a line of a word or two is in none
(`MIN_BYTES`). Correct short lines pass, and so do many in another language.
"""

import dataclasses
import functools
from typing import Any

from vaswani_jax.core import extras, locales

# None of the 325,000 German, English and French lines of Multi30k and Tatoeba exceeds
# it if its own language is expected. If another one is, half of the lines under 15
# characters do, and 99 in 100 from 30 characters on.
MARGIN = 100.0
# In bytes of UTF-8, of letters. "Na ja." is taken for Hausa, at odds of 200.
MIN_BYTES = 12
# Characters of a line that are looked at. More take time and hardly change a verdict.
NUM_CHARACTERS = 200
# The identifier's codes of languages that have another code in locales.
_CODES = {"nb": "no", "fil": "tl", "cmn": "zh", "arb": "ar", "pes": "fa", "ckb": "ku"}
# Languages of a set are not distinguished.
_ALIKE = (
    frozenset({"bs", "hr", "sr"}),
    frozenset({"no", "nn", "da"}),
    frozenset({"id", "ms"}),
    frozenset({"zh", "yue", "wuu"}),
)


@dataclasses.dataclass(frozen=True)
class Verdict:
    """The identified language of a line, against the expected one.

    Attributes:
        language: The code of the likeliest language.
        odds: Its probability over that of the expected language; 1 if they are the same
            language, or if the line is too short.
    """

    language: str
    odds: float

    @property
    def is_other(self) -> bool:
        """True if the line is in another language, by `MARGIN`."""
        return self.odds > MARGIN


def require() -> None:
    """Import the identifier.

    Raises:
        ImportError: The package is not installed.
    """
    try:
        import py3langid  # noqa: F401
    except ImportError as error:
        raise ImportError(
            f"identifying languages needs py3langid: {extras.how_to_install('langid')}"
        ) from error


@functools.lru_cache(maxsize=1)
def languages() -> frozenset[str]:
    """Return the codes of the languages that the identifier knows."""
    return frozenset(_identifier().labels)


@functools.lru_cache(maxsize=1000)
def language_of(locale: str) -> str:
    """Return the identifier's code of a locale's language; "" if it has none.

    >>> language_of("de_AT"), language_of("nb"), language_of("tlh")
    ('de', 'no', '')
    """
    code = locales.language_code(locale)
    code = _CODES.get(code, code)
    return code if code in languages() else ""


def probabilities(line: str) -> dict[str, float]:
    """Return the probability of each language, the likeliest one first."""
    return dict(_identifier().rank(line))


def judge(line: str, language: str) -> Verdict:
    """Compare the likeliest language of a line with the expected one.

    >>> judge("Ein Hund läuft über die Wiese.", "en").language
    'de'
    >>> judge("Ein Hund läuft über die Wiese.", "de").odds
    1.0

    Args:
        line: The text.
        language: A code of `language_of`.
    """
    identifier = _identifier()
    line = line[:NUM_CHARACTERS]
    likeliest, probability = identifier.classify(line)
    expected = next((codes for codes in _ALIKE if language in codes), {language})
    letters = "".join(filter(str.isalpha, line))
    if likeliest in expected or len(letters.encode()) < MIN_BYTES:
        return Verdict(likeliest, 1.0)
    by_language = dict(identifier.rank(line))
    # The floor is that of float32, in which a probability may be 0.
    best = max(max(by_language[code] for code in expected), 1e-38)
    return Verdict(likeliest, probability / best)


@functools.lru_cache(maxsize=1)
def _identifier() -> Any:
    require()
    from py3langid import langid

    return langid.LanguageIdentifier.from_model_file(langid.MODEL_FILE, norm_probs=True)
