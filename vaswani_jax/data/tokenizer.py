"""Define the interface of tokenizers, which turn text into ids and ids into text."""

import abc
import hashlib
import pathlib
from collections.abc import Sequence
from typing import Self

from vaswani_jax.core import types

# The space before a word, as SentencePiece writes it.
WORD_START = "\u2581"
# Spellings of the special ids, whatever a model calls them.
SPECIAL_SPELLINGS = ("<pad>", "<s>", "</s>", "<unk>")
# The text of the unknown subword, as SentencePiece writes it by default.
UNKNOWN = " \u2047 "


class Tokenizer(abc.ABC):
    """Turns the text of one side into ids, and ids into text.

    Attributes:
        model: The bytes from which it is loaded.
        spellings: The spelling of each id; the first are those of `core.types`.
    """

    def __init__(self, model: bytes, spellings: Sequence[str]) -> None:
        """Keep the spellings of ids.

        Args:
            model: The bytes from which this tokenizer is loaded.
            spellings: The spelling of each id, the four special ones first.
        """
        self.model = model
        self.spellings = list(spellings)
        self._tokens = {
            spelling: token
            for token, spelling in enumerate(spellings)
            if token > types.UNK_ID
        }

    @classmethod
    def load(cls, path: pathlib.Path) -> Self:
        """Load the tokenizer in a file.

        Raises:
            FileNotFoundError: There is no such file.
            ValueError: The file is damaged, or of another kind.
        """
        return cls.from_bytes(path.read_bytes(), path)

    @classmethod
    @abc.abstractmethod
    def from_bytes(cls, model: bytes, path: pathlib.Path) -> Self:
        """Load a tokenizer from the bytes of its file.

        Args:
            model: The bytes.
            path: The file, for errors.

        Raises:
            ValueError: They are damaged, or of another kind.
        """

    @abc.abstractmethod
    def to_files(self, stem: str) -> dict[str, bytes]:
        """Return the files that keep the tokenizer, by their names."""

    @property
    def size(self) -> int:
        """V: the number of ids, including the four special ones."""
        return len(self.spellings)

    @property
    def fingerprint(self) -> str:
        """The first 16 hexadecimal digits of the SHA-256 of all that makes its ids."""
        return hashlib.sha256(self.model).hexdigest()[:16]

    @property
    @abc.abstractmethod
    def accepts_dropout(self) -> bool:
        """True if `encode` accepts `dropout` (BPE-dropout)."""

    @abc.abstractmethod
    def encode(
        self,
        texts: Sequence[str],
        *,
        replace_unknown: bool = False,
        dropout: float = 0.0,
        seed: Sequence[int] = (0,),
    ) -> list[list[int]]:
        """Return the ids of each text, without begin and end marks.

        Args:
            texts: Lines without NUL, at which SentencePiece ends.
            replace_unknown: If True, replace characters that no subword has with
                equivalent ones; see `readings`.
            dropout: Probability to leave out each merge of BPE (Provilkov et al.,
                2020, "BPE-dropout").
            seed: Decides which merges are left out, within one process.
        """

    @abc.abstractmethod
    def unknown_characters(self, text: str, *, replace_unknown: bool) -> list[str]:
        """Return the characters of a text, or the symbols of a tree, that have no id.

        Args:
            text: A line without NUL.
            replace_unknown: As in `encode`.
        """

    @abc.abstractmethod
    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of ids, none of which is a mark or padding."""

    def subword(self, token: int) -> str:
        """Return the spelling of an id."""
        return self.spellings[int(token)]

    def subword_id(self, subword: str) -> int:
        """Return the id of a spelling, or `UNK_ID` if it has none.

        Here special spellings have none: in a text they are not special.
        """
        return self._tokens.get(subword, types.UNK_ID)

    def extend(self, symbols: Sequence[str]) -> "Tokenizer":
        """Return a tokenizer that keeps these symbols whole, too, if its kind can.

        Their ids come last. By default it is this tokenizer, unchanged.
        """
        return self

    def surface(self, token: int) -> str:
        """Return the text of one id, with the space before it; "" for a special id.

        The unknown subword is `UNKNOWN`, a byte that is a part of a character U+FFFD.
        """
        if token == types.UNK_ID:
            return UNKNOWN
        if token in (types.PAD_ID, types.BOS_ID, types.EOS_ID):
            return ""
        if self.is_byte(token):
            return bytes([int(self.subword(token)[1:-1], 16)]).decode(errors="replace")
        return self.subword(token).replace(WORD_START, " ")

    @abc.abstractmethod
    def starts_word(self, token: int) -> bool:
        """Return True if an id begins a new word."""

    @abc.abstractmethod
    def is_byte(self, token: int) -> bool:
        """Return True if an id spells one byte."""

    def starts_character(self, token: int) -> bool:
        """Return False if an id continues the bytes of a character."""
        if not self.is_byte(token):
            return True
        byte = int(self.subword(token)[1:-1], 16)
        return byte & 0b1100_0000 != 0b1000_0000
