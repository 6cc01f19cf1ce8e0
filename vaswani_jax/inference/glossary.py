"""Find the terms of a glossary in source lines."""

import functools
import pathlib
from collections.abc import Iterator, Mapping

from vaswani_jax.data import text_files
from vaswani_jax.data.phrase_subwords import is_inside_word


class Glossary(Mapping[str, str]):
    """The terms of a source language, each with its translation.

    A term is whole words. One without capitals stands for itself in any case, another
    for what has the same capitals. The spaces of a term are any spaces of a line.

    >>> glossary = Glossary({"contract": "Vertrag", "party": "Partei"})
    >>> list(glossary.find("Contracts bind. The Contract binds each party."))
    ['Vertrag', 'Partei']
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
            words = " ".join(term.split())
            if words in self._translations:
                raise ValueError(f"glossary: {words!r} is there twice")
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
    def _lengths(self) -> list[int]:
        """The numbers of characters that terms have, the longest first."""
        return sorted(set(map(len, self._translations)), reverse=True)

    def find(self, line: str, *, has_spaces: bool = True) -> Iterator[str]:
        """Yield the translation of each term in a line, as often as it is there.

        Of terms that overlap, the first counts, and of those that begin together the
        longest.

        Args:
            line: A source line.
            has_spaces: Whether its language separates words by spaces. In one that does
                not, a term may be anywhere.
        """
        line = " ".join(line.split())
        begin = 0
        while begin < len(line):
            term = None
            if not (has_spaces and is_inside_word(line, begin)):
                term = self._find_at(line, begin, has_spaces=has_spaces)
            if term is not None:
                yield self._translations[term]
            begin += len(term) if term else 1

    def _find_at(self, line: str, begin: int, *, has_spaces: bool) -> str | None:
        """Return the longest term that begins at an index, None if none does."""
        for length in self._lengths:
            end = begin + length
            if end > len(line) or (has_spaces and is_inside_word(line, end)):
                continue
            for term in (line[begin:end], line[begin:end].lower()):
                if term in self._translations:
                    return term
        return None


def read_glossary(path: pathlib.Path, *, flag: str = "--glossary") -> Glossary:
    """Return the glossary of a file.

    Each of its lines has a term, a tab and its translation. Empty lines do not count.

    Args:
        path: A text file, plain or .gz.
        flag: The flag that named it, for error messages.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: A line has another number of tabs, or no term or translation; a term
            has two translations; or the file has no term.
    """
    if not path.is_file():
        raise FileNotFoundError(f"{flag}: no file {path}")
    numbers: dict[str, int] = {}
    translations: dict[str, str] = {}
    for number, line in enumerate(text_files.read_lines(path), start=1):
        place = f"{flag}={path}, line {number}"
        if not line.strip():
            continue
        columns = [" ".join(column.split()) for column in line.split("\t")]
        if len(columns) != 2 or not all(columns):
            raise ValueError(
                f"{place}: {line[:60]!r} must be a term, a tab and its translation"
            )
        term, translation = columns
        known = translations.setdefault(term, translation)
        if known != translation:
            raise ValueError(
                f"{place}: {term!r} is {known!r} in line {numbers[term]}: keep one"
            )
        numbers.setdefault(term, number)
    if not translations:
        raise ValueError(f"{flag}={path} has no term: leave it out")
    return Glossary(translations)
