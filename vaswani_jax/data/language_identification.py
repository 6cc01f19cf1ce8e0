"""Identify the language of a line by py3langid: the extra `langid`.

Its model comes with the package, and gives a probability to each of 140 languages. The
shorter a line is, the less sure it is. So a line is in another language only if that is
far likelier than the expected one (`MARGIN`), and a line of a word or two is in none
(`MIN_BYTES`). Correct short lines pass, and so do many in another language.
"""

import dataclasses
import functools
import unicodedata
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float, Int, UInt

from vaswani_jax.core import extras, locales

# Chosen so that correct short lines stay.
MARGIN = 100.0
# In bytes of UTF-8, of letters. "Na ja." is taken for Hausa.
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
    """Refuse to identify languages without py3langid, before any work.

    Raises:
        ImportError: The package is not installed.
    """
    extras.require(["py3langid"], extra="langid", purpose="identifying languages needs")


@functools.lru_cache(maxsize=1)
def languages() -> frozenset[str]:
    """Return the codes of the languages that the identifier knows."""
    return frozenset(_model().languages)


@functools.lru_cache(maxsize=1000)
def language_of(locale: str) -> str:
    """Return the identifier's code of a locale's language; "" if it has none.

    >>> language_of("de_AT"), language_of("nb"), language_of("tlh")
    ('de', 'no', '')
    """
    code = locales.language_code(locale)
    code = _CODES.get(code, code)
    return code if code in languages() else ""


def probabilities(lines: Sequence[str]) -> list[dict[str, float]]:
    """Return the probability of each language, for each line."""
    codes = _model().languages
    rows = _model().probabilities(lines).tolist()
    return [dict(zip(codes, row, strict=True)) for row in rows]


def judge(lines: Sequence[str], expected: Sequence[str]) -> list[Verdict]:
    """Compare the likeliest language of each line with the expected one.

    >>> judge(["Ein Hund läuft über die Wiese."] * 2, ["de", "de"])[0]
    Verdict(language='de', odds=1.0)

    Args:
        lines: The text. Many lines at a time take less time each.
        expected: For each line a code of `language_of`.
    """
    model = _model()
    lines = [line[:NUM_CHARACTERS] for line in lines]
    by_language = model.probabilities(lines)
    likeliest = by_language.argmax(axis=1)
    odds = by_language.max(axis=1)
    for language in set(expected):
        codes = next((codes for codes in _ALIKE if language in codes), {language})
        columns = [model.languages.index(code) for code in codes]
        rows = [row for row, code in enumerate(expected) if code == language]
        best = by_language[np.ix_(rows, columns)].max(axis=1)
        # The floor is that of float32, in which a probability may be 0.
        odds[rows] /= np.maximum(best, np.float32(1e-38))
    for row in np.flatnonzero(odds > 1):
        letters = "".join(filter(str.isalpha, lines[row]))
        if len(letters.encode(errors="surrogatepass")) < MIN_BYTES:
            odds[row] = 1
    return [
        Verdict(model.languages[column], ratio)
        for column, ratio in zip(likeliest, odds.tolist(), strict=True)
    ]


@dataclasses.dataclass(frozen=True)
class _Model:
    """The naive Bayes classifier of py3langid, for many lines at a time.

    An automaton reads the bytes of a line. Its state names the feature that ends there,
    if any. A language's score is a sum over the features of a line, each weighted by
    the logarithm of 1 plus its count.

    Attributes:
        languages: Their codes.
        next_states: By row and byte, flat.
        rows: Of each state, where its row begins in `next_states`.
        features: Of each state; -1 for none.
        log_likelihoods: Of each feature in each class; a language is one or two.
        log_priors: Of each class.
        class_languages: 1 where a class is of a language.
    """

    languages: tuple[str, ...]
    next_states: UInt[np.ndarray, "N"]
    rows: Int[np.ndarray, "states"]
    features: Int[np.ndarray, "states"]
    log_likelihoods: Float[np.ndarray, "features classes"]
    log_priors: Float[np.ndarray, "classes"]
    class_languages: Float[np.ndarray, "classes languages"]

    def probabilities(self, lines: Sequence[str]) -> Float[np.ndarray, "B languages"]:
        """Return the probability of each language."""
        texts = [_encode(line) for line in lines]
        lengths = np.array([len(text) for text in texts], int)
        scores = self._scores(texts, lengths)
        # Otherwise long texts get probabilities near 0 or 1.
        scores /= np.sqrt(np.maximum(1, lengths), dtype=np.float32)[:, None]
        shares = np.exp(scores - scores.max(axis=1, keepdims=True))
        shares /= shares.sum(axis=1, keepdims=True)
        return shares @ self.class_languages

    def _scores(
        self, texts: Sequence[bytes], lengths: Int[np.ndarray, "B"]
    ) -> Float[np.ndarray, "B classes"]:
        """Return the log-probability of each class with each text, 0 for no feature."""
        num_features = len(self.log_likelihoods)
        keys = np.sort(self._visits(texts, lengths))
        starts = np.flatnonzero(np.diff(keys, prepend=-1))
        weights = np.log1p(np.diff(starts, append=len(keys)), dtype=np.float32)
        texts_of, features = np.divmod(keys[starts], num_features)
        ends = np.searchsorted(texts_of, np.arange(len(texts)), side="right").tolist()
        scores = np.zeros((len(texts), len(self.log_priors)), np.float32)
        start = 0
        for row, end in zip(scores, ends, strict=True):
            if start < end:
                likelihoods = self.log_likelihoods.take(features[start:end], axis=0)
                row[:] = weights[start:end] @ likelihoods + self.log_priors
            start = end
        return scores

    def _visits(
        self, texts: Sequence[bytes], lengths: Int[np.ndarray, "B"]
    ) -> Int[np.ndarray, "N"]:
        """Return a key for each occurrence of a feature in each text.

        A key is the text's number times the number of features, plus the feature.
        """
        order = np.argsort(-lengths, kind="stable")
        size = int(lengths.max(initial=0))
        padded = b"".join(texts[n].ljust(size, b"\0") for n in order)
        columns = np.frombuffer(padded, np.uint8).reshape(len(texts), size).T.copy()
        # The texts that have a byte at each position come first.
        num_texts = np.searchsorted(-lengths[order], -np.arange(size), side="left")
        first_keys = order * len(self.log_likelihoods)
        states = np.zeros(len(texts), np.int32)
        visits = [np.zeros(0, np.int64)]
        for column, count in zip(columns, num_texts, strict=True):
            states = self.next_states[self.rows[states[:count]] + column[:count]]
            features = self.features[states]
            visits.append((first_keys[:count] + features)[features >= 0])
        return np.concatenate(visits)


def _encode(line: str) -> bytes:
    """Return the bytes that the automaton reads."""
    line = line.lower() if line.isupper() else line
    return unicodedata.normalize("NFC", line).encode(errors="surrogatepass")


@functools.lru_cache(maxsize=1)
def _model() -> _Model:
    require()
    from py3langid import langid

    model = langid.LanguageIdentifier.from_model_file(langid.MODEL_FILE)
    codes = tuple(model.labels)
    return _Model(
        languages=codes,
        next_states=np.asarray(model.tk_nextmove),
        rows=np.asarray(model.tk_row, np.int64) << 8,
        features=np.asarray(model.tk_output),
        log_likelihoods=model.nb_ptc.astype(np.float32),
        log_priors=model.nb_pc,
        class_languages=np.array(
            [[code == model_code for code in codes] for model_code in model.nb_classes],
            np.float32,
        ),
    )
