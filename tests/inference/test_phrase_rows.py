"""Phrases become arrays of few shapes, with their counts."""

import numpy as np

from tests import settings
from vaswani_jax.core import types
from vaswani_jax.data.vocabulary import Vocabulary
from vaswani_jax.inference import phrase_rows
from vaswani_jax.inference.phrases import Phrase


def test_few_shapes_are_compiled() -> None:
    def of_length(*lengths: int) -> list[Phrase]:
        return [Phrase(str(n), ids=(n,) * n) for n in lengths]

    assert phrase_rows.choose_padded_shape([]) == phrase_rows.SMALLEST == (4, 8)
    assert phrase_rows.choose_padded_shape([of_length(1, 2), of_length(8)]) == (4, 8)
    assert phrase_rows.choose_padded_shape(
        [of_length(1, 2, 3, 4, 5), of_length(9)]
    ) == (
        8,
        16,
    )
    # What is the same twice is one phrase.
    assert phrase_rows.choose_padded_shape([of_length(3) * 9]) == (4, 8)


def test_phrases_for_which_a_search_has_no_room_lose_their_ids() -> None:
    short, same, other = (Phrase("a", ids=(n,)) for n in (5, 5, 6))
    long, joined = Phrase("b", ids=(5, 6, 7)), Phrase("a", ends_word=False, ids=(5,))
    spaced = Phrase("a", ids=(5, 6), joined_ids=(7, 8, 9))
    [kept_spaced] = phrase_rows.keep_searchable([spaced], shape=(2, 2))
    assert (kept_spaced.ids, kept_spaced.joined_ids) == ((5, 6), ())
    kept = phrase_rows.keep_searchable([long, short, joined, same, other], shape=(2, 2))
    assert [phrase.ids for phrase in kept] == [(), (5,), (5,), (5,), ()]
    assert [phrase.text for phrase in kept] == ["b", "a", "a", "a", "a"]


def test_phrases_are_padded_with_their_counts() -> None:
    vocabulary: Vocabulary = settings.letters_vocabulary()
    twice = [Phrase("a", ids=(5, 6)), Phrase("b", ends_word=False, ids=(7,))] * 2
    padded = phrase_rows.pad_phrases(
        [twice, [], [Phrase("c")]], rows=4, shape=(4, 8), subwords=vocabulary.target
    )
    assert padded.tokens.shape == (4, 4, 8)
    assert padded.tokens[0, :2, :3].tolist() == [[5, 6, 0], [7, 0, 0]]
    assert padded.counts.tolist() == [[2, 2, 0, 0], *[[0] * 4] * 3]
    assert padded.are_words[0].tolist() == [True, False, False, False]
    bits = np.unpackbits(padded.breaks, axis=1)
    assert bits.shape[0] == 4 and bits[:, types.EOS_ID].all()
    assert padded.joined_tokens.shape == (4, 4, 8) and not padded.joined_tokens.any()
    joined = [Phrase("a", ids=(5, 6), joined_ids=(7, 8, 9))]
    padded = phrase_rows.pad_phrases(
        [joined], rows=1, shape=(4, 8), subwords=vocabulary.target
    )
    assert padded.joined_tokens[0, 0, :4].tolist() == [7, 8, 9, 0]
