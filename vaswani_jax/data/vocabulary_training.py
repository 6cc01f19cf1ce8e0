"""Learn subwords from text with SentencePiece."""

import io
import re
from collections.abc import Iterable
from typing import Any

import sentencepiece

from vaswani_jax.core import config, types
from vaswani_jax.data.subwords import (
    Subwords,
    load_configured_sides,
    spell_user_symbols,
)
from vaswani_jax.data.tokenizer import UNKNOWN

# SentencePiece silently leaves longer lines out of the training text.
LONGEST_LINE_BYTES = 1 << 30
# The numbers in SentencePiece's reasons why a vocabulary cannot be learned.
TOO_FEW = re.compile(r"smaller than required_chars\. \d+ vs (\d+)")
TOO_MANY = re.compile(r"too high \(\d+\)\. Please set it to a value <= (\d+)")
NO_TEXT = "!sentences_.empty()"


def learn_subwords(
    lines: Iterable[str],
    data: config.DataConfig,
    *,
    key: str = "vocab_size",
    vocab_size: int | None = None,
) -> Subwords:
    """Learn subwords from lines.

    Args:
        lines: Lines of every language that the subwords are for.
        data: How to learn.
        key: The setting that has the number of subwords, for errors.
        vocab_size: The number of subwords; `data.vocab_size` if None.

    Raises:
        ValueError: The text cannot give a vocabulary of this size.
    """
    size = vocab_size or data.vocab_size
    options: dict[str, Any] = {}
    if data.symbols:
        options["user_defined_symbols"] = spell_user_symbols(data.symbols)
    model = io.BytesIO()
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(line for line in lines if line.strip()),
            model_writer=model,
            model_type=data.subword_model,
            vocab_size=size,
            character_coverage=character_coverage(data),
            byte_fallback=data.byte_fallback,
            split_digits=data.split_digits,
            max_sentencepiece_length=data.max_subword_length,
            normalization_rule_name=data.normalization,
            pad_id=types.PAD_ID,
            bos_id=types.BOS_ID,
            eos_id=types.EOS_ID,
            unk_id=types.UNK_ID,
            unk_surface=UNKNOWN,
            num_threads=2,
            max_sentence_length=LONGEST_LINE_BYTES,
            minloglevel=2,
            **options,
        )
    except (RuntimeError, OSError) as error:
        raise ValueError(
            f"no {data.subword_model} vocabulary of config.data.{key}={size} can be "
            f"learned from this text: {_explain(str(error), data, key=key)}"
        ) from None
    return Subwords(model.getvalue())


def character_coverage(data: config.DataConfig) -> float:
    """Return the share of the text's characters that get subwords."""
    return data.character_coverage or (0.9999 if data.byte_fallback else 1.0)


def _explain(reason: str, data: config.DataConfig, *, key: str) -> str:
    """Return SentencePiece's reason, with the settings that change it."""
    if match := TOO_FEW.search(reason):
        return (
            f"its characters and the special subwords are {int(match[1]):,} subwords: "
            f"raise config.data.{key}, or lower config.data.character_coverage "
            f"({character_coverage(data)})"
        )
    if match := TOO_MANY.search(reason):
        return (
            f"it has no more than {int(match[1]):,} subwords: lower config.data.{key}"
        )
    return "no line has a word" if NO_TEXT in reason else reason


def expected_size(data: config.DataConfig) -> types.VocabSize:
    """Return V before the data is prepared: of given files, else as planned.

    Raises:
        FileNotFoundError: A setting names a file that is not there.
        ValueError: A setting names a file that is not a SentencePiece model.
    """
    source, target = load_configured_sides(data)
    planned = data.planned_vocab_size
    if not isinstance(planned, types.VocabSizes):
        return source.size if source else planned
    return types.VocabSizes(
        source=source.size if source else planned.source,
        target=target.size if target else planned.target,
        trees=planned.trees,
    )
