"""Find the word that each subword of a sentence pair is a part of."""

import itertools
from collections.abc import Iterable, Sequence

import numpy as np

from vaswani_jax.core import config, languages, types
from vaswani_jax.data.vocabulary import Vocabulary
from vaswani_jax.data.word_subwords import WordSubwords
from vaswani_jax.inference import alignment


def of_source(
    line: str, ids: Sequence[int], *, vocabulary: Vocabulary, data: config.DataConfig
) -> tuple[int, ...]:
    """Return the word of each subword of a line and of its end mark, which is -1.

    White space separates words; a parser's words are those of its trees. In a
    language without spaces each subword is a word.

    Args:
        line: The line as it was given.
        ids: Its subwords, without the end mark.
        vocabulary: The subwords of both sides.
        data: The languages.
    """
    if isinstance(vocabulary.source, WordSubwords):
        starts = vocabulary.source.word_starts[list(ids)]
        return (*(np.cumsum(starts) - 1).tolist(), -1)
    if not languages.has_spaces(data.source_locale, data):
        return (*range(len(ids)), -1)
    [numbers] = alignment.source_words(line, [ids], vocabulary=vocabulary)
    return (*_without_gaps(numbers[:-1].tolist()), -1)


def of_target(
    line: str, ids: Sequence[int], *, vocabulary: Vocabulary, data: config.DataConfig
) -> tuple[int, ...]:
    """Return the word of each subword of a translation; -1 for the end mark.

    Words are as in `of_source`; each symbol of a tree is a word.

    Args:
        line: The source line, whose tag may name the target language.
        ids: The translation's subwords, with the end mark if there is one.
        vocabulary: The subwords of both sides.
        data: The languages.
    """
    num_ends = int(bool(ids) and ids[-1] == types.EOS_ID)
    inner = ids[: len(ids) - num_ends]
    if vocabulary.is_trees or not languages.has_spaces(
        languages.line_locale(line, data), data
    ):
        numbers: Iterable[int] = range(len(inner))
    else:
        [parts] = alignment.target_words([inner], vocabulary.target, separator=" ")
        numbers = _without_gaps(parts.tolist())
    return (*numbers, *[-1] * num_ends)


def _without_gaps(numbers: Sequence[int]) -> list[int]:
    """Return the number of each subword's word, without gaps in the numbers.

    A subword of no word, such as a space, belongs to the next word, or at the end to
    the last.

    >>> _without_gaps([-1, 1, -1, -1, 3, -1]), _without_gaps([-1, -1])
    ([0, 0, 1, 1, 1, 1], [0, 0])
    """
    following = itertools.accumulate(
        reversed(numbers),
        lambda next_word, number: next_word if number < 0 else number,
        initial=max(numbers, default=0),
    )
    filled = [*following][:0:-1]
    order = {number: word for word, number in enumerate(sorted({*filled}))}
    return [order[number] for number in filled]
