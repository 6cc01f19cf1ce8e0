"""Section 5.1: one shared subword vocabulary, by SentencePiece."""

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
# What is written for an unknown subword; SentencePiece's own choice, too.
UNKNOWN = " \u2047 "
# SentencePiece silently leaves longer lines out of what it learns from.
LONGEST_LINE_BYTES = 1 << 30


class Vocabulary:
    """Subwords to ids and back."""

    def __init__(self, model: bytes) -> None:
        self._model = model
        self._processor = sentencepiece.SentencePieceProcessor(model_proto=model)

    @classmethod
    def load(cls, path: pathlib.Path) -> "Vocabulary":
        """The vocabulary in a file.

        Raises:
            FileNotFoundError: There is none.
            ValueError: The file is not a SentencePiece model.
        """
        model = path.read_bytes()
        if not model:  # SentencePiece would take it
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
        """What SentencePiece loads for the source and for the target."""
        return self._model, self._model

    @property
    def size(self) -> int:
        """V: subwords, with the four special ids."""
        return int(self._processor.get_piece_size())

    @property
    def fingerprint(self) -> str:
        """16 hexadecimal digits that change with any subword."""
        return hashlib.sha256(self._model).hexdigest()[:16]

    @property
    def is_bpe(self) -> bool:
        """Whether its subwords come from merges."""
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
        """The ids of each line, without begin or end marks.

        A line of white space alone is empty. A NUL character, which SentencePiece
        would take for the end of its input, is read as a space.

        Args:
            lines: Of the source language, or of the other one.
            target: Which; here it makes no difference.
            dropout: Each merge of BPE is left out with this probability (Provilkov et
                al., 2020, "BPE-dropout").
            seed: What is drawn depends on; calls with the same one draw the same.
        """
        clean = readable(lines)
        if not dropout:
            return self._processor.encode(clean, num_threads=-1)
        # Each call starts a generator of its own, which knows no other seed.
        own = np.random.SeedSequence(seed).generate_state(1)[0]
        sentencepiece.set_random_generator_seed(int(own))
        # Deviation: the paper segments once. nbest_size -1: BPE, too, samples.
        return self._processor.encode(
            clean, num_threads=1, enable_sampling=True, alpha=dropout, nbest_size=-1
        )

    def decode(self, ids: Sequence[int]) -> str:
        """The text of ids up to the first end mark; special ids are left out.

        Always one line: line ends, which byte subwords can spell, become spaces.
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

    def name(self, token: int) -> str:
        """How a subword is spelt."""
        return str(self._processor.id_to_piece(int(token)))

    def id_of(self, name: str) -> int:
        """The subword that is spelt so; unknown if there is none."""
        return int(self._processor.piece_to_id(name))

    def num_marks(self, ids: Sequence[int]) -> int:
        """How many ids at the beginning of a source say what is wanted: none here."""
        return 0

    def surface(self, token: int, *, written: bool) -> str:
        """The text of one subword, with the space before it; none of a mark.

        A byte that is a part of a character stands as U+FFFD, and so does what is
        unknown, unless it is `written` by `decode`.
        """
        if token == types.UNK_ID:
            return UNKNOWN if written else "\ufffd"
        if token in (types.PAD_ID, types.BOS_ID, types.EOS_ID):
            return ""
        if self.is_byte(token):
            return bytes([int(self.name(token)[1:-1], 16)]).decode(errors="replace")
        return self.name(token).replace(WORD_START, " ")

    def starts_word(self, token: int) -> bool:
        """Whether a subword begins a new word."""
        return self.name(token).startswith(WORD_START)

    def is_byte(self, token: int) -> bool:
        """Whether a subword spells one byte."""
        return bool(self._processor.is_byte(int(token)))

    def starts_character(self, token: int) -> bool:
        """Whether text may be cut before a subword: not inside a character's bytes."""
        if not self.is_byte(token):
            return True
        byte = int(self.name(token)[1:-1], 16)
        return byte & 0b1100_0000 != 0b1000_0000


def readable(lines: Iterable[str]) -> list[str]:
    """The lines as SentencePiece should see them, see `Vocabulary.encode`."""
    spaced = (line.replace("\0", " ") for line in lines)
    return [line if line.strip() else "" for line in spaced]


def learn_vocabulary(lines: Iterable[str], data: config.DataConfig) -> Vocabulary:
    """Learn a vocabulary from lines of both languages.

    Raises:
        ValueError: The text cannot give a vocabulary of the wanted size.
    """
    model = io.BytesIO()
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(line for line in lines if line.strip()),
            model_writer=model,
            model_type=data.subword_model,
            vocab_size=data.vocab_size,
            character_coverage=1.0 if not data.byte_fallback else 0.9999,
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
