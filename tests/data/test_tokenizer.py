"""What every tokenizer inherits, with one that spells a text by its UTF-8 bytes."""

import hashlib

import pytest

from vaswani_jax.core import types
from vaswani_jax.data.tokenizer import SPECIAL_SPELLINGS, WORD_START, Tokenizer

# Characters of one, two, three and four bytes.
TEXT = "aß€𝄞"


class Bytes(Tokenizer):
    """The special ids, the 256 bytes, and one word with the space before it."""

    @classmethod
    def parse(cls, model, path):
        if model != b"bytes":
            raise ValueError(f"{path}: not a file of bytes")
        byte_spellings = [f"<0x{byte:02X}>" for byte in range(256)]
        return cls(model, [*SPECIAL_SPELLINGS, *byte_spellings, f"{WORD_START}word"])

    def files(self, stem):
        return {f"{stem}.bytes": self.model}

    @property
    def is_bpe(self):
        return False

    def encode(self, texts, *, reads=False, dropout=0.0, seed=(0,)):
        return [[4 + byte for byte in text.encode()] for text in texts]

    def unknown_characters(self, text, *, reads=True):
        return []

    def text(self, ids):
        return bytes(token - 4 for token in ids).decode()

    def starts_word(self, token):
        return not self.is_byte(token)

    def is_byte(self, token):
        return 4 <= token < 260


@pytest.fixture
def tokenizer(tmp_path):
    path = tmp_path / "text.bytes"
    path.write_bytes(b"bytes")
    return Bytes.load(path)


def test_a_file_is_loaded_by_its_kind(tmp_path):
    with pytest.raises(FileNotFoundError, match="none"):
        Bytes.load(tmp_path / "none")
    (tmp_path / "other").write_bytes(b"trees")
    with pytest.raises(ValueError, match="other: not a file of bytes"):
        Bytes.load(tmp_path / "other")


def test_size_and_fingerprint_are_those_of_the_model(tokenizer):
    assert tokenizer.size == 4 + 256 + 1
    assert tokenizer.fingerprint == hashlib.sha256(b"bytes").hexdigest()[:16]


def test_ids_have_spellings_and_special_spellings_have_no_ids(tokenizer):
    ordinary = range(4, tokenizer.size)
    spellings = [tokenizer.subword(token) for token in ordinary]
    assert [tokenizer.subword_id(spelling) for spelling in spellings] == list(ordinary)
    for spelling in (*SPECIAL_SPELLINGS, "absent"):
        assert tokenizer.subword_id(spelling) == types.UNK_ID


def test_a_kind_that_cannot_keep_symbols_whole_stays_unchanged(tokenizer):
    assert tokenizer.extend(["<red>"]) is tokenizer


def test_a_character_starts_where_the_bytes_so_far_are_whole(tokenizer):
    [ids] = tokenizer.encode([TEXT])
    encoded = TEXT.encode()
    for place, token in enumerate(ids):
        try:
            encoded[:place].decode()
            is_whole = True
        except UnicodeDecodeError:
            is_whole = False
        assert tokenizer.starts_character(token) == is_whole, place
    assert tokenizer.starts_character(tokenizer.size - 1)


def test_the_surface_of_an_id_is_its_text_alone(tokenizer):
    [ids] = tokenizer.encode([TEXT])
    surfaces = [tokenizer.surface(token, unknown="?") for token in ids]
    assert surfaces == ["a", *["\ufffd"] * 9]
    assert tokenizer.surface(tokenizer.size - 1, unknown="?") == " word"
    specials = (types.PAD_ID, types.BOS_ID, types.EOS_ID, types.UNK_ID)
    assert [tokenizer.surface(token, unknown="?") for token in specials] == [
        *["", "", ""],
        "?",
    ]
