"""The vocabulary of a MarianMT model: two segmenters, one list of subwords."""

import hashlib
import json
import pathlib
import re
from collections.abc import Sequence

import sentencepiece

from vaswani_jax.core import types
from vaswani_jax.data import vocabulary

FILES = ("source.spm", "target.spm")
SUBWORDS = "vocabulary.json"
CODE = ">>[^<]*<<"


class MarianVocabulary(vocabulary.Vocabulary):
    """Subwords of two SentencePiece models, with ids by their spelling.

    If the vocabulary has language codes, as ">>fra<<", a line may begin with one,
    which names the language to translate into. A code that it lacks is unknown.
    """

    def __init__(self, models: tuple[bytes, bytes], subwords: Sequence[str]) -> None:
        """Load the models.

        Args:
            models: The SentencePiece models of the source and of the target.
            subwords: The spelling of each id, the special ones in the order of
                `core.types`.

        Raises:
            RuntimeError: A model is not one of SentencePiece.
        """
        self._models = models
        self._processors = [
            sentencepiece.SentencePieceProcessor(model_proto=model) for model in models
        ]
        self._subwords = list(subwords)
        self._ids = {
            subword: token
            for token, subword in enumerate(self._subwords)
            if token > types.UNK_ID
        }
        self._codes = {
            token for subword, token in self._ids.items() if re.fullmatch(CODE, subword)
        }

    def save(self, directory: pathlib.Path) -> None:
        """Write the vocabulary's three files into a directory."""
        for name, model in zip(FILES, self._models, strict=True):
            (directory / name).write_bytes(model)
        text = json.dumps(self._subwords, ensure_ascii=False, indent=0)
        (directory / SUBWORDS).write_text(text, encoding="utf-8")

    @property
    def models(self) -> tuple[bytes, bytes]:
        return self._models

    @property
    def size(self) -> int:
        return len(self._subwords)

    @property
    def fingerprint(self) -> str:
        digest = hashlib.sha256(json.dumps(self._subwords).encode())
        for model in self._models:
            digest.update(hashlib.sha256(model).digest())
        return digest.hexdigest()[:16]

    @property
    def is_bpe(self) -> bool:
        """False: an imported vocabulary is never sampled from."""
        return False

    def encode(
        self,
        lines: Sequence[str],
        *,
        target: bool = False,
        dropout: float = 0.0,
        seed: Sequence[int] = (0,),
    ) -> list[list[int]]:
        """Return the ids of each line, see `Vocabulary.encode`; there is no dropout."""
        assert not dropout, "these models have no merges to leave out"
        codes: list[list[int]] = []
        texts = []
        for line in vocabulary.clean_lines(lines):
            match = re.match(CODE, line) if self._codes else None
            codes.append([self.subword_id(match[0])] if match else [])
            texts.append(line[match.end() :] if match else line)
        processor = self._processors[target]
        segmented = processor.encode(texts, out_type=str, num_threads=-1)
        return [
            [*code, *map(self.subword_id, subwords)]
            for code, subwords in zip(codes, segmented, strict=True)
        ]

    def num_language_codes(self, ids: Sequence[int]) -> int:
        return int(bool(ids) and ids[0] in self._codes)

    def _text(self, ids: Sequence[int]) -> str:
        subwords = [self._subwords[token] for token in ids]
        text = str(self._processors[1].decode_pieces(subwords))
        # The target's model takes a subword of the source alone for text.
        return text.replace(vocabulary.WORD_START, " ").strip(" ")

    def subword(self, token: int) -> str:
        return self._subwords[int(token)]

    def subword_id(self, subword: str) -> int:
        return self._ids.get(subword, types.UNK_ID)

    def is_byte(self, token: int) -> bool:
        return bool(re.fullmatch("<0x[0-9A-F]{2}>", self.subword(token)))


def load(directory: pathlib.Path) -> vocabulary.Vocabulary:
    """Load the vocabulary in a directory, a learned or an imported one.

    Raises:
        FileNotFoundError: A file is missing.
        ValueError: A file is damaged.
    """
    if not (directory / SUBWORDS).exists():
        path = directory / vocabulary.NAME
        if not path.exists():
            raise FileNotFoundError(
                f"{path} is missing; restore it or pass --rebuild_data to prepare again"
            )
        return vocabulary.Vocabulary.load(path)
    for name in FILES:
        vocabulary.Vocabulary.load(directory / name)  # An error names the file.
    source, target = ((directory / name).read_bytes() for name in FILES)
    try:
        subwords = json.loads((directory / SUBWORDS).read_text(encoding="utf-8"))
        if not (
            isinstance(subwords, list)
            and all(isinstance(subword, str) for subword in subwords)
        ):
            raise ValueError("it is not a list of subwords")
    except ValueError as error:
        raise ValueError(f"{directory / SUBWORDS} is damaged: {error}") from None
    return MarianVocabulary((source, target), subwords)
