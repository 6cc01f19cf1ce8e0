"""Replace source characters that a vocabulary lacks by equivalent ones.

A reader sees the same text in "10 km" with a space and with a no-break space, in an
e-acute and in an e with U+0301 after it. A model does not: what training never had is
noise to it. So text is read with characters that the vocabulary has, where Unicode
says that they mean the same:

- White space is a space. What is invisible is nothing: marks of direction, zero-width
  spaces, soft hyphens, variation selectors, control characters.
- Canonically equivalent sequences are one text, composed or not.
- Compatibility forms are the letters that they show: full-width and half-width ones,
  ligatures, letters of mathematics. A superscript, a subscript, a fraction and a
  number in a circle are not: 10² is not 102.
- Typographic apostrophes, quotation marks, hyphens and the minus are those of ASCII.

Joiners (U+200C, U+200D) change Persian and Indic words and emoji. They are nothing only
beside ASCII, Latin, Greek and Cyrillic letters, which never join.
"""

import functools
import itertools
import unicodedata
from collections.abc import Callable, Iterable, Iterator

JOINERS = "\u200c\u200d"
_INVISIBLE_RANGES = (
    # Controls: white space among them is a space.
    *((0x01, 0x1F), (0x7F, 0x9F)),
    *((0xAD, 0xAD), (0x034F, 0x034F), (0x061C, 0x061C), (0x17B4, 0x17B5)),
    # Mongolian variation selectors.
    *((0x180B, 0x180D), (0x180F, 0x180F)),
    # Zero-width space, marks, embeddings and isolates of direction, word joiner.
    *((0x200B, 0x200B), (0x200E, 0x200F), (0x202A, 0x202E), (0x2060, 0x2064)),
    (0x2066, 0x206F),
    *((0xFE00, 0xFE0F), (0xFEFF, 0xFEFF), (0xE0100, 0xE01EF)),
)
INVISIBLE = frozenset(
    chr(code)
    for first, last in _INVISIBLE_RANGES
    for code in range(first, last + 1)
    if not chr(code).isspace()
)
TYPOGRAPHIC = {
    **dict.fromkeys("\u2018\u2019\u201b\u02bc", "'"),
    **dict.fromkeys("\u201c\u201d\u201e\u201f", '"'),
    **dict.fromkeys("\u2010\u2011\u2212", "-"),
}
# Compatibility forms that do not mean the letters or digits in them.
_OTHER_MEANINGS = ("<super>", "<sub>", "<fraction>", "<circle>")
_HANGUL_SYLLABLES = range(0xAC00, 0xD7A4)
# No character beyond has a decomposition.
_LAST_DECOMPOSED = 0x2FA1D
_LETTERS_THAT_NEVER_JOIN = (
    *range(0x20, 0x7F),
    *range(0xC0, 0x530),
    *range(0x1E00, 0x2000),
)


def find_readings(is_known: Callable[[str], bool]) -> dict[str, str]:
    """Return what to read in place of strings with unknown characters.

    Each has at least one unknown character, and no more than a few characters. What it
    is read as has known ones alone.

    >>> readings = find_readings("Caf\u00e9 fin".__contains__)
    >>> readings["\u00a0"], readings["\ufeff"], readings["\ufb01"], readings["e\u0301"]
    (' ', '', 'fi', 'é')
    >>> "²" in readings, "\u200d" in readings, readings["C\u200d"]
    (False, False, 'C')

    Args:
        is_known: Returns True for a character of the vocabulary.
    """
    readings = {}
    for character in _readable_characters():
        if not is_known(character):
            text = _spell(character, is_known)
            if text is not None:
                readings[character] = text
        elif not unicodedata.is_normalized("NFD", character):
            for sequence in _equivalent_sequences(character):
                if not all(map(is_known, sequence)):
                    # The first of equivalent characters is the NFC form.
                    readings.setdefault(sequence, character)
    unknown_joiners = [joiner for joiner in JOINERS if not is_known(joiner)]
    for letter in map(chr, _LETTERS_THAT_NEVER_JOIN if unknown_joiners else ()):
        if is_known(letter):
            for joiner in unknown_joiners:
                readings[letter + joiner] = readings[joiner + letter] = letter
    return readings


@functools.cache
def _readable_characters() -> tuple[str, ...]:
    """Return every character that may be read as another, or composed of others."""
    characters = [
        character
        for character in map(chr, range(1, _LAST_DECOMPOSED + 1))
        if unicodedata.decomposition(character)
        or character.isspace()
        or ord(character) in _HANGUL_SYLLABLES
    ]
    return tuple(sorted({*characters, *INVISIBLE, *TYPOGRAPHIC} - {" "}))


def _spell(character: str, is_known: Callable[[str], bool]) -> str | None:
    """Return the known characters that an unknown one is read as, or None."""
    if character.isspace():
        return " "
    if character in INVISIBLE:
        return ""
    if character in TYPOGRAPHIC:
        text = TYPOGRAPHIC[character]
        return text if is_known(text) else None
    parts = _decompose(character)
    # A form of a space with a mark on it shows the mark alone.
    if not parts or " " in parts:
        return None
    spellings = [part if is_known(part) else _spell(part, is_known) for part in parts]
    texts = [text for text in spellings if text is not None]
    return "".join(texts) if len(texts) == len(spellings) else None


@functools.cache
def _decompose(character: str) -> str:
    """Return a character's parts, or "" if it has none of the same meaning."""
    if ord(character) in _HANGUL_SYLLABLES:
        return unicodedata.normalize("NFD", character)
    form, *codes = unicodedata.decomposition(character).split() or [""]
    if form in _OTHER_MEANINGS:
        return ""
    if not form.startswith("<"):
        codes = [form, *codes] if form else []
    return "".join(chr(int(code, 16)) for code in codes)


def _equivalent_sequences(character: str) -> Iterator[str]:
    """Yield the longer sequences that are canonically equivalent to a character.

    Half-width kana have voiced sound marks of their own.
    """
    sequences = {character}
    characters: Iterable[str] = [character]
    while characters := [
        "".join(_decompose(head)) + tail
        for head, tail in ((text[0], text[1:]) for text in characters)
        if not unicodedata.is_normalized("NFD", head)
    ]:
        sequences.update(characters)
    decomposed = unicodedata.normalize("NFD", character)
    base, marks = decomposed[0], decomposed[1:]
    sequences.update(base + "".join(order) for order in itertools.permutations(marks))
    for sequence in sequences:
        is_same = unicodedata.normalize("NFC", sequence) == unicodedata.normalize(
            "NFC", character
        )
        if is_same and len(sequence) > 1:
            yield sequence
            yield from _half_width(sequence)


def _half_width(sequence: str) -> Iterator[str]:
    """Yield kana with a sound mark as half-width forms."""
    base, mark = sequence[0], sequence[1:]
    marks = {"\u3099": "\uff9e", "\u309a": "\uff9f"}
    if mark in marks:
        for kana in (base, _half_width_kana().get(base)):
            if kana:
                yield kana + marks[mark]


@functools.cache
def _half_width_kana() -> dict[str, str]:
    """Return the half-width form of each kana that has one."""
    forms = map(chr, range(0xFF66, 0xFF9E))
    return {unicodedata.normalize("NFKC", form): form for form in forms}
