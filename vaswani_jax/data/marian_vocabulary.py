"""Section 5.1's shared vocabulary as MarianMT has it: two segmenters, one list."""

import hashlib
import json
import pathlib
import re
from collections.abc import Sequence

import sentencepiece

from vaswani_jax.core import types
from vaswani_jax.data import vocabulary

FILES = ("source.spm", "target.spm")
NAMES = "vocabulary.json"
CODE = ">>[^<]*<<"


class MarianVocabulary(vocabulary.Vocabulary):
    """Subwords by their spelling, whichever of two SentencePiece models finds them.

    If there are language codes in the vocabulary, as ">>fra<<", a line may begin with
    one, which tells the model which language to write; one that is not there is
    unknown.
    """

    def __init__(self, models: tuple[bytes, bytes], names: Sequence[str]) -> None:
        """Prepare.

        Args:
            models: SentencePiece's, for the source and for the target.
            names: How each id is spelt, the special ones in our order.

        Raises:
            RuntimeError: One is not a SentencePiece model.
        """
        self._models = models
        self._processors = [
            sentencepiece.SentencePieceProcessor(model_proto=model) for model in models
        ]
        self._names = list(names)
        own = enumerate(self._names)
        self._ids = {name: token for token, name in own if token > types.UNK_ID}
        codes = (self._ids[name] for name in self._ids if re.fullmatch(CODE, name))
        self._codes = set(codes)

    def save(self, directory: pathlib.Path) -> None:
        """Write the vocabulary's three files into a directory."""
        for name, model in zip(FILES, self._models, strict=True):
            (directory / name).write_bytes(model)
        text = json.dumps(self._names, ensure_ascii=False, indent=0)
        (directory / NAMES).write_text(text, encoding="utf-8")

    @property
    def models(self) -> tuple[bytes, bytes]:
        """What SentencePiece loads for the source and for the target."""
        return self._models

    @property
    def size(self) -> int:
        """V: subwords, with the four special ids."""
        return len(self._names)

    @property
    def fingerprint(self) -> str:
        """16 hexadecimal digits that change with any subword."""
        total = hashlib.sha256(json.dumps(self._names).encode())
        for model in self._models:
            total.update(hashlib.sha256(model).digest())
        return total.hexdigest()[:16]

    @property
    def is_bpe(self) -> bool:
        """These came with an imported model, and are never sampled."""
        return False

    def encode(
        self,
        lines: Sequence[str],
        *,
        target: bool = False,
        dropout: float = 0.0,
        seed: Sequence[int] = (0,),
    ) -> list[list[int]]:
        """The ids of each line, see `Vocabulary.encode`; there is no dropout."""
        assert not dropout, "of merges, which these models lack"
        heads: list[list[int]] = []
        rests = []
        for line in vocabulary.readable(lines):
            code = re.match(CODE, line) if self._codes else None
            heads.append([self.id_of(code[0])] if code else [])
            rests.append(line[code.end() :] if code else line)
        processor = self._processors[target]
        found = processor.encode(rests, out_type=str, num_threads=-1)
        return [
            [*head, *(self._ids.get(name, types.UNK_ID) for name in names)]
            for head, names in zip(heads, found, strict=True)
        ]

    def num_marks(self, ids: Sequence[int]) -> int:
        """How many ids at the beginning of a source are a language code."""
        return int(bool(ids) and ids[0] in self._codes)

    def _text(self, ids: Sequence[int]) -> str:
        names = [self._names[token] for token in ids]
        text = str(self._processors[1].decode_pieces(names))
        # A subword of the source alone is text to the target's model.
        return text.replace(vocabulary.WORD_START, " ").strip(" ")

    def name(self, token: int) -> str:
        """How a subword is spelt."""
        return self._names[int(token)]

    def id_of(self, name: str) -> int:
        """The subword that is spelt so; unknown if there is none."""
        return self._ids.get(name, types.UNK_ID)

    def is_byte(self, token: int) -> bool:
        """Whether a subword spells one byte."""
        return bool(re.fullmatch("<0x[0-9A-F]{2}>", self.name(token)))


def load(directory: pathlib.Path) -> vocabulary.Vocabulary:
    """The vocabulary in a directory, of either kind.

    Raises:
        FileNotFoundError: There is none, or a part of it is missing.
        ValueError: A file is damaged.
    """
    own = directory / vocabulary.NAME
    if not (directory / NAMES).exists():
        if not own.exists():
            raise FileNotFoundError(
                f"{own} is missing; restore it or pass --rebuild_data to prepare again"
            )
        return vocabulary.Vocabulary.load(own)
    for name in FILES:
        vocabulary.Vocabulary.load(directory / name)  # names the file that is damaged
    source, target = ((directory / name).read_bytes() for name in FILES)
    try:
        names = json.loads((directory / NAMES).read_text(encoding="utf-8"))
        if not isinstance(names, list) or not all(type(n) is str for n in names):
            raise ValueError("it is not a list of subwords")
    except ValueError as error:
        raise ValueError(f"{directory / NAMES} is damaged: {error}") from None
    return MarianVocabulary((source, target), names)
