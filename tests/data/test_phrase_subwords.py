"""Phrases inside sentences: their subwords, and those that end a word."""

import gc
import weakref

import numpy as np
import pytest
import sentencepiece

from tests import settings
from tests.data import small_vocabularies
from tests.data.test_marian_subwords import pair
from vaswani_jax.core import types
from vaswani_jax.data import phrase_subwords
from vaswani_jax.data.subwords import Subwords


def subwords_of(kind: str) -> Subwords:
    if kind == "marian":
        vocabulary, _ = pair()
        return vocabulary.target
    return small_vocabularies.trained(kind, True).target


kinds = pytest.mark.parametrize("kind", ["bpe", "unigram", "marian"])


@kinds
def test_a_phrase_has_the_subwords_that_it_has_in_a_sentence(kind: str) -> None:
    subwords = subwords_of(kind)
    for line in small_vocabularies.training_lines(3)[:20]:
        words = line.split(" ")
        phrase = " ".join(words[2:4])
        ids = phrase_subwords.encode_phrase(subwords, phrase, starts_word=True)
        [sentence] = subwords.encode([line])
        assert any(
            sentence[start : start + len(ids)] == ids for start in range(len(sentence))
        )
        assert subwords.starts_word(ids[0])


@kinds
def test_without_a_space_before_it_a_phrase_goes_on_with_a_word(kind: str) -> None:
    subwords = subwords_of(kind)
    for word in ("ba", "kori", "zu sen"):
        ids = phrase_subwords.encode_phrase(subwords, word, starts_word=False)
        assert not subwords.starts_word(ids[0])
        before = phrase_subwords.encode_phrase(subwords, "tu", starts_word=True)
        assert subwords.decode([*before, *ids]) == f"tu{word}"


@kinds
def test_what_follows_a_whole_word_has_a_space_or_is_no_letter(kind: str) -> None:
    subwords = subwords_of(kind)
    breaks = phrase_subwords.find_word_breaks(subwords)
    assert breaks.shape == (subwords.size,)
    assert breaks[types.EOS_ID]
    assert not breaks[types.PAD_ID]
    for token in range(types.UNK_ID + 1, subwords.size):
        if subwords.is_byte(token):
            continue
        text = "x" + subwords.surface(token)
        assert breaks[token] == (not text[1].isalnum())


def test_a_word_may_follow_a_bracket_or_a_quotation_mark_without_a_space() -> None:
    lines = ["a (b) „c“ d' - e/f. g, h! i <j> k-l "] * 20
    changes = {"data.vocab_size": 40, "data.byte_fallback": False}
    subwords = settings.learn_vocabulary(
        lines, settings.small_settings(**changes).data
    ).target
    openers = phrase_subwords.find_openers(subwords)
    last = {subwords.subword(int(n))[-1] for n in np.flatnonzero(openers)}
    others = {subwords.subword(int(n))[-1] for n in np.flatnonzero(~openers)}
    assert last == set("(„“'-/<>")
    assert others >= set("abc).,!▁")


def test_bytes_of_letters_go_on_with_a_word() -> None:
    subwords = subwords_of("bpe")
    breaks = phrase_subwords.find_word_breaks(subwords)
    is_break = {
        spelling: breaks[subwords.subword_id(spelling)]
        for spelling in ("<0x61>", "<0x2E>", "<0xC3>", "<0x9F>")
    }
    # a, a full stop, and the bytes of an ß.
    assert list(is_break.values()) == [False, True, False, False]


def test_marks_are_parts_of_words() -> None:
    word = "\u0939\u093f\u0928\u094d\u0926\u0940"  # Hindi, with vowel signs
    assert all(map(phrase_subwords.is_word_character, word))
    assert not any(map(phrase_subwords.is_word_character, " .,-'\u2014\u3002"))


def test_findings_about_a_tokenizer_are_kept_while_it_exists(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = subwords_of("bpe").model
    tokenizers = [Subwords(model) for _ in range(5)]
    constructions = []
    construct = sentencepiece.SentencePieceProcessor

    def count(*, model_proto: bytes) -> sentencepiece.SentencePieceProcessor:
        constructions.append(1)
        return construct(model_proto=model_proto)

    monkeypatch.setattr(sentencepiece, "SentencePieceProcessor", count)
    rounds: list[list[np.ndarray]] = []
    for _ in range(2):
        rounds.append([])
        for subwords in tokenizers:
            for starts_word in (True, False):
                phrase_subwords.encode_phrase(subwords, "ba", starts_word=starts_word)
            for find in (
                phrase_subwords.find_word_breaks,
                phrase_subwords.find_openers,
            ):
                rounds[-1].append(find(subwords))
    assert len(constructions) == 2 * len(tokenizers)
    for first, second in zip(*rounds, strict=True):
        assert first is second
    references = list(map(weakref.ref, tokenizers))
    del tokenizers, subwords
    gc.collect()
    assert not any(reference() for reference in references)
