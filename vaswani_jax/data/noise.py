"""Make training pairs as noisy as users' text: capitals, typing errors, lost marks.

The changes are those of OpusTrainer: UpperCase, TitleCase and RemoveEndPunct of both
sides, Typos of the source. Each has a probability for a pair. Changes depend only on
the seed, the corpus, the number of the pair and that of the copy.
"""

import hashlib
import itertools
import random
import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from vaswani_jax.core import config, languages, locales
from vaswani_jax.core.corpora import Corpus

Pair = tuple[str, str]
# A line with typing errors has one for every ten words, rounded up.
WORDS_PER_TYPO = 10
MAX_CHARACTERS_WITH_TYPOS = 10_000
# Rows of keyboards: QWERTY, the Russian and the Greek one.
KEYBOARDS = (
    ("qwertyuiop", "asdfghjkl", "zxcvbnm"),
    ("йцукенгшщзхъ", "фывапролджэ", "ячсмитьбю"),
    ("ςερτυθιοπ", "ασδφγηξκλ", "ζχψωβνμ"),
)
# Marks that end a sentence, by kind: both sides must end in one of the same kind.
END_MARKS = (
    frozenset(".。．｡।॥۔။።։"),
    frozenset("!！՜"),
    frozenset("?？؟\u037e;՞፧"),
    frozenset(",，、،၊"),
    frozenset(":："),
    frozenset(";；؛፤"),
)
ALL_END_MARKS = frozenset().union(*END_MARKS)
# The first letter of each word.
_WORD_START = re.compile(r"(?<!\S)([^\w\s]*)([^\W\d_])")
_WORD = re.compile(r"\S+")
# A capital I has a dot if the small one has.
_TURKIC = frozenset({"az", "tr"})
# Where the bytes of each random number begin.
DRAWS = range(0, 32, 8)


def add_noise(
    pairs: Iterable[Pair],
    corpus: Corpus,
    data: config.DataConfig,
    *,
    key: tuple[int, str, int],
    numbers: Iterable[int] | None = None,
) -> Iterator[Pair]:
    """Yield pairs with changes.

    Args:
        pairs: The text of a corpus, or a part of it.
        corpus: The corpus, which has the probabilities.
        data: Has the locales, and the user symbols. They and the language code of a
            source line stay as they are.
        key: The seed, the name of the corpus, and the number of the copy.
        numbers: The number of each pair in its corpus, from 0; by default all follow
            each other. The noise of a pair depends on it.
    """
    symbols = data.symbols
    if numbers is None:
        numbers = itertools.count()
    for (source, target), number in zip(pairs, numbers, strict=False):
        digest = hashlib.blake2b(repr((*key, number)).encode(), digest_size=32).digest()
        draws = [int.from_bytes(digest[n : n + 8], "big") / 2**64 for n in DRAWS]
        locales_of_sides = data.source_locale, languages.line_locale(source, data)
        code, source = languages.split_code(source)
        if draws[0] < corpus.noise_punctuation:
            source, target = remove_end_mark(source, target, symbols=symbols)
        if draws[1] < corpus.noise_typos:
            source = add_typos(source, random.Random(digest), symbols=symbols)
        write = None
        if draws[2] < corpus.noise_upper:
            write = write_in_capitals
        elif draws[3] < corpus.noise_title:
            write = write_as_title
        if write:
            source, target = (
                write(text, symbols=symbols, locale=locale)
                for text, locale in zip((source, target), locales_of_sides, strict=True)
            )
        yield code + source, target


def write_in_capitals(text: str, *, symbols: Sequence[str], locale: str) -> str:
    """Return a text in capitals, except its user symbols.

    >>> write_in_capitals("<2de> ein kleiner Hund", symbols=["<2de>"], locale="de")
    '<2de> EIN KLEINER HUND'
    """
    return _between_symbols(text, symbols, lambda part: _capitals(part, locale))


def write_as_title(text: str, *, symbols: Sequence[str], locale: str) -> str:
    """Return a text whose words begin with capitals.

    >>> write_as_title("ein „kleiner“ Hund", symbols=[], locale="de")
    'Ein „Kleiner“ Hund'
    """

    def write(part: str) -> str:
        return _WORD_START.sub(
            lambda match: match[1] + _first_capital(match[2], locale), part
        )

    return _between_symbols(text, symbols, write)


def remove_end_mark(source: str, target: str, *, symbols: Sequence[str] = ()) -> Pair:
    """Return both sides without their final mark, if both marks are of one kind.

    If a side ends with one of `symbols`, both stay as they are.

    >>> remove_end_mark("How are you?", "你好吗？")
    ('How are you', '你好吗')
    >>> remove_end_mark("Hi!", "Guten Tag.")
    ('Hi!', 'Guten Tag.')
    >>> remove_end_mark("Dear :name:", "Liebe :name:", symbols=[":name:"])
    ('Dear :name:', 'Liebe :name:')
    """
    sides = source.rstrip(), target.rstrip()
    if any(side.endswith(tuple(symbols)) for side in sides):
        return source, target
    shorter = [side[:-1].rstrip() for side in sides]
    has_one_mark = all(side and side[-1] not in ALL_END_MARKS for side in shorter)
    if has_one_mark and any(
        all(side[-1] in marks for side in sides) for marks in END_MARKS
    ):
        return shorter[0], shorter[1]
    return source, target


def add_typos(text: str, generator: random.Random, *, symbols: Sequence[str]) -> str:
    """Return a text with a typing error for every ten words, rounded up.

    A text of more than `MAX_CHARACTERS_WITH_TYPOS` characters stays unchanged: the time
    grows with the square of its length, and training leaves such a text out.

    >>> add_typos("a small dog", random.Random(1), symbols=[])
    'a small ddog'
    """
    if len(text) > MAX_CHARACTERS_WITH_TYPOS:
        return text
    for _ in range(-(-len(text.split()) // WORDS_PER_TYPO)):
        text = add_typo(text, generator, symbols=symbols)
    return text


def add_typo(text: str, generator: random.Random, *, symbols: Sequence[str]) -> str:
    """Return a text with one typing error; unchanged if there is no place for one.

    Two letters are swapped; one is left out, typed twice, or replaced or followed by
    that of a key beside it; a double letter becomes single; a space is left out or
    added. Words with user symbols stay as they are.
    """
    words = [
        match.span()
        for match in _WORD.finditer(text)
        if not any(symbol in match[0] for symbol in symbols)
    ]
    for make in generator.sample(TYPOS, len(TYPOS)):
        if changes := make(text, words):
            start, end, replacement = generator.choice(changes)
            return text[:start] + replacement + text[end:]
    return text


# The start and the end of a part of a text, and its replacement.
_Change = tuple[int, int, str]


def _swap(text: str, words: Sequence[tuple[int, int]]) -> list[_Change]:
    return [
        (index, index + 2, text[index + 1] + text[index])
        for index in _letters(text, words)
        if text[index + 1 : index + 2].isalpha() and text[index] != text[index + 1]
    ]


def _omit(text: str, words: Sequence[tuple[int, int]]) -> list[_Change]:
    # A word of one letter would vanish.
    longer = [(start, end) for start, end in words if end - start > 1]
    return [(index, index + 1, "") for index in _letters(text, longer)]


def _repeat(text: str, words: Sequence[tuple[int, int]]) -> list[_Change]:
    return [(index, index, text[index]) for index in _letters(text, words)]


def _type_beside(text: str, words: Sequence[tuple[int, int]]) -> list[_Change]:
    return [
        (index, index + 1, key)
        for index in _letters(text, words)
        for key in _keys_beside(text[index])
    ]


def _add_beside(text: str, words: Sequence[tuple[int, int]]) -> list[_Change]:
    return [
        (index + 1, index + 1, key)
        for index in _letters(text, words)
        for key in _keys_beside(text[index])
    ]


def _make_single(text: str, words: Sequence[tuple[int, int]]) -> list[_Change]:
    return [
        (index, index + 1, "")
        for index in _letters(text, words)
        if text[index + 1 : index + 2] == text[index]
    ]


def _omit_space(text: str, words: Sequence[tuple[int, int]]) -> list[_Change]:
    ends = {end for _, end in words}
    return [
        (start - 1, start, "")
        for start, _ in words
        if start - 1 in ends and text[start - 1] == " "
    ]


def _add_space(text: str, words: Sequence[tuple[int, int]]) -> list[_Change]:
    return [
        (index, index, " ") for start, end in words for index in range(start + 1, end)
    ]


TYPOS: Sequence[Callable[[str, Sequence[tuple[int, int]]], list[_Change]]] = (
    _swap,
    _omit,
    _repeat,
    _type_beside,
    _add_beside,
    _make_single,
    _omit_space,
    _add_space,
)


def _letters(text: str, words: Sequence[tuple[int, int]]) -> list[int]:
    """Return where the letters of words stand."""
    return [
        index
        for start, end in words
        for index in range(start, end)
        if text[index].isalpha()
    ]


def _keys_beside(letter: str) -> str:
    """Return the letters that stand beside one in its row, in its case."""
    small = letter.lower()
    for row in (row for keyboard in KEYBOARDS for row in keyboard):
        index = row.find(small)
        if index >= 0 and len(small) == 1:
            keys = row[max(0, index - 1) : index] + row[index + 1 : index + 2]
            return keys if letter == small else keys.upper()
    return ""


def _between_symbols(
    text: str, symbols: Sequence[str], write: Callable[[str], str]
) -> str:
    """Return a text that is rewritten between its user symbols."""
    if not symbols:
        return write(text)
    longest_first = sorted(symbols, key=len, reverse=True)
    pattern = re.compile(f"({'|'.join(map(re.escape, longest_first))})")
    parts = pattern.split(text)
    parts[::2] = map(write, parts[::2])
    return "".join(parts)


def _capitals(text: str, locale: str) -> str:
    if locales.language_code(locale) in _TURKIC:
        text = text.replace("i", "İ")
    return text.upper()


def _first_capital(letter: str, locale: str) -> str:
    if letter == "i" and locales.language_code(locale) in _TURKIC:
        return "İ"
    return letter.title()
