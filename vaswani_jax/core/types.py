"""Define the values that subpackages exchange: batches, hypotheses, special ids."""

from __future__ import annotations  # so that data/, which needs no jax, loads none

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jaxtyping
import numpy as np

SIDES = ("source", "target")
# The splits of a run's data, and their names in messages.
SPLIT_NAMES = {"train": "training", "valid": "validation", "test": "test"}
PAD_ID = 0
BOS_ID = 1
EOS_ID = 2
UNK_ID = 3
# The first id after the special ones; in a vocabulary of tree symbols, of a label.
FIRST_LABEL_ID = 4
# A logit without probability that, unlike -inf, gives no NaN.
NEVER = -1e9
# Returns figures of a model's parameters by name, such as valid/bleu.
Evaluator = Callable[[Any], Mapping[str, float]]
# Takes the number of updates, and metrics by name; finite values alone.
MetricsLogger = Callable[[int, Mapping[str, float]], object]


class TreeIds(NamedTuple):
    """The meaning of the ids of words, and of those of tree symbols.

    Attributes:
        num_labels: L. Target ids from `FIRST_LABEL_ID` on open a constituent of each
            label, the next L close one, and all that follow stand for one word each.
        word_starts: One bit a source id, as `np.packbits` has them: whether the id
            begins a word.
    """

    num_labels: int
    word_starts: bytes

    @property
    def first_word(self) -> int:
        """The lowest target id that stands for a word."""
        return FIRST_LABEL_ID + 2 * self.num_labels


class VocabSizes(NamedTuple):
    """V of each side, if the sides have vocabularies and embeddings of their own.

    `trees` is there if the target's vocabulary is that of tree symbols (section 6.3).
    """

    source: int
    target: int
    trees: TreeIds | None = None


# V of the vocabulary that both sides share (section 3.4), or of both vocabularies.
VocabSize = int | VocabSizes


class Segments(NamedTuple):
    """Numbers of the pairs in a packed row, for each token: 1, 2, ...; 0 is padding."""

    source: jaxtyping.Int[jaxtyping.Array | np.ndarray, "*rows S"]
    target: jaxtyping.Int[jaxtyping.Array | np.ndarray, "*rows T"]


class Batch(NamedTuple):
    """Sentence pairs as token ids, padded at the end with `PAD_ID`.

    `source` ends with `EOS_ID`; `target_in` starts with `BOS_ID`; `target_out` is
    `target_in` shifted by one and ends with `EOS_ID` (section 3.1: the output
    embeddings are offset by one position). A row of padding holds no sentence.
    `segments` is None if each row holds one pair.
    """

    source: jaxtyping.Int[jaxtyping.Array | np.ndarray, "*rows S"]
    target_in: jaxtyping.Int[jaxtyping.Array | np.ndarray, "*rows T"]
    target_out: jaxtyping.Int[jaxtyping.Array | np.ndarray, "*rows T"]
    segments: Segments | None = None


class Hypotheses(NamedTuple):
    """Outputs of beam search for each sentence, best first.

    `tokens` keep the closing `EOS_ID`, if there is one, and are padded with `PAD_ID`.
    `scores` are log-probabilities over the length penalty; a slot without a hypothesis
    has the score -inf.
    """

    tokens: jaxtyping.Int[jaxtyping.Array, "B W T"]
    scores: jaxtyping.Float[jaxtyping.Array, "B W"]


def num_source_subwords(vocab_size: VocabSize) -> int:
    """Return V of the source's embedding.

    >>> num_source_subwords(VocabSizes(8000, 60)), num_source_subwords(37_000)
    (8000, 37000)
    """
    return vocab_size.source if isinstance(vocab_size, VocabSizes) else vocab_size


def num_target_subwords(vocab_size: VocabSize) -> int:
    """Return V of the softmax.

    >>> num_target_subwords(VocabSizes(8000, 60)), num_target_subwords(37_000)
    (60, 37000)
    """
    return vocab_size.target if isinstance(vocab_size, VocabSizes) else vocab_size
