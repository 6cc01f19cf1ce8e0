"""Make arrays of the phrases of a batch's sentences, for `banks`."""

import collections
import dataclasses
from collections.abc import Iterable, Sequence

import numpy as np

from vaswani_jax.data import phrase_subwords
from vaswani_jax.data.tokenizer import Tokenizer
from vaswani_jax.inference.banks import PhraseRows
from vaswani_jax.inference.phrases import Phrase, with_space_alone

# The ids of a phrase, those without a space, and whether a word must end with it.
_SearchKey = tuple[tuple[int, ...], tuple[int, ...], bool]
# The smallest numbers of phrases, and of their tokens, that a search is compiled for.
SMALLEST = (4, 8)


def choose_padded_shape(phrases: Iterable[Sequence[Phrase]]) -> tuple[int, int]:
    """Return C and L of a search for the phrases of some sentences.

    They are powers of two; `choose_padded_shape` of few short ones is `SMALLEST`.
    """
    numbers, lengths = [SMALLEST[0]], [SMALLEST[1]]
    for of_sentence in phrases:
        different = _count_different(of_sentence)
        numbers.append(len(different))
        lengths += [max(len(ids), len(joined_ids)) for ids, joined_ids, _ in different]
    return _power_of_two(max(numbers)), _power_of_two(max(lengths))


def keep_searchable(
    phrases: Sequence[Phrase], *, shape: tuple[int, int]
) -> tuple[Phrase, ...]:
    """Clear the ids of the phrases of a sentence for which a search has no room.

    Args:
        phrases: The phrases.
        shape: C and L of the search.
    """
    phrases = [
        phrase if len(phrase.joined_ids) <= shape[1] else with_space_alone(phrase)
        for phrase in phrases
    ]
    searchable: set[_SearchKey] = set()
    for phrase in phrases:
        if 0 < len(phrase.ids) <= shape[1] and len(searchable) < shape[0]:
            searchable.add(_search_key(phrase))
    return tuple(
        phrase
        if _search_key(phrase) in searchable
        else dataclasses.replace(phrase, ids=(), joined_ids=())
        for phrase in phrases
    )


def pad_phrases(
    phrases: Sequence[Sequence[Phrase]],
    *,
    rows: int,
    shape: tuple[int, int],
    subwords: Tokenizer,
) -> PhraseRows:
    """Return the phrases of a batch's sentences as arrays.

    Args:
        phrases: Those of each sentence.
        rows: The rows of the batch, at least as many.
        shape: C and L, at least `choose_padded_shape`.
        subwords: Those of the target.
    """
    tokens, joined_tokens = np.zeros((2, rows, *shape), np.int32)
    counts = np.zeros((rows, shape[0]), np.int32)
    are_words = np.zeros((rows, shape[0]), bool)
    for row, of_sentence in enumerate(phrases):
        different = _count_different(of_sentence)
        for index, ((ids, joined_ids, is_word), count) in enumerate(different.items()):
            tokens[row, index, : len(ids)] = ids
            joined_tokens[row, index, : len(joined_ids)] = joined_ids
            counts[row, index], are_words[row, index] = count, is_word
    breaks, openers = (
        np.tile(np.packbits(find(subwords)), (rows, 1))
        for find in (phrase_subwords.find_word_breaks, phrase_subwords.find_openers)
    )
    return PhraseRows(tokens, counts, are_words, breaks, joined_tokens, openers)


def _search_key(phrase: Phrase) -> _SearchKey:
    """Return what a search knows of a phrase."""
    return phrase.ids, phrase.joined_ids, phrase.ends_word


def _count_different(phrases: Sequence[Phrase]) -> collections.Counter[_SearchKey]:
    """Return how often each phrase that is searched must occur."""
    return collections.Counter(_search_key(phrase) for phrase in phrases if phrase.ids)


def _power_of_two(number: int) -> int:
    return 1 << (number - 1).bit_length()
