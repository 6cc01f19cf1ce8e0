"""Test what every tokenizer inherits, on one that spells a text by its UTF-8 bytes."""

import hashlib

import pytest

from vaswani_jax.core import types
from vaswani_jax.data.tokenizer import (
    SPECIAL_SPELLINGS,
    UNKNOWN,
    WORD_START,
    Tokenizer,
)

# Characters of one, two, three and four bytes.
TEXT = "aß€𝄞"
FIRST_BYTE_ID = len(SPECIAL_SPELLINGS)
WORD_ID = FIRST_BYTE_ID + 256


class ByteTokenizer(Tokenizer):
    """The special ids, the 256 bytes, and one word with the space before it."""

    @classmethod
    def from_bytes(cls, model, path):
        if model != b"bytes":
            raise ValueError(f"{path}: not a file of bytes")
        byte_spellings = [f"<0x{byte:02X}>" for byte in range(256)]
        return cls(model, [*SPECIAL_SPELLINGS, *byte_spellings, f"{WORD_START}word"])

    def to_files(self, stem):
        return {f"{stem}.bytes": self.model}

    @property
    def accepts_dropout(self):
        return False

    def encode(self, texts, *, reposition_unknown=False, dropout=0.0, seed=(0,)):
        return [[FIRST_BYTE_ID + byte for byte in text.encode()] for text in texts]

    def unknown_characters(self, text, *, reposition_unknown):
        return []

    def decode(self, ids):
        return bytes(token - FIRST_BYTE_ID for token in ids).decode()

    def starts_word(self, token):
        return not self.is_byte(token)

    def is_byte(self, token):
        return FIRST_BYTE_ID <= token < WORD_ID


@pytest.fixture
def tokenizer(tmp_path):
    path = tmp_path / "text.bytes"
    path.write_bytes(b"bytes")
    return ByteTokenizer.load(path)


def test_loading_refuses_a_missing_file_and_one_of_another_kind(tmp_path):
    with pytest.raises(FileNotFoundError, match="none"):
        ByteTokenizer.load(tmp_path / "none")
    (tmp_path / "other").write_bytes(b"trees")
    with pytest.raises(ValueError, match="other: not a file of bytes"):
        ByteTokenizer.load(tmp_path / "other")


def test_size_and_fingerprint_are_those_of_the_model(tokenizer):
    assert tokenizer.size == WORD_ID + 1
    assert tokenizer.fingerprint == hashlib.sha256(b"bytes").hexdigest()[:16]


def test_ids_have_spellings_and_special_spellings_have_no_ids(tokenizer):
    ordinary = range(FIRST_BYTE_ID, tokenizer.size)
    spellings = [tokenizer.subword(token) for token in ordinary]
    assert [tokenizer.subword_id(spelling) for spelling in spellings] == list(ordinary)
    for spelling in (*SPECIAL_SPELLINGS, "absent"):
        assert tokenizer.subword_id(spelling) == types.UNK_ID


def test_a_kind_that_cannot_keep_symbols_whole_stays_unchanged(tokenizer):
    assert tokenizer.extend(["<red>"]) is tokenizer


def test_a_character_starts_where_the_bytes_so_far_are_whole(tokenizer):
    [ids] = tokenizer.encode([TEXT])
    encoded = TEXT.encode()
    for position, token in enumerate(ids):
        try:
            encoded[:position].decode()
            is_whole = True
        except UnicodeDecodeError:
            is_whole = False
        assert tokenizer.starts_character(token) == is_whole, position
    assert tokenizer.starts_character(WORD_ID)


def test_the_surface_of_an_id_is_its_text_alone(tokenizer):
    [ids] = tokenizer.encode([TEXT])
    surfaces = [tokenizer.surface(token) for token in ids]
    assert surfaces == ["a", *["\ufffd"] * 9]
    assert tokenizer.surface(WORD_ID) == " word"
    special_ids = (types.PAD_ID, types.BOS_ID, types.EOS_ID, types.UNK_ID)
    assert [tokenizer.surface(token) for token in special_ids] == [
        *["", "", ""],
        UNKNOWN,
    ]
