"""Score how well a source and a target line match, learned from the text itself.

Words that are often in the same pairs are associated, as in models of word alignment.
Words that look alike (numbers, names, cognates) match without that.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

import numpy as np

from vaswani_jax.core import locales

# Only the first words of a line count, unless `words` is called with another limit.
MAX_WORDS = 40
# Words that begin alike, whatever their case and accents, count as cognates.
PREFIX = 4
# Pairs of words are counted in a table of 2 to this power.
_TABLE_BITS = 23
# The most pairs that associations are learned from.
MAX_LEARNED = 40_000
_CHUNK = 500
_WORD = re.compile(r"\w+|[?!:;()\[\]%€$£+=*/]")
# Odd numbers, by which ids are spread over the table.
_FACTORS = (np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F))
_MIXER = np.uint64(0xD6E8FEB86659FD93)


def words(line: str, *, limit: int | None = MAX_WORDS) -> list[str]:
    """Return the words of a line; of text without spaces, its pairs of characters.

    >>> words("Das kostet 3 €?"), words("今日は")
    (['das', 'kostet', '3', '€', '?'], ['今日', '日は'])

    Args:
        line: The line.
        limit: How many to return, the first ones; None for all.
    """
    matches = _WORD.findall(line.casefold())[:limit]
    if line.isascii() or not locales.LETTERS_WITHOUT_SPACES.search(line):
        return matches
    result: list[str] = []
    for word in matches:
        if len(word) > 1 and locales.LETTERS_WITHOUT_SPACES.search(word):
            result += [word[i : i + 2] for i in range(len(word) - 1)]
        else:
            result.append(word)
    return result[:limit]


def stem(word: str) -> str:
    """Return what cognates share: a number's value, or the first letters of a word.

    >>> stem("Österreich"), stem("Osterreicher"), stem("٣"), stem("2019")
    ('oste', 'oste', '3', '2019')
    """
    if word.isdecimal():
        # int() refuses very long numbers.
        digits = "".join(str(unicodedata.decimal(digit)) for digit in word)
        return digits.lstrip("0") or "0"
    plain = "".join(
        character
        for character in unicodedata.normalize("NFKD", word.casefold())
        if not unicodedata.combining(character)
    )
    has_digit = any(character.isdigit() for character in plain)
    return plain if has_digit or len(plain) < PREFIX else plain[:PREFIX]


class Index:
    """Numbers of words and of their stems, the stems of both sides alike."""

    def __init__(self) -> None:
        """Start with no word."""
        self._stems: dict[str, int] = {}

    @property
    def num_stems(self) -> int:
        """The number of different stems."""
        return len(self._stems)

    def side(self, lines: Sequence[str]) -> Side:
        """Return the words of the lines of one side."""
        ids: dict[str, int] = {}
        stems_of_ids: list[int] = []
        flat: list[int] = []
        offsets = np.zeros(len(lines) + 1, np.int64)
        for number, line in enumerate(lines):
            for word in words(line):
                if word not in ids:
                    ids[word] = len(ids)
                    stem_id = self._stems.setdefault(stem(word), len(self._stems))
                    stems_of_ids.append(stem_id)
                flat.append(ids[word])
            offsets[number + 1] = len(flat)
        return Side(np.array(flat, np.int32), offsets, np.array(stems_of_ids, np.int32))


class Side:
    """The words of one side's lines, as numbers."""

    def __init__(
        self, flat: np.ndarray, offsets: np.ndarray, stems: np.ndarray
    ) -> None:
        """Take the words of all lines, where each line begins, and the words' stems."""
        self._flat, self._offsets = flat, offsets
        # The last one is that of no word (-1).
        self._stems = np.append(stems, -1)
        self.num_words = len(stems)

    def padded(self, rows: np.ndarray) -> np.ndarray:
        """Return the words of lines, one line a row, -1 where a line is over."""
        begins, ends = self._offsets[rows], self._offsets[rows + 1]
        width = max(1, int((ends - begins).max(initial=0)))
        positions = begins[:, None] + np.arange(width)
        is_word = positions < ends[:, None]
        if not len(self._flat):
            return np.full(positions.shape, -1, np.int32)
        return np.where(is_word, self._flat[np.where(is_word, positions, 0)], -1)

    def stems(self, ids: np.ndarray) -> np.ndarray:
        """Return the stems of words."""
        return self._stems[ids]


class Associations:
    """Counts, over some pairs, of words and of words that stand in the same pair."""

    def __init__(self, source: Side, target: Side, rows: np.ndarray) -> None:
        """Learn from the pairs of some rows."""
        if len(rows) > MAX_LEARNED:
            rows = rows[np.arange(MAX_LEARNED) * len(rows) // MAX_LEARNED]
        self._num_pairs = max(1, len(rows))
        self._together = np.zeros(1 << _TABLE_BITS, np.float32)
        self._source_counts = np.zeros(source.num_words + 1, np.float32)
        self._target_counts = np.zeros(target.num_words + 1, np.float32)
        for begin in range(0, len(rows), _CHUNK):
            chunk = rows[begin : begin + _CHUNK]
            sides = _once(source.padded(chunk)), _once(target.padded(chunk))
            is_pair = (sides[0] >= 0)[:, :, None] & (sides[1] >= 0)[:, None, :]
            np.add.at(self._together, _cells(*sides)[is_pair], 1)
            np.add.at(self._source_counts, sides[0][sides[0] >= 0], 1)
            np.add.at(self._target_counts, sides[1][sides[1] >= 0], 1)

    def strengths(self, source: np.ndarray, target: np.ndarray) -> np.ndarray:
        """Return how strongly each word of lines goes with each of other lines.

        It is pointwise mutual information, where words stood together at least twice.

        Args:
            source: Words of source lines, one line a row.
            target: Words of as many target lines.
        """
        together = self._together[_cells(source, target)]
        expected = (
            self._source_counts[source][:, :, None]
            * self._target_counts[target][:, None, :]
            / self._num_pairs
        )
        strengths = np.log(np.maximum(together, 1) / (expected + 0.5))
        return np.where(together >= 2, np.maximum(strengths, 0), 0)


def share_of_words(lines: np.ndarray, other_lines: np.ndarray) -> np.ndarray:
    """Return the share of each line's words that another line of its side has, too."""
    is_word = lines >= 0
    is_shared = (lines[:, :, None] == other_lines[:, None, :]).any(2) & is_word
    return is_shared.sum(1) / np.maximum(1, is_word.sum(1))


def stem_weights(source: Side, target: Side, index: Index, num_rows: int) -> np.ndarray:
    """Return how much each stem says, by the share of lines that have it.

    The last weight is that of no word: 0.
    """
    counts = np.zeros(index.num_stems + 1, np.float32)
    for begin in range(0, num_rows, _CHUNK):
        rows = np.arange(begin, min(begin + _CHUNK, num_rows))
        for side in (source, target):
            stems = _once(side.stems(side.padded(rows)))
            np.add.at(counts, stems[stems >= 0], 1)
    weights = np.log(np.maximum(1, 2 * num_rows / (1 + counts)))
    weights[-1] = 0
    return weights


def scores(
    associations: Associations,
    weights: np.ndarray,
    *,
    source: tuple[Side, np.ndarray],
    target: tuple[Side, np.ndarray],
) -> np.ndarray:
    """Return how well lines go together, from 0.

    It is the mean strength of the strongest partner of each word, on both sides.

    Args:
        associations: What was learned, from other pairs than these.
        weights: Those of `stem_weights`.
        source: The source side and its lines.
        target: The target side and as many lines.
    """
    source_ids, target_ids = source[0].padded(source[1]), target[0].padded(target[1])
    source_stems = source[0].stems(source_ids)
    is_alike = source_stems[:, :, None] == target[0].stems(target_ids)[:, None, :]
    strengths = np.maximum(
        associations.strengths(source_ids, target_ids),
        weights[source_stems][:, :, None] * is_alike,
    )
    is_word = (source_ids >= 0)[:, :, None] & (target_ids >= 0)[:, None, :]
    strengths = np.where(is_word, strengths, 0)
    lengths = [np.maximum(1, (ids >= 0).sum(1)) for ids in (source_ids, target_ids)]
    result = strengths.max(2).sum(1) / lengths[0] + strengths.max(1).sum(1) / lengths[1]
    return np.asarray(result)


def _cells(source: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Return where pairs of words are counted."""
    # -1, no word, is a large number here, whose cell nobody looks at.
    left = source.astype(np.uint64)[:, :, None] * _FACTORS[0]
    hashes = (left ^ (target.astype(np.uint64)[:, None, :] * _FACTORS[1])) * _MIXER
    return (hashes >> np.uint64(64 - _TABLE_BITS)).astype(np.int64)


def _once(ids: np.ndarray) -> np.ndarray:
    """Return lines sorted, -1 instead of a word that is there already."""
    sorted_ids = np.sort(ids, axis=1)
    is_repeated = sorted_ids[:, 1:] == sorted_ids[:, :-1]
    sorted_ids[:, 1:][is_repeated] = -1
    return sorted_ids
