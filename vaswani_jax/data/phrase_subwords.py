"""The subwords of a phrase inside a sentence, and where its last word ends."""

import functools
import unicodedata
import weakref
from collections.abc import Callable
from typing import TypeVar

import numpy as np
import sentencepiece
from jaxtyping import Bool

from vaswani_jax.core import types
from vaswani_jax.data.subwords import Subwords, parse_model
from vaswani_jax.data.tokenizer import WORD_START, Tokenizer

TokenizerType = TypeVar("TokenizerType", bound=Tokenizer)
Value = TypeVar("Value")
# A word after one of these follows a space.
END_MARKS = ".,;:!?…·。，、；：！？।؟،؛"


def is_word_character(character: str) -> bool:
    """Return True for letters and digits, and for marks that belong to them.

    >>> [is_word_character(character) for character in "aß7_-."]
    [True, True, True, True, False, False]
    """
    return (
        character.isalnum()
        or character == "_"
        or unicodedata.category(character).startswith("M")
    )


def is_inside_word(text: str, index: int) -> bool:
    """Return True if a word goes on from before an index to after it."""
    neighbours = text[max(0, index - 1) : index + 1]
    return 0 < index < len(text) and all(map(is_word_character, neighbours))


def _keep_with_tokenizer(
    find: Callable[[TokenizerType], Value],
) -> Callable[[TokenizerType], Value]:
    """Make a function keep what it returns for as long as the tokenizer exists.

    A server may have any number of models, and replaces those that change.
    """
    values: weakref.WeakKeyDictionary[TokenizerType, Value] = (
        weakref.WeakKeyDictionary()
    )

    @functools.wraps(find)
    def find_once(subwords: TokenizerType) -> Value:
        value = values.get(subwords)
        if value is None:
            value = values[subwords] = find(subwords)
        return value

    return find_once


@_keep_with_tokenizer
def find_word_breaks(subwords: Tokenizer) -> Bool[np.ndarray, "V"]:
    """Return True for each id before which a word has ended.

    These are subwords with a space before them, punctuation and the end mark. Bytes of
    unknown characters may be letters.
    """
    return np.array([_is_break(subwords, token) for token in range(subwords.size)])


def _is_break(subwords: Tokenizer, token: int) -> bool:
    if token <= types.UNK_ID:
        return token in (types.EOS_ID, types.UNK_ID)
    spelling = subwords.subword(token)
    if subwords.is_byte(token):
        byte = int(spelling[1:-1], 16)
        return byte < 0x80 and not is_word_character(chr(byte))
    return spelling.startswith(WORD_START) or not is_word_character(spelling[0])


@_keep_with_tokenizer
def find_openers(subwords: Tokenizer) -> Bool[np.ndarray, "V"]:
    """Return True for each id after which a word may begin without a space.

    Their last character is an opening bracket, a quotation mark, an apostrophe, a
    hyphen or another sign. Closing brackets and the marks that end a sentence or a
    clause do not count.
    """
    return np.array([_is_opener(subwords, token) for token in range(subwords.size)])


def _is_opener(subwords: Tokenizer, token: int) -> bool:
    if token <= types.UNK_ID:
        return False
    spelling = subwords.subword(token)
    if subwords.is_byte(token):
        byte = int(spelling[1:-1], 16)
        if byte >= 0x80:
            return False
        spelling = chr(byte)
    last = spelling[-1]
    return not (
        last == WORD_START
        or last.isspace()
        or is_word_character(last)
        or last in END_MARKS
        or unicodedata.category(last) in ("Pe", "Cc")
    )


def encode_phrase(subwords: Subwords, text: str, *, starts_word: bool) -> list[int]:
    """Return the ids of a phrase as it stands inside a sentence.

    Args:
        subwords: Those of its language.
        text: A line without NUL.
        starts_word: Whether a space is before it.
    """
    processor = _processors(subwords)[starts_word]
    return [
        subwords.subword_id(subword) for subword in processor.encode(text, out_type=str)
    ]


@_keep_with_tokenizer
def _processors(
    subwords: Subwords,
) -> dict[bool, sentencepiece.SentencePieceProcessor]:
    """Return the processors of phrases: True, with a space before them, and False."""
    proto = parse_model(subwords.model)
    processors = {}
    for starts_word in (True, False):
        proto.normalizer_spec.add_dummy_prefix = starts_word
        processors[starts_word] = sentencepiece.SentencePieceProcessor(
            model_proto=proto.SerializeToString()
        )
    return processors
