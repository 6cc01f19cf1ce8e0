"""Count the words of a training text, to compare systems by their frequency."""

import collections
import dataclasses
import itertools
import pathlib
from collections.abc import Iterable, Mapping

import numpy as np

from vaswani_jax.core import languages
from vaswani_jax.core.config import DataConfig
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
    # A page that others read shows no folders of this machine.
    shown_name = pathlib.PurePath(name).name if name.startswith("/") else name
    origin = f"the first {len(lines):,} lines of {shown_name}"
    return WordCounts(_count(lines, tokenize), origin, tokenize)


def count_prepared(
    data: prepared.PreparedData,
    *,
    name: str,
    tokenize: Tokenizer,
    settings: DataConfig,
    locale: str,
) -> WordCounts:
    """Count the target words of a run's training text.

    Reads at most `MAX_TRAINING_LINES` lines, evenly spread. With several target
    languages, only those in `locale` count.

    Args:
        data: The prepared data of the run.
        name: The name of the run.
        tokenize: Splits a line into words.
        settings: The settings of the run's data.
        locale: The target language to count.
    """
    pairs = data.token_pairs("train")
    count = min(len(pairs.target), MAX_TRAINING_LINES)
    numbers = np.linspace(0, len(pairs.target) - 1, count).astype(np.int64)
    source, target = data.vocabulary.source, data.vocabulary.target
    lines: Iterable[str] = map(target.decode, pairs.target.id_lists(numbers))
    locale_note = ""
    if tags := languages.locales_by_tag(settings):
        sources = map(source.decode, pairs.source.id_lists(numbers))
        lines = [
            line
            for source_line, line in zip(sources, lines, strict=True)
            if tags.get(languages.find_tag(source_line, settings) or "") == locale
        ]
        locale_note = f" lines in {locale} among {count:,}"
        count = len(lines)
    total = data.counts["train"]["kept"]
    origin = f"{count:,}{locale_note} of {total:,} training lines of {name}"
    return WordCounts(_count(lines, tokenize), origin, tokenize)


def _count(lines: Iterable[str], tokenize: Tokenizer) -> collections.Counter[str]:
    return collections.Counter(word for line in lines for word in tokenize(line))
