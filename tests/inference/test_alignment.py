"""Subwords to words and attention to word pairs, by hand."""

import collections

import hypothesis
import numpy as np
import pytest
import sentencepiece
from hypothesis import strategies

from tests import settings
from vaswani_jax.core import types
from vaswani_jax.data.subwords import Subwords, parse_model
from vaswani_jax.data.tokenizer import WORD_START
from vaswani_jax.data.vocabulary import Vocabulary
from vaswani_jax.inference import alignment
from vaswani_jax.inference.results import Output


@pytest.fixture(scope="module")
def vocabulary() -> Vocabulary:
    data = settings.small_settings(
        **{"data.byte_fallback": True, "data.vocab_size": 270}
    ).data
    return settings.learn_vocabulary(["5 % of a b", "a b of"] * 20, data)


def test_a_subword_that_starts_no_word_belongs_to_the_one_before() -> None:
    words = alignment.words(["ab", "c", "d", " e", " f", "g", ""])
    assert words.tolist() == [0, 0, 0, 1, 2, 2, -1]
    # A piece that was cut inside a word begins one of its own.
    assert alignment.words(["c", " d"]).tolist() == [0, 1]


@hypothesis.given(strategies.lists(strategies.text("ab \t\u3000", max_size=4)))
def test_words_are_those_of_the_text(surfaces: list[str]) -> None:
    words = alignment.words(surfaces)
    assert set(range(len("".join(surfaces).split()))) >= set(words) - {-1}
    assert max(words, default=-1) + 1 <= len("".join(surfaces).split())
    for index, surface in enumerate(surfaces):
        text = "".join(surfaces[:index])
        goes_on = text[-1:].strip() and surface[:1].strip()
        if surface.strip():
            assert words[index] == len(text.split()) - bool(goes_on)
        else:
            assert words[index] == -1


@hypothesis.given(strategies.text("5a \u202f\u2003\x85%漢🙂", max_size=8))
@hypothesis.example("5\u202f% of")
def test_what_is_spelt_in_bytes_is_numbered_as_text(
    vocabulary: Vocabulary, line: str
) -> None:
    [ids] = vocabulary.encode([line])
    surfaces = alignment.subword_texts(vocabulary.target, ids)
    bytes_of_words: dict[int, bytes] = collections.defaultdict(bytes)
    for token, word in zip(ids, alignment.words(surfaces), strict=True):
        name = vocabulary.target.subword(token)
        is_byte = vocabulary.target.is_byte(token)
        bytes_of_words[word] += (
            bytes([int(name[1:-1], 16)]) if is_byte else name.encode()
        )
    bytes_of_words.pop(-1, None)
    spelt = [word.decode().strip(WORD_START) for word in bytes_of_words.values()]
    assert spelt == line.split()


def test_a_byte_that_is_no_character_is_a_letter(
    vocabulary: Vocabulary,
) -> None:
    names = ["<0xE2>", "<0x80>", "a", "<0xC2>", "<0x85>", "a"]
    ids = [vocabulary.target.subword_id(name) for name in names]
    surfaces = alignment.subword_texts(vocabulary.target, ids)
    # The decoded text has U+FFFD there.
    assert len(vocabulary.decode(ids).split()) == 2
    assert alignment.words(surfaces).tolist() == [0, 0, 0, -1, -1, 1]


def test_a_word_aligns_to_the_word_with_the_most_attention() -> None:
    source, target = np.array([0, 0, 1, 2, -1]), np.array([0, 1, 1, -1])
    attention = np.zeros((2, 4, 5))
    # Two halves of word 0 together outweigh word 1; the end mark never counts.
    attention[:, 0] = [0.15, 0.15, 0.2, 0.1, 0.4]
    # One head says word 2 and one says word 1, which is surer.
    attention[0, 1] = [0.0, 0.0, 0.3, 0.7, 0.0]
    attention[1, 1] = [0.0, 0.0, 0.9, 0.1, 0.0]
    attention[:, 2] = [0.1, 0.0, 0.5, 0.4, 0.0]
    attention[:, 3] = [0.0, 0.0, 0.0, 1.0, 0.0]
    assert alignment.pharaoh(attention, source_words=source, target_words=target) == [
        (0, 0),
        (1, 1),
    ]


def test_nothing_aligns_to_an_empty_source() -> None:
    attention = np.ones((1, 2, 1))
    assert (
        alignment.pharaoh(
            attention, source_words=np.array([-1]), target_words=np.array([0, -1])
        )
        == []
    )


def align(line: str, vocabulary: Vocabulary, *, longest: int = 99) -> str:
    """Align a line with a translation that repeats its subwords, in pieces."""
    [ids] = vocabulary.encode([line])
    pieces = [ids[n : n + longest] for n in range(0, len(ids), longest)]
    outputs = [Output(tuple(p), (*p, types.EOS_ID), 0.0) for p in pieces]
    weights = [np.eye(len(piece) + 1)[None] for piece in pieces]
    return alignment.align_line(line, outputs, weights, vocabulary=vocabulary)


@pytest.mark.parametrize("longest", [99, 2])
def test_source_words_are_those_of_the_text_that_is_given(
    vocabulary: Vocabulary, longest: int
) -> None:
    assert align("a b of", vocabulary) == "0-0 1-1 2-2"
    # A mark of direction is a word that is read as nothing, U+00A0 divides words,
    # U+200B does not; full-width letters and what is spelt in bytes are words.
    line = "\u200e a\u00a0\u00a0b\u200bb \uff4f\uff46\u3000漢 \t½"
    assert len(line.split()) == 6
    assert align(line, vocabulary) == "1-0 2-1 3-2 4-3 5-4"
    # What is read as nothing may end a word.
    assert align("a\u200e\u200f b\u202c \u202aof", vocabulary) == "0-0 1-1 2-2"
    assert align("\ufeff", vocabulary) == ""


def test_a_symbol_at_the_beginning_of_a_piece_is_no_repeated_tag() -> None:
    changes = {"data.user_symbols": "<1>", "data.vocab_size": 16}
    data = settings.small_settings(**changes).data
    symbols = settings.learn_vocabulary(["a b of <1>"] * 20, data)
    [ids] = symbols.encode(["a <1> of b"])
    names = [symbols.source.subword(token) for token in ids]
    [longest] = [index for index, name in enumerate(names) if "<1>" in name]
    assert align("a <1> of b", symbols, longest=longest) == "0-0 1-1 2-2 3-3"


def test_places_follow_a_normalisation_that_makes_words_of_one(
    vocabulary: Vocabulary,
) -> None:
    rules = [("½", "a b"), ("fi", ""), ("ⓐ", " a ")]
    proto = parse_model(vocabulary.source.model)
    spec = proto.normalizer_spec
    compiled = sentencepiece.SentencePieceNormalizer(norm_map=rules)
    spec.precompiled_charsmap = (
        type(spec)
        .FromString(compiled.serialized_normalizer_spec())
        .precompiled_charsmap
    )
    normalizing = Vocabulary.shared(Subwords(proto.SerializeToString()))
    assert normalizing.decode(*normalizing.encode(["½ fi bⓐb"])) == "a b b a b"
    assert align("½ fi bⓐb", normalizing) == "0-0 0-1 2-2 2-3 2-4"


def test_words_of_pieces_that_are_joined_without_spaces_go_on(
    vocabulary: Vocabulary,
) -> None:
    ids = [vocabulary.encode([text], target=True)[0] for text in ("b of", "ab a")]
    outputs = [Output(tuple(p), (*p, types.EOS_ID), 0.0) for p in ids]
    weights = [np.eye(len(piece) + 1)[None] for piece in ids]

    def align_joined(separator: str) -> str:
        return alignment.align_line(
            "b of ab a", outputs, weights, vocabulary=vocabulary, separator=separator
        )

    assert align_joined(" ") == "0-0 1-1 2-2 3-3"
    # "b ofab a": the second word begins in the first piece.
    assert align_joined("") == "0-0 1-1 3-2"
