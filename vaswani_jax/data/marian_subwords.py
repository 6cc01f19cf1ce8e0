"""The subwords of a MarianMT model: a segmenter, and a list of subwords with ids."""

import hashlib
import json
import pathlib
import re
from collections.abc import Sequence

from vaswani_jax.core import types
from vaswani_jax.data.subwords import WORD_START, Subwords, spell_user_symbols

CODE = ">>[^<]*<<"


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
    def load_listed(
        cls, path: pathlib.Path, spellings_path: pathlib.Path
    ) -> "MarianSubwords":
        """Load the model in a file, and its list of subwords in another.

        Raises:
            FileNotFoundError: There is no such file.
            ValueError: A file is damaged.
        """
        model = Subwords.load(path).model  # An error names the file.
        try:
            spellings = json.loads(spellings_path.read_text(encoding="utf-8"))
            if not (
                isinstance(spellings, list)
                and all(isinstance(subword, str) for subword in spellings)
            ):
                raise ValueError("it is not a list of subwords")
        except ValueError as error:
            raise ValueError(f"{spellings_path} is damaged: {error}") from None
        return cls(model, spellings)

    def files(self, stem: str) -> dict[str, bytes]:
        """Return the files of the model and of the list, by their names."""
        text = json.dumps(self.spellings, ensure_ascii=False, indent=0)
        return {f"{stem}.spm": self.model, f"{stem}.json": text.encode()}

    @property
    def size(self) -> int:
        return len(self.spellings)

    @property
    def fingerprint(self) -> str:
        digest = hashlib.sha256(json.dumps(self.spellings).encode())
        digest.update(self.model)
        return digest.hexdigest()[:16]

    @property
    def is_bpe(self) -> bool:
        """False: an imported vocabulary is never sampled from."""
        return False

    def encode(
        self, texts: Sequence[str], *, dropout: float = 0.0, seed: Sequence[int] = (0,)
    ) -> list[list[int]]:
        """Return the ids of each text, see `Subwords.encode`; there is no dropout."""
        assert not dropout, "these models have no merges to leave out"
        codes: list[list[int]] = []
        segmented = []
        for text in texts:
            match = re.match(CODE, text) if self._codes else None
            codes.append([self.subword_id(match[0])] if match else [])
            segmented.append(text[match.end() :] if match else text)
        pieces = self._processor.encode(segmented, out_type=str, num_threads=-1)
        return [
            [*code, *map(self.subword_id, subwords)]
            for code, subwords in zip(codes, pieces, strict=True)
        ]

    def text(self, ids: Sequence[int]) -> str:
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
        missing = [symbol for symbol in symbols if symbol not in self.user_symbols]
        if not missing:
            return self
        added = [s for s in spell_user_symbols(missing) if s not in self._tokens]
        return MarianSubwords(self._extend_model(missing), [*self.spellings, *added])

    def is_byte(self, token: int) -> bool:
        return bool(re.fullmatch("<0x[0-9A-F]{2}>", self.subword(token)))
