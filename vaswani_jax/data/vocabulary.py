"""Section 5.1's shared subword vocabulary, learned by SentencePiece."""

import hashlib
import io
import pathlib
from collections.abc import Iterable, Sequence

import numpy as np
import sentencepiece
from sentencepiece import sentencepiece_model_pb2

from vaswani_jax.core import config, types

NAME = "vocabulary.model"
WORD_START = "\u2581"
# Text of an unknown subword, as SentencePiece writes it by default.
UNKNOWN = " \u2047 "
# SentencePiece silently leaves longer lines out of the training text.
LONGEST_LINE_BYTES = 1 << 30


class Vocabulary:
    """A subword vocabulary: text to ids and back; a `Translator` has its run's."""

    def __init__(self, model: bytes) -> None:
        """Load a SentencePiece model, the bytes of its file."""
        self._model = model
        self._processor = sentencepiece.SentencePieceProcessor(model_proto=model)

    @classmethod
    def load(cls, path: pathlib.Path) -> "Vocabulary":
        """Load the vocabulary in a file.

        Raises:
            FileNotFoundError: There is no such file.
            ValueError: The file is not a SentencePiece model.
        """
        model = path.read_bytes()
        if not model:  # SentencePiece loads an empty file.
            raise ValueError(f"{path} is not a SentencePiece model: it is empty")
        try:
            return cls(model)
        except RuntimeError as error:
            raise ValueError(f"{path} is not a SentencePiece model: {error}") from None

    def save(self, directory: pathlib.Path) -> None:
        """Write the vocabulary's files into a directory."""
        (directory / NAME).write_bytes(self._model)

    @property
    def models(self) -> tuple[bytes, bytes]:
        """The SentencePiece models of the source and of the target."""
        return self._model, self._model

    @property
    def size(self) -> int:
        """V: the number of subwords, including the four special ids."""
        return int(self._processor.get_piece_size())

    @property
    def fingerprint(self) -> str:
        """16 hexadecimal digits that change with any subword."""
        return hashlib.sha256(self._model).hexdigest()[:16]

    @property
    def is_bpe(self) -> bool:
        """True if the subwords come from merges (byte-pair encoding)."""
        proto = sentencepiece_model_pb2.ModelProto()  # type: ignore[attr-defined]
        proto.ParseFromString(self._model)
        return bool(proto.trainer_spec.model_type == proto.trainer_spec.BPE)

    def encode(
        self,
        lines: Sequence[str],
        *,
        target: bool = False,
        dropout: float = 0.0,
        seed: Sequence[int] = (0,),
    ) -> list[list[int]]:
        """Return the ids of each line, without begin and end marks.

        A line of white space alone is empty. A NUL character, which SentencePiece
        would take for the end of its input, is read as a space.

        Args:
            lines: Lines of one language.
            target: Whether this is the target language; a shared vocabulary ignores it.
            dropout: Probability to leave out each merge of BPE (Provilkov et al.,
                2020, "BPE-dropout").
            seed: Decides which merges are left out, within one process.
        """
        texts = clean_lines(lines)
        if not dropout:
            return self._processor.encode(texts, num_threads=-1)
        # Each call starts a generator, which only this global function can seed.
        call_seed = np.random.SeedSequence(seed).generate_state(1)[0]
        sentencepiece.set_random_generator_seed(int(call_seed))
        # Deviation: the paper segments once. With nbest_size=-1, BPE samples, too.
        return self._processor.encode(
            texts, num_threads=1, enable_sampling=True, alpha=dropout, nbest_size=-1
        )

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of ids up to the first end mark, without special ids.

        It is one line: line ends, which byte subwords can spell, become spaces.
        """
        pieces = []
        for token in ids:
            if token == types.EOS_ID:
                break
            if token not in (types.PAD_ID, types.BOS_ID):
                pieces.append(int(token))
        return self._text(pieces).replace("\r", " ").replace("\n", " ")

    def _text(self, ids: Sequence[int]) -> str:
        return str(self._processor.decode(ids))

    def subword(self, token: int) -> str:
        """Return the spelling of an id."""
        return str(self._processor.id_to_piece(int(token)))

    def subword_id(self, subword: str) -> int:
        """Return the id of a subword, or that of the unknown one."""
        return int(self._processor.piece_to_id(subword))

    def num_language_codes(self, ids: Sequence[int]) -> int:
        """Return how many ids at the start of a source name a language: 0 or 1."""
        return 0

    def surface(self, token: int, *, unknown: str) -> str:
        """Return the text of one id, with the space before it; "" for a special id.

        A byte that is a part of a character is U+FFFD.

        Args:
            token: The id.
            unknown: Text of the unknown subword; `decode` writes `UNKNOWN`.
        """
        if token == types.UNK_ID:
            return unknown
        if token in (types.PAD_ID, types.BOS_ID, types.EOS_ID):
            return ""
        if self.is_byte(token):
            return bytes([int(self.subword(token)[1:-1], 16)]).decode(errors="replace")
        return self.subword(token).replace(WORD_START, " ")

    def starts_word(self, token: int) -> bool:
        """Return True if a subword begins a new word."""
        return self.subword(token).startswith(WORD_START)

    def is_byte(self, token: int) -> bool:
        """Return True if a subword spells one byte."""
        return bool(self._processor.is_byte(int(token)))

    def starts_character(self, token: int) -> bool:
        """Return False if a subword continues the bytes of a character."""
        if not self.is_byte(token):
            return True
        byte = int(self.subword(token)[1:-1], 16)
        return byte & 0b1100_0000 != 0b1000_0000


def clean_lines(lines: Iterable[str]) -> list[str]:
    """Replace NUL by a space and white space alone by "", as SentencePiece needs it."""
    texts = (line.replace("\0", " ") for line in lines)
    return [text if text.strip() else "" for text in texts]


def learn_vocabulary(lines: Iterable[str], data: config.DataConfig) -> Vocabulary:
    """Learn a vocabulary from lines of both languages.

    Raises:
        ValueError: The text cannot give a vocabulary of `data.vocab_size`.
    """
    model = io.BytesIO()
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(line for line in lines if line.strip()),
            model_writer=model,
            model_type=data.subword_model,
            vocab_size=data.vocab_size,
            character_coverage=0.9999 if data.byte_fallback else 1.0,
            byte_fallback=data.byte_fallback,
            normalization_rule_name=data.normalization,
            pad_id=types.PAD_ID,
            bos_id=types.BOS_ID,
            eos_id=types.EOS_ID,
            unk_id=types.UNK_ID,
            unk_surface=UNKNOWN,
            num_threads=2,
            max_sentence_length=LONGEST_LINE_BYTES,
            minloglevel=2,
        )
    except (RuntimeError, OSError) as error:
        raise ValueError(
            f"no {data.subword_model} vocabulary of config.data.vocab_size="
            f"{data.vocab_size} can be learned from this text: {error}"
        ) from None
    return Vocabulary(model.getvalue())
