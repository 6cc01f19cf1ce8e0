"""Aligned words are characters of both texts, whatever the language."""

import numpy as np
import pytest

from tests import settings
from tests.data import small_vocabularies
from tests.service.shouting import ShoutingEngine
from vaswani_jax.inference.results import AttendedPair, Attention
from vaswani_jax.service import alignments


def pair_of(vocabulary, line, text):
    """A pair whose n-th target subword looks at the n-th source subword."""
    source = vocabulary.encode([line])[0]
    ids = [*vocabulary.encode([text], target=True)[0], 3]
    memory = np.zeros((1, 1, len(ids), len(source) + 1))
    for row in range(len(ids)):
        memory[0, 0, row, min(row, len(source))] = 1.0
    names, size = ("x",) * len(ids), len(source) + 1
    attention = Attention(
        source=("x",) * size,
        target_in=names,
        target_out=names,
        encoder=np.zeros((1, 1, size, size)),
        decoder=np.zeros((1, 1, len(ids), len(ids))),
        memory=memory,
    )
    return AttendedPair(text, tuple(source), tuple(ids), (0.0,) * len(ids), attention)


def test_a_placeholder_at_the_beginning_is_a_word_and_a_tag_is_none():
    changes = {"data.user_symbols": "<x>,<1>", "data.vocab_size": 18}
    small = settings.small_settings(**settings.TAGGED | changes)
    vocabulary = settings.learn_vocabulary(["a b of <1> <x>"] * 20, small.data)
    for line, first in (("<1> a b", 0), ("<x> a b", 4)):
        pairs = alignments.pairs_of(
            line,
            pair_of(vocabulary, line, line),
            vocabulary=vocabulary,
            data=small.data,
        )
        assert min(begin for begin, *_ in pairs) == first


def test_a_character_in_bytes_at_the_beginning_is_a_word():
    small = settings.small_settings(**{"data.byte_fallback": True})
    vocabulary = settings.letters_vocabulary()
    pair = pair_of(vocabulary, "\N{SLIGHTLY SMILING FACE} a", "a b c d e f")
    pairs = alignments.pairs_of(
        "\N{SLIGHTLY SMILING FACE} a", pair, vocabulary=vocabulary, data=small.data
    )
    # The n-th target subword looks at the n-th source subword; the first four or five
    # of these are bytes.
    assert [begin for begin, *_ in pairs][:4] == [0, 0, 0, 0]


TEXTS = ["ba  ko", " ri tusen ", "日本", "ba日 ko", "日日", ""]


@pytest.mark.parametrize("locale", ["de", "ja"])
@pytest.mark.parametrize("text", TEXTS)
def test_equal_texts_align_with_themselves(locale, text):
    vocabulary = small_vocabularies.trained("bpe", True)
    data = ShoutingEngine(
        **{"data.source_locale": locale, "data.target_locale": locale}
    ).translator.config.data
    pairs = alignments.pairs_of(
        text,
        pair_of(vocabulary, text, text),
        vocabulary=vocabulary,
        data=data,
    )
    assert bool(pairs) == bool(text.strip())
    for begin, end, target_begin, target_end in pairs:
        part = text[begin:end]
        assert part and part == part.strip()
        assert part == text[target_begin:target_end]
