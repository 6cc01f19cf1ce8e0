"""The results of a translator: hypotheses, scores and attention."""

import dataclasses

import numpy as np
from jaxtyping import Float

from vaswani_jax.core import types


@dataclasses.dataclass(frozen=True)
class Output:
    """One translation of one piece of a line.

    Attributes:
        source: The piece's ids, without an end mark.
        ids: The translation's ids, with the end mark if the search reached one.
        score: log P(Y|X) / lp(Y) in nats.
    """

    source: tuple[int, ...]
    ids: tuple[int, ...]
    score: float


@dataclasses.dataclass(frozen=True)
class Hypothesis:
    """One translation of a line.

    Attributes:
        text: The translation, always a single line.
        score: log P(Y|X) / lp(Y) in nats, the sum over the line's pieces.
        tokens: Its subwords as the vocabulary spells them, with the end mark if the
            search reached one.
        outputs: The `Output` of each piece of the line. Most lines are one piece; a
            line without a subword has none.
        symbols: Of a tree, the symbols that the search chose, without end marks; None
            of other text.
        is_repaired: True if these are not a tree over the words, so that
            `linearization.build_tree` repaired them for the text.
        rank_score: The key of a reranked list, highest first: the expected utility, or
            the sum of the score and what reranking adds; None in the order of the
            search.
        missing_phrases: The phrases that it must have and lacks.
    """

    text: str
    score: float
    tokens: tuple[str, ...]
    outputs: tuple[Output, ...]
    symbols: tuple[str, ...] | None = None
    is_repaired: bool = False
    rank_score: float | None = None
    missing_phrases: tuple[str, ...] = ()

    @property
    def is_cut(self) -> bool:
        """True if the search reached its limit of tokens before an end mark.

        No tree is: one without an end is repaired.
        """
        return self.symbols is None and any(
            output.ids[-1:] != (types.EOS_ID,) for output in self.outputs
        )


@dataclasses.dataclass(frozen=True)
class PairScore:
    """The probability of a given translation.

    Attributes:
        log_prob: log P(Y|X) in nats, the sum of `log_probs`.
        tokens: The translation's subwords as the vocabulary spells them, then the end
            mark.
        log_probs: log P(y_t | y_<t, X) of each of them in nats.
    """

    log_prob: float
    tokens: tuple[str, ...]
    log_probs: tuple[float, ...]


@dataclasses.dataclass(frozen=True)
class Attention:
    """Every attention weight of one sentence pair: all layers, H heads (figure 1).

    Each row of weights sums to 1. An ensemble's are the mean of its models'.

    Attributes:
        source: The S source subwords, with the end mark.
        target_in: The T subwords that the decoder reads: the begin mark, then the
            translation.
        target_out: The T subwords that it predicts, one at each position: the
            translation, then the end mark if there is one.
        encoder: How much each source position looks at each source position.
        decoder: How much each position of `target_in` looks at each position of
            `target_in`; 0 for later ones.
        memory: How much each position of `target_in` looks at each source position.
    """

    source: tuple[str, ...]
    target_in: tuple[str, ...]
    target_out: tuple[str, ...]
    encoder: Float[np.ndarray, "N_enc H S S"]
    decoder: Float[np.ndarray, "N_dec H T T"]
    memory: Float[np.ndarray, "N_dec H T S"]


@dataclasses.dataclass(frozen=True)
class AttendedPair:
    """A sentence and its translation, with the attention between them.

    Attributes:
        text: The translation.
        source: Its source's ids, without an end mark.
        ids: Its own ids, with the end mark if there is one.
        log_probs: log P(y_t | y_<t, X) of each of `ids` in nats.
        attention: The weights.
    """

    text: str
    source: tuple[int, ...]
    ids: tuple[int, ...]
    log_probs: tuple[float, ...]
    attention: Attention
