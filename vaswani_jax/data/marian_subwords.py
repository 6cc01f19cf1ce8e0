"""The subwords of a MarianMT model: a segmenter, and a list of subwords with ids."""

import hashlib
import json
import pathlib
import re
from collections.abc import Sequence

from vaswani_jax.core import types
from vaswani_jax.data import readings
from vaswani_jax.data.subwords import Subwords, spell_user_symbols
from vaswani_jax.data.tokenizer import WORD_START

CODE = ">>[^<]*<<"
# White space, a byte-order mark or the like may stand before it.
LEADING_CODE = rf"[\s{''.join(sorted(readings.INVISIBLE))}]*({CODE})"


class MarianSubwords(Subwords):
    """Subwords of a SentencePiece model, with ids by their spelling.

    If the list has language codes, as ">>fra<<", a line may begin with one, which names
    the language to translate into. A code that it lacks is unknown.
    """

    def __init__(self, model: bytes, spellings: Sequence[str]) -> None:
        """Load the model.

        Args:
            model: The SentencePiece model that segments.
            spellings: The spelling of each id, the special ones in the order of
                `core.types`.

        Raises:
            RuntimeError: The model is not one of SentencePiece.
        """
        super().__init__(model)
        self.spellings = list(spellings)
        self._tokens = {
            subword: token
            for token, subword in enumerate(self.spellings)
            if token > types.UNK_ID
        }
        self._codes = {
            token
            for subword, token in self._tokens.items()
            if re.fullmatch(CODE, subword)
        }

    @classmethod
    def parse_listed(
        cls,
        model: bytes,
        path: pathlib.Path,
        listed: bytes,
        spellings_path: pathlib.Path,
    ) -> "MarianSubwords":
        """Load a model and its list of subwords, the bytes of the files at two paths.

        Raises:
            ValueError: A file is damaged.
        """
        Subwords.from_bytes(model, path)  # An error names the file.
        try:
            spellings = json.loads(listed)
            if not (
                isinstance(spellings, list)
                and all(isinstance(subword, str) for subword in spellings)
            ):
                raise ValueError("it is not a list of subwords")
        except ValueError as error:
            raise ValueError(f"{spellings_path} is damaged: {error}") from None
        return cls(model, spellings)

    def to_files(self, stem: str) -> dict[str, bytes]:
        """Return the files of the model and of the list, by their names."""
        text = json.dumps(self.spellings, ensure_ascii=False, indent=0)
        return {f"{stem}.spm": self.model, f"{stem}.json": text.encode()}

    @property
    def fingerprint(self) -> str:
        digest = hashlib.sha256(json.dumps(self.spellings).encode())
        digest.update(self.model)
        return digest.hexdigest()[:16]

    @property
    def accepts_dropout(self) -> bool:
        """False: an imported vocabulary is never sampled from."""
        return False

    def encode(
        self,
        texts: Sequence[str],
        *,
        replace_unknown: bool = False,
        dropout: float = 0.0,
        seed: Sequence[int] = (0,),
    ) -> list[list[int]]:
        """Return the ids of each text, see `Subwords.encode`; there is no dropout."""
        assert not dropout, "these models have no merges to leave out"
        matches = [self._match_code(text) for text in texts]
        lines_without_tags = [
            text[match.end() :] if match else text
            for text, match in zip(texts, matches, strict=True)
        ]
        processor = (
            self._reader_of(lines_without_tags) if replace_unknown else self._processor
        )
        pieces = processor.encode(lines_without_tags, out_type=str, num_threads=-1)
        return [
            [*([self.subword_id(match[1])] if match else []), *map(self.subword_id, p)]
            for match, p in zip(matches, pieces, strict=True)
        ]

    def find_spans(self, text: str) -> list[tuple[int, int]]:
        match = self._match_code(text)
        if not match:
            return super().find_spans(text)
        spans = super().find_spans(text[match.end() :])
        return [
            match.span(),
            *((begin + match.end(), end + match.end()) for begin, end in spans),
        ]

    def unknown_characters(self, text: str, *, replace_unknown: bool) -> list[str]:
        match = self._match_code(text)
        text = text[match.end() :] if match else text
        return super().unknown_characters(text, replace_unknown=replace_unknown)

    def _match_code(self, text: str) -> re.Match[str] | None:
        """Return the code that a text begins with, if the list has any codes."""
        return re.match(LEADING_CODE, text) if self._codes else None

    @property
    def _symbols(self) -> frozenset[int]:
        return self._tags | self._codes

    def decode(self, ids: Sequence[int]) -> str:
        subwords = [self.spellings[token] for token in ids]
        text = str(self._processor.decode_pieces(subwords))
        # A model takes a subword of the other language alone for text.
        return text.replace(WORD_START, " ").strip(" ")

    def num_tags(self, ids: Sequence[int]) -> int:
        """Return how many ids at the start are a language's code or user symbols."""
        num_codes = int(bool(ids) and ids[0] in self._codes)
        return num_codes + super().num_tags(ids[num_codes:])

    def extend(self, symbols: Sequence[str]) -> "MarianSubwords":
        """Return subwords that keep these symbols whole, too; their ids come last."""
        missing = [s for s in dict.fromkeys(symbols) if s not in self.user_symbols]
        if not missing:
            return self
        new_symbols = [s for s in spell_user_symbols(missing) if s not in self._tokens]
        return MarianSubwords(
            self._extend_model(missing), [*self.spellings, *new_symbols]
        )

    def is_byte(self, token: int) -> bool:
        return bool(re.fullmatch("<0x[0-9A-F]{2}>", self.subword(token)))
