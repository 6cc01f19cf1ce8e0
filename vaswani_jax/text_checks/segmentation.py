"""Measure how a vocabulary segments text: subwords a word, unknown ones, bytes."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from vaswani_jax.core import config, languages, locales, types
from vaswani_jax.data.vocabulary import Vocabulary
from vaswani_jax.text_checks import findings, lengths
from vaswani_jax.text_checks.findings import Finding
from vaswani_jax.text_checks.sample import Pair, spread

MAX_PAIRS = 5000
UNKNOWN = {"minor": 0.001, "serious": 0.05}
UNKNOWN_SUBWORD = (
    "the unknown subword: the vocabulary lacks their characters",
    "--config.data.byte_fallback=True, or --config.data.character_coverage=1, and "
    "prepare again",
)
UNKNOWN_SYMBOL = (
    "the unknown symbol: the training trees lack these labels or tags",
    "add trees that have them to config.data.train_trees, and prepare again",
)
BYTES = {"minor": 0.01, "serious": 0.2}
# The vocabulary does not fit a side that has this many subwords a word or more, and
# this many times the other side's.
MANY_SUBWORDS = 3.0
MANY_TIMES = 1.8


@dataclasses.dataclass(frozen=True)
class Segmentation:
    """The segmentation of one side by a vocabulary.

    Attributes:
        tokens_per_word: Subwords of a word between spaces.
        tokens_per_character: Subwords of a character.
        unknown: The share of tokens that are the unknown subword.
        bytes: The share of tokens that are a byte of a character.
        lengths: Tokens of each line.
    """

    tokens_per_word: float
    tokens_per_character: float
    unknown: float
    bytes: float
    lengths: Sequence[int]

    def measures(self) -> dict[str, Any]:
        """Return what JSON can hold."""
        distribution = lengths.Distribution()
        distribution.counts.update(self.lengths)
        return {
            **distribution.summary(),
            "per_word": round(self.tokens_per_word, 4),
            "per_character": round(self.tokens_per_character, 4),
            "unknown": round(self.unknown, 6),
            "bytes": round(self.bytes, 6),
        }


def segment(pairs: Sequence[Pair], vocabulary: Vocabulary) -> list[Segmentation]:
    """Segment both sides of pairs, of some of them if they are many."""
    pairs = spread(pairs, MAX_PAIRS)
    result = []
    for side, subwords in enumerate((vocabulary.source, vocabulary.target)):
        lines = [pair[side] for pair in pairs]
        ids = vocabulary.encode(lines, target=bool(side), verbatim=True)
        tokens = np.array([token for line in ids for token in line], np.int64)
        num_tokens = max(1, len(tokens))
        different, counts = np.unique(tokens, return_counts=True)
        num_bytes = sum(
            int(count)
            for token, count in zip(different.tolist(), counts, strict=True)
            if subwords.is_byte(token)
        )
        result.append(
            Segmentation(
                len(tokens) / max(1, sum(len(line.split()) for line in lines)),
                len(tokens) / max(1, sum(map(len, lines))),
                float((tokens == types.UNK_ID).sum() / num_tokens),
                num_bytes / num_tokens,
                list(map(len, ids)),
            )
        )
    return result


def find(
    sides: Sequence[Segmentation], *, data: config.DataConfig, split: str
) -> list[Finding]:
    """Return findings of text that the vocabulary does not fit.

    Args:
        sides: How it segments source and target.
        data: Names the vocabulary, and the limit of lengths.
        split: The text.
    """
    result = []
    for name, side in zip(types.SIDES, sides, strict=True):
        if severity := findings.severity_of(side.unknown, **UNKNOWN):
            has_symbols = data.source == "treebank" and name == "target"
            unknown, remedy = UNKNOWN_SYMBOL if has_symbols else UNKNOWN_SUBWORD
            result.append(
                Finding(
                    kind="unknown_subwords",
                    severity=severity,
                    split=split,
                    message=(
                        f"{findings.percent(side.unknown)} of the {name} tokens are "
                        f"{unknown}"
                    ),
                    share=side.unknown,
                    remedies=[remedy],
                )
            )
        if severity := findings.severity_of(side.bytes, **BYTES):
            result.append(
                Finding(
                    kind="bytes",
                    severity=severity,
                    split=split,
                    message=(
                        f"{findings.percent(side.bytes)} of the {name} tokens are "
                        "single bytes: the vocabulary lacks characters"
                    ),
                    share=side.bytes,
                    remedies=[
                        "--config.data.character_coverage=1, and prepare again",
                        *_learn_again(data),
                    ],
                )
            )
    result += _find_bad_fit(sides, data=data, split=split)
    if split == "train":
        longest = map(max, sides[0].lengths, sides[1].lengths)
        is_long = [length > data.max_length - 1 for length in longest]
        share = sum(is_long) / max(1, len(is_long))
        if severity := findings.severity_of(share, **lengths.TOO_LONG):
            result.append(
                lengths.too_long(share, data, severity=severity, unit="tokens")
            )
    return result


def _find_bad_fit(
    sides: Sequence[Segmentation], *, data: config.DataConfig, split: str
) -> list[Finding]:
    """Return a finding if one side's words have far more subwords."""
    all_locales = [data.source_locale, *languages.target_locales(data)]
    if not all(map(locales.has_spaces, all_locales)):
        return []
    numbers = [side.tokens_per_word for side in sides]
    worse = int(numbers[1] > numbers[0])
    if numbers[worse] < max(MANY_SUBWORDS, MANY_TIMES * numbers[1 - worse]):
        return []
    name, other_name = types.SIDES[worse], types.SIDES[1 - worse]
    return [
        Finding(
            kind="segmentation",
            severity=findings.Severity.MINOR,
            split=split,
            message=(
                f"a word of the {name} has {numbers[worse]:.1f} subwords, one of the "
                f"{other_name} {numbers[1 - worse]:.1f}: the vocabulary does not fit "
                f"the {name}"
            ),
            share=1.0,
            remedies=[
                "--config.data.vocabulary_sharing=separate, or a larger "
                "--config.data.vocab_size, and prepare again",
                *_learn_again(data),
            ],
        )
    ]


def _learn_again(data: config.DataConfig) -> list[str]:
    if not data.vocabulary:
        return []
    return ["--config.data.vocabulary= with --rebuild_data learns one from this text"]
