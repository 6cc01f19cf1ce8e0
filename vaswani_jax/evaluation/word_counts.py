"""Count the words of a training text, to compare systems by their frequency."""

import collections
import dataclasses
import itertools
import pathlib
from collections.abc import Iterable, Mapping

import numpy as np

from vaswani_jax.data import columns, prepared
from vaswani_jax.evaluation.line_tables import Tokenizer

# Lines of the training text in which words are counted.
MAX_TRAINING_LINES = 100_000


@dataclasses.dataclass(frozen=True)
class WordCounts:
    """The counts of words in a text.

    Attributes:
        counts: The number of each word.
        origin: The counted text, in words.
        tokenize: Splits a line into such words.
    """

    counts: Mapping[str, int]
    origin: str
    tokenize: Tokenizer


def count_file(name: str, *, tokenize: Tokenizer) -> WordCounts:
    """Count the words of the first `MAX_TRAINING_LINES` lines of FILES[#COLUMN]."""
    text = columns.read(name, pathlib.Path())
    lines = list(itertools.islice(text, MAX_TRAINING_LINES))
    origin = f"the first {len(lines):,} lines of {name}"
    return WordCounts(_count(lines, tokenize), origin, tokenize)


def count_prepared(
    data: prepared.PreparedData, *, name: str, tokenize: Tokenizer
) -> WordCounts:
    """Count the target words of a run's training text.

    Of at most `MAX_TRAINING_LINES` lines, evenly spread.

    Args:
        data: The prepared data of the run.
        name: The name of the run.
        tokenize: Splits a line into words.
    """
    tokens = data.token_pairs("train").target
    count = min(len(tokens), MAX_TRAINING_LINES)
    numbers = np.linspace(0, len(tokens) - 1, count).astype(np.int64)
    ids, lengths = tokens.joined(numbers)
    ends = np.cumsum(lengths)
    lines = (
        data.vocabulary.decode(ids[end - length : end].tolist())
        for end, length in zip(ends, lengths, strict=True)
    )
    total = data.counts["train"]["kept"]
    origin = f"{count:,} of {total:,} training lines of {name}"
    return WordCounts(_count(lines, tokenize), origin, tokenize)


def _count(lines: Iterable[str], tokenize: Tokenizer) -> collections.Counter[str]:
    return collections.Counter(word for line in lines for word in tokenize(line))
