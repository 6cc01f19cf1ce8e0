"""Turn text into subword ids and back, by a SentencePiece model."""

import functools
import itertools
import pathlib
import re
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import sentencepiece

from vaswani_jax.core import config, types
from vaswani_jax.data import readings
from vaswani_jax.data.tokenizer import SPECIAL_SPELLINGS, WORD_START, Tokenizer

BPE_CODES = b"#version:"
# The settings that name files of vocabularies, of the source and of the target.
VOCABULARY_KEYS = ("vocabulary", "target_vocabulary")
# SentencePiece starts threads for each list: fewer texts are encoded before they run.
FEW_TEXTS = 64


class Subwords(Tokenizer):
    """Subwords of a SentencePiece model, with the special ids of `core.types`.

    A model that gives padding, marks and the unknown subword other ids, or has none of
    them, is read as well: here they are the first four ids, and the other subwords
    follow in the model's order.

    Attributes:
        model: The SentencePiece model, the bytes of its file.
        spellings: The spelling of each id, as the model writes it.
    """

    def __init__(self, model: bytes) -> None:
        """Load a SentencePiece model, the bytes of its file.

        Raises:
            RuntimeError: It is no such model.
        """
        self._processor = sentencepiece.SentencePieceProcessor(model_proto=model)
        processor, size = self._processor, self._processor.get_piece_size()
        marks = (
            processor.pad_id(),
            processor.bos_id(),
            processor.eos_id(),
            processor.unk_id(),
        )
        ordinary = [token for token in range(size) if token not in marks]
        # The model's id of each of ours, -1 for a mark that it lacks, and back.
        self._model_ids = [*marks, *ordinary]
        self._ids = np.zeros(size, np.int64)
        for token, model_id in enumerate(self._model_ids):
            if model_id >= 0:
                self._ids[model_id] = token
        self._has_model_order = self._model_ids == list(range(size))
        super().__init__(model, self._spell())
        # Of a SentencePiece model, users look these up, too.
        special = self.spellings[: len(SPECIAL_SPELLINGS)]
        self._tokens |= {spelling: token for token, spelling in enumerate(special)}
        self._known_characters: dict[str, bool] = {}

    def _spell(self) -> list[str]:
        ordinary = [
            self._processor.id_to_piece(i)
            for i in self._model_ids[len(SPECIAL_SPELLINGS) :]
        ]
        # Programs that look subwords up by their spelling expect these names.
        special = [
            name if name not in ordinary else f"{name}{token}"
            for token, name in enumerate(SPECIAL_SPELLINGS)
        ]
        return [*special, *ordinary]

    @classmethod
    def from_bytes(cls, model: bytes, path: pathlib.Path) -> Self:
        """Load a model, the bytes of the file at a path.

        Raises:
            ValueError: They are not a SentencePiece model.
        """
        if not model:  # SentencePiece loads an empty file.
            raise ValueError(f"{path} is not a SentencePiece model: it is empty")
        if model.startswith(BPE_CODES):
            raise ValueError(
                f"{path} has BPE codes of subword-nmt, not a SentencePiece model. "
                "Segment the text with them first and give "
                "config.data.text_form=tokenized, or let "
                "config.data.subword_model=bpe learn a vocabulary of the same size"
            )
        try:
            subwords = cls(model)
        except RuntimeError:  # It names a line of its own source.
            raise ValueError(
                f"{path} is not a SentencePiece model: it is damaged, a list of words, "
                "BPE codes, or a file of another kind"
            ) from None
        if parse_model(model).trainer_spec.treat_whitespace_as_suffix:
            raise ValueError(
                f"{path} puts spaces after words (treat_whitespace_as_suffix): train "
                "a model that puts them before"
            )
        return subwords

    def to_files(self, stem: str) -> dict[str, bytes]:
        """Return the files that keep the subwords, by their names."""
        return {f"{stem}.model": self.model}

    @property
    def accepts_dropout(self) -> bool:
        """True if the subwords come from merges (byte-pair encoding)."""
        spec = parse_model(self.model).trainer_spec
        return bool(spec.model_type == spec.BPE)

    def encode(
        self,
        texts: Sequence[str],
        *,
        replace_unknown: bool = False,
        dropout: float = 0.0,
        seed: Sequence[int] = (0,),
    ) -> list[list[int]]:
        """Return the ids of each text, see `Tokenizer.encode`."""
        processor = self._reader_of(texts) if replace_unknown else self._processor
        if not dropout:
            if len(texts) < FEW_TEXTS:
                return self._from_model([processor.encode(text) for text in texts])
            return self._from_model(processor.encode(texts, num_threads=-1))
        # Each call starts a generator, which only this global function can seed.
        call_seed = np.random.SeedSequence(seed).generate_state(1)[0]
        sentencepiece.set_random_generator_seed(int(call_seed))
        # Deviation: the paper segments once. With nbest_size=-1, BPE samples, too.
        sampled = processor.encode(
            texts, num_threads=1, enable_sampling=True, alpha=dropout, nbest_size=-1
        )
        return self._from_model(sampled)

    def find_spans(self, text: str) -> list[tuple[int, int]]:
        """Return where each subword that a text is read as lies in it.

        Args:
            text: A line without NUL.

        Returns:
            Its first character and the one after its last. Of the bytes of a
            character, all begin there and the last one has it.
        """
        encoded = self._reader_of([text]).encode(text, return_type="offset_mapping")
        return [(int(begin), int(end)) for begin, end in encoded["offsets"]]

    def unknown_characters(self, text: str, *, replace_unknown: bool) -> list[str]:
        """Return the characters of a text that no subword has.

        Args:
            text: A line without NUL.
            replace_unknown: As in `encode`.
        """
        if self._characters.issuperset(text):
            return []
        text = self._without_symbols(text)
        processor = self._reader_of([text]) if replace_unknown else self._processor
        read = processor.normalize(text)
        return [c for c in dict.fromkeys(read) if c not in self._characters]

    def _reader_of(self, texts: Sequence[str]) -> sentencepiece.SentencePieceProcessor:
        """Return what reads these texts: the model itself if no reading concerns them.

        Most text needs no readings, which take a moment to find.
        """
        for text in texts:
            if self._characters.issuperset(text):
                continue
            unknown = {c for c in self._without_symbols(text) if not self._is_known(c)}
            if unknown and not self._readable.isdisjoint(unknown):
                return self._reader
        return self._processor

    def prepare_readings(self) -> None:
        """Find all readings, for which the first text that needs one would wait."""
        self._reader_of(list(self._readable))

    def _is_known(self, character: str) -> bool:
        """Return True if subwords have all that normalisation makes of a character."""
        if character not in self._known_characters:
            # Without the rules of a normalisation it is itself.
            normalized = character
            if self._is_normalized:
                normalized = self._processor.normalize(character)
            self._known_characters[character] = self._characters.issuperset(normalized)
        return self._known_characters[character]

    @functools.cached_property
    def _is_normalized(self) -> bool:
        return bool(parse_model(self.model).normalizer_spec.precompiled_charsmap)

    def _without_symbols(self, text: str) -> str:
        symbols = sorted(self.user_symbols, key=len, reverse=True)
        return re.sub("|".join(map(re.escape, symbols)), " ", text) if symbols else text

    @functools.cached_property
    def _characters(self) -> frozenset[str]:
        """The characters of all subwords but symbols and bytes."""
        return frozenset(WORD_START + " ").union(
            *(
                self.spellings[token]
                for token in range(types.UNK_ID + 1, self.size)
                if token not in self._symbols and not self.is_byte(token)
            )
        )

    @property
    def _symbols(self) -> frozenset[int]:
        """Ids that stand for themselves, not for their characters."""
        return self._tags

    @functools.cached_property
    def _readings(self) -> dict[str, str]:
        return readings.find_readings(self._is_known)

    @functools.cached_property
    def _readable(self) -> frozenset[str]:
        """The unknown characters that are read as others, alone or beside some."""
        characters = frozenset("".join(self._readings))
        return frozenset(c for c in characters if not self._is_known(c))

    @functools.cached_property
    def _reader(self) -> sentencepiece.SentencePieceProcessor:
        return sentencepiece.SentencePieceProcessor(model_proto=self.reading_model)

    @functools.cached_property
    def reading_model(self) -> bytes:
        """The model with readings in its normalisation, for other programs, too."""
        if not self._readings:
            return self.model
        proto = parse_model(self.model)
        spec = proto.normalizer_spec
        sentencepiece.set_min_log_level(2)
        rules = {}
        normalized = self._readings
        if self._is_normalized:
            normalizer = sentencepiece.SentencePieceNormalizer(
                model_proto=self.model,
                add_dummy_prefix=False,
                escape_whitespaces=False,
                remove_extra_whitespaces=False,
            )
            rules = dict(normalizer.decompile())
            normalized = {
                text: normalizer.normalize(reading)
                for text, reading in self._readings.items()
            }
        compiled = sentencepiece.SentencePieceNormalizer(
            norm_map=list((rules | normalized).items())
        ).serialized_normalizer_spec()
        spec.precompiled_charsmap = type(spec).FromString(compiled).precompiled_charsmap
        return bytes(proto.SerializeToString())

    def _from_model(self, lines: list[list[int]]) -> list[list[int]]:
        if self._has_model_order:
            return lines
        return [self._ids[ids].tolist() if ids else [] for ids in lines]

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of ids, none of which is a mark or padding."""
        return str(self._processor.decode([self._model_ids[token] for token in ids]))

    @functools.cached_property
    def user_symbols(self) -> frozenset[str]:
        """The symbols that are kept whole wherever a text has them."""
        proto = parse_model(self.model)
        return frozenset(
            piece.piece.removeprefix(WORD_START)
            for piece in proto.pieces
            if piece.type == piece.USER_DEFINED
        ) - {""}

    @functools.cached_property
    def _tags(self) -> frozenset[int]:
        spellings = (*self.user_symbols, *map(WORD_START.__add__, self.user_symbols))
        return frozenset(map(self.subword_id, spellings)) - {types.UNK_ID}

    def num_tags(self, ids: Sequence[int]) -> int:
        """Return how many ids at the start of a source are tags.

        They are user symbols (a language, a domain), each with the space before it,
        which is a subword of its own in some models.
        """
        if not self._tags:
            return 0
        space = self.subword_id(WORD_START)
        prefix = itertools.takewhile(lambda i: i in self._tags or i == space, ids)
        numbers = [n for n, token in enumerate(prefix, start=1) if token in self._tags]
        return max(numbers, default=0)

    def extend(self, symbols: Sequence[str]) -> "Subwords":
        """Return subwords that keep these symbols whole, too; their ids come last."""
        missing = [s for s in dict.fromkeys(symbols) if s not in self.user_symbols]
        if not missing:
            return self
        return Subwords(self._extend_model(missing))

    def _extend_model(self, symbols: Sequence[str]) -> bytes:
        """Return the model with each symbol, alone and after a space.

        Raises:
            ValueError: A symbol is a special token of the model, whose id would change.
        """
        proto = parse_model(self.model)
        spellings = {piece.piece: piece for piece in proto.pieces}
        for spelling in spell_user_symbols(symbols):
            piece = spellings.get(spelling) or proto.pieces.add()
            if piece.type not in (piece.NORMAL, piece.USER_DEFINED, piece.UNUSED):
                raise ValueError(
                    "config.data.user_symbols must have no special token of the "
                    f"vocabulary, got {spelling!r}"
                )
            piece.piece = spelling
            piece.score = 0.0
            piece.type = piece.USER_DEFINED
        return bytes(proto.SerializeToString())

    def starts_word(self, token: int) -> bool:
        """Return True if a subword begins a new word."""
        return self.subword(token).startswith(WORD_START)

    def is_byte(self, token: int) -> bool:
        """Return True if a subword spells one byte."""
        model_id = self._model_ids[int(token)]
        return model_id >= 0 and bool(self._processor.is_byte(model_id))


def parse_model(model: bytes) -> Any:
    """Return the pieces and settings in a model's bytes."""
    from sentencepiece import sentencepiece_model_pb2  # and protobuf with it

    proto = sentencepiece_model_pb2.ModelProto()  # type: ignore[attr-defined]
    proto.ParseFromString(model)
    return proto


def spell_user_symbols(symbols: Sequence[str]) -> list[str]:
    """Return the subwords that keep symbols whole: each after a space, and alone.

    Without the first, the space before a symbol would be one subword more.

    >>> spell_user_symbols(["<2de>"])
    ['▁<2de>', '<2de>']
    """
    return [
        spelling for symbol in symbols for spelling in (WORD_START + symbol, symbol)
    ]


def load_configured(path: str, *, key: str) -> Subwords:
    """Load the SentencePiece model that a setting names.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: It is not a SentencePiece model.
    """
    try:
        return Subwords.load(pathlib.Path(path))
    except OSError as error:
        raise FileNotFoundError(
            f"config.data.{key}={path} cannot be read: {error.strerror}"
        ) from None
    except ValueError as error:
        raise ValueError(f"config.data.{key}: {error}") from None


def load_configured_sides(data: config.DataConfig) -> list[Subwords | None]:
    """Return the subwords of the files that the settings name, for each side.

    Raises:
        FileNotFoundError, ValueError: A file cannot be used, see `load_configured`.
    """
    return [
        load_configured(path, key=key).extend(data.symbols)
        if (path := getattr(data, key))
        else None
        for key in VOCABULARY_KEYS
    ]
