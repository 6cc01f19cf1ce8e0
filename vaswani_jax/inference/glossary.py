"""Find the terms of a glossary in source lines."""

import functools
import pathlib
import unicodedata
from collections.abc import Iterator, Mapping

from vaswani_jax.core import paths
from vaswani_jax.data import text_files
from vaswani_jax.data.phrase_subwords import is_inside_word


class Glossary(Mapping[str, str]):
    """The terms of a source language, each with its translation.

    A term is whole words. A lower-case term matches any capitalisation, a term with
    capitals only itself. A space matches any white space.

    >>> glossary = Glossary({"contract": "Vertrag", "party": "Partei"})
    >>> list(glossary.find_terms("Contracts bind. The Contract binds each party."))
    ['contract', 'party']
    """

    def __init__(self, translations: Mapping[str, str]) -> None:
        """Keep the terms.

        Args:
            translations: The translation of each term.

        Raises:
            TypeError: It is no mapping from strings to strings.
            ValueError: A term or a translation has no character, or two terms differ
                in their spaces alone.
        """
        if not isinstance(translations, Mapping):
            raise TypeError(
                "glossary must be a dictionary from terms to translations, got "
                f"{translations!r:.60}"
            )
        self._translations: dict[str, str] = {}
        for term, translation in translations.items():
            for text in (term, translation):
                if not isinstance(text, str):
                    raise TypeError(f"glossary must have strings, got {text!r}")
                if not text.strip():
                    raise ValueError(
                        f"glossary: {term!r} with the translation {translation!r}: "
                        "neither may be empty"
                    )
            words = _normalize(term)
            if words in self._translations:
                raise ValueError(
                    f"glossary: the term {words!r} appears twice, spaces aside: keep "
                    "one"
                )
            self._translations[words] = " ".join(translation.split())

    def __getitem__(self, term: str) -> str:
        """Return the translation of a term."""
        return self._translations[term]

    def __iter__(self) -> Iterator[str]:
        """Iterate over the terms."""
        return iter(self._translations)

    def __len__(self) -> int:
        """Return the number of terms."""
        return len(self._translations)

    @functools.cached_property
    def _lengths(self) -> dict[str, list[int]]:
        """The lengths of the terms that begin with a character, the longest first."""
        lengths: dict[str, set[int]] = {}
        for term in self._translations:
            lengths.setdefault(term[0], set()).add(len(term))
        return {first: sorted(of_first)[::-1] for first, of_first in lengths.items()}

    def find_terms(self, line: str, *, has_spaces: bool = True) -> Iterator[str]:
        """Yield each term in a line, as often as it is there.

        Where terms overlap, the one that begins first is used; if several begin there,
        the longest.

        Args:
            line: A source line.
            has_spaces: Whether its language separates words by spaces. In one that does
                not, a term may be anywhere.
        """
        line = _normalize(line)
        lower_line = _lower(line)
        begin = 0
        while begin < len(line):
            term = None
            if not (has_spaces and is_inside_word(line, begin)):
                of_both = (
                    self._find_at(text, begin, has_spaces=has_spaces)
                    for text in (line, lower_line)
                )
                # max returns the first of equals: a term with these capitals.
                term = max(of_both, key=len)
            if term:
                yield term
            begin += max(1, len(term or ""))

    def _find_at(self, line: str, begin: int, *, has_spaces: bool) -> str:
        """Return the longest term that begins at an index, "" if none does."""
        for length in self._lengths.get(line[begin], ()):
            end = begin + length
            if end > len(line) or (has_spaces and is_inside_word(line, end)):
                continue
            if line[begin:end] in self._translations:
                return line[begin:end]
        return ""


def _normalize(text: str) -> str:
    """Return a text with single spaces, and each letter composed with its accents."""
    return unicodedata.normalize("NFC", " ".join(text.split()))


def _lower(text: str) -> str:
    """Return a text of the same length in lower case, but for what would be longer."""
    lower = text.lower()
    if len(lower) == len(text):
        return lower
    return "".join(
        letter.lower() if len(letter.lower()) == 1 else letter for letter in text
    )


def read_glossary(path: pathlib.Path, *, flag: str = "--glossary") -> Glossary:
    """Return the glossary of a file.

    Each of its lines has a term, a tab and its translation. Empty lines do not count.

    Args:
        path: A text file, plain or compressed.
        flag: The flag that named it, for error messages.

    Raises:
        FileNotFoundError: There is no such file.
        IsADirectoryError: It is a directory.
        ValueError: A line has another number of tabs, or no term or translation; a term
            has two translations; or the file has no term.
    """
    paths.check_readable(path, flag=flag)
    numbers: dict[str, int] = {}
    translations: dict[str, str] = {}
    for number, line in enumerate(text_files.read_lines(path), start=1):
        location = f"{flag}={path}, line {number}"
        if not line.strip():
            continue
        columns = [" ".join(column.split()) for column in line.split("\t")]
        if len(columns) != 2 or not all(columns):
            raise ValueError(
                f"{location}: {line[:60]!r} must be a term, a tab and its translation"
            )
        term, translation = _normalize(columns[0]), columns[1]
        first_translation = translations.setdefault(term, translation)
        if first_translation != translation:
            raise ValueError(
                f"{location}: {term!r} is {first_translation!r} in line "
                f"{numbers[term]}: keep one"
            )
        numbers.setdefault(term, number)
    if not translations:
        raise ValueError(f"{flag}={path} has no term: leave it out")
    return Glossary(translations)
