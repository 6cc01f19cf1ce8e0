"""The shares of several corpora in the epochs of a run, exact to the pair.

An epoch has a fixed number of pairs. Each corpus gives its share of them, rounded so
that the sum is exact, from its own endless sequence of passes: see `sequences`.
"""

import dataclasses
import decimal
import itertools
from collections.abc import Mapping, Sequence
from fractions import Fraction

from vaswani_jax.core import config, tables
from vaswani_jax.core.corpora import Corpus
from vaswani_jax.data import token_files

HEADING = ("corpus", "pairs", "share", "passes", "source tokens", "target tokens")
WEIGHTS = "config.data.corpora or config.data.stages"


@dataclasses.dataclass(frozen=True)
class Quotas:
    """The pairs that each corpus gives to every epoch from a batch on.

    Attributes:
        first_batch: The number of the first batch of these epochs, from 0.
        pairs: The pairs of each corpus, in the order of the corpora.
    """

    first_batch: int
    pairs: tuple[int, ...]


@dataclasses.dataclass(frozen=True)
class Mixture:
    """The shares of all corpora in the epochs of a run.

    Attributes:
        names: The names of the corpora.
        sizes: The number of prepared pairs of each corpus. Prepared data has one corpus
            after the other.
        copies: How often each corpus was written, see `num_copies`.
        quotas: Those of each stage, in their order; the first begins at batch 0.
    """

    names: tuple[str, ...]
    sizes: tuple[int, ...]
    copies: tuple[int, ...]
    quotas: tuple[Quotas, ...]

    @property
    def parts(self) -> list[slice]:
        """The slice of each corpus in the prepared pairs."""
        ends = itertools.accumulate(self.sizes, initial=0)
        return [slice(start, end) for start, end in itertools.pairwise(ends)]

    @property
    def begins_plain(self) -> bool:
        """True if each epoch of the first stage has every pair once.

        Then its batches are those of one text, whatever stages follow.
        """
        return self.quotas[0].pairs == self.sizes

    @property
    def is_plain(self) -> bool:
        """True if every epoch has every pair once, as if there were one corpus."""
        return len(self.quotas) == 1 and self.begins_plain


def plan(data: config.DataConfig, sizes: Mapping[str, int]) -> Mixture | None:
    """Return the mixture of the settings; None if they name no corpora.

    Args:
        data: Names the corpora, and says how to mix them.
        sizes: The number of prepared pairs of each corpus, by name.

    Raises:
        ValueError: A corpus with a weight gets no pair of an epoch.
    """
    corpora = data.training_corpora
    if not corpora:
        return None
    copies = tuple(num_copies(data, corpus) for corpus in corpora)
    num_pairs = tuple(sizes[corpus.name] for corpus in corpora)
    quotas = []
    for batch, weights in stage_weights(data, num_pairs):
        in_use = [n for n, weight in zip(num_pairs, weights, strict=True) if weight]
        epoch_pairs = data.epoch_pairs or sum(in_use)
        pairs = divide_proportionally(epoch_pairs, weights)
        for corpus, weight, count in zip(corpora, weights, pairs, strict=True):
            if weight and not count:
                raise ValueError(
                    f"corpus {corpus.name!r} gets none of the {epoch_pairs:,} pairs of "
                    f"an epoch from batch {batch:,} on: raise config.data.epoch_pairs, "
                    f"or the weight of the corpus in {WEIGHTS}"
                )
        quotas.append(Quotas(batch, tuple(pairs)))
    names = tuple(corpus.name for corpus in corpora)
    return Mixture(names, num_pairs, copies, tuple(quotas))


def num_copies(data: config.DataConfig, corpus: Corpus | None) -> int:
    """Return how often the text of a corpus is written into prepared data.

    Each time it is segmented and made noisy anew, if the settings ask for that.
    """
    return max(data.subword_samples, corpus.noise_copies if corpus else 1)


def stage_weights(
    data: config.DataConfig, num_pairs: Sequence[int]
) -> list[tuple[int, list[Fraction]]]:
    """Return the first batch of each stage, and the weight of each corpus from it on.

    The weights of the corpora themselves hold until the first of `data.stages`.

    Args:
        data: Names the corpora and the stages.
        num_pairs: The number of pairs of each corpus, its copies included.
    """
    corpora = data.training_corpora
    corpus_weights = [
        _size_weight(
            Fraction(count, num_copies(data, corpus)),
            temperature=data.corpora_temperature,
        )
        if corpus.weight is None
        else _exact(corpus.weight)
        for corpus, count in zip(corpora, num_pairs, strict=True)
    ]
    stages = [(0, corpus_weights)]
    for stage in data.training_stages:
        exact_weights = {name: _exact(weight) for name, weight in stage.weights}
        weights = [exact_weights.get(corpus.name, Fraction(0)) for corpus in corpora]
        if stage.batch == 0:
            stages = []
        stages.append((stage.batch, weights))
    return stages


@dataclasses.dataclass(frozen=True)
class CorpusShare:
    """The part of an epoch that a corpus gives.

    Attributes:
        name: The corpus's.
        pairs: The pairs of the epoch that are its own.
        share: These as a share of all pairs of the epoch.
        passes: These as a number of passes over its text, not over all copies.
        source_tokens: Expected source tokens of these pairs, with end marks.
        target_tokens: Expected target tokens of these pairs, with end marks.
    """

    name: str
    pairs: int
    share: float
    passes: float
    source_tokens: float
    target_tokens: float


@dataclasses.dataclass(frozen=True)
class EpochShares:
    """The parts that the corpora give to every epoch of a stage.

    Attributes:
        first_batch: The number of the first batch of these epochs, from 0.
        num_batches: The number of batches of an epoch.
        corpora: The share of each corpus.
    """

    first_batch: int
    num_batches: int
    corpora: tuple[CorpusShare, ...]

    def format(self) -> str:
        """Return the shares as a table of text."""
        rows: list[tuple[str, ...]] = [HEADING]
        for corpus in self.corpora:
            rows.append(
                (
                    corpus.name,
                    f"{corpus.pairs:,}",
                    f"{corpus.share:.1%}",
                    f"{corpus.passes:,.3g}",
                    f"{corpus.source_tokens:,.0f}",
                    f"{corpus.target_tokens:,.0f}",
                )
            )
        title = (
            f"an epoch from batch {self.first_batch:,} on: "
            f"{sum(corpus.pairs for corpus in self.corpora):,} pairs in "
            f"{self.num_batches:,} batches"
        )
        return "\n".join([title, *tables.align(rows)])


def epoch_shares(
    mixture: Mixture, pairs: token_files.TokenPairs, *, num_batches: Sequence[int]
) -> tuple[EpochShares, ...]:
    """Return what each corpus gives to an epoch, for each stage.

    Args:
        mixture: The quotas of the corpora.
        pairs: All prepared pairs.
        num_batches: The number of batches of an epoch of each stage.
    """
    tokens_of_pair = [
        [
            (side.tokens_in(part) + size) / size
            for part, size in zip(mixture.parts, mixture.sizes, strict=True)
        ]
        for side in (pairs.source, pairs.target)
    ]
    stages = []
    for quotas, count in zip(mixture.quotas, num_batches, strict=True):
        corpora = []
        for number, quota in enumerate(quotas.pairs):
            source_tokens, target_tokens = (
                quota * tokens[number] for tokens in tokens_of_pair
            )
            corpora.append(
                CorpusShare(
                    name=mixture.names[number],
                    pairs=quota,
                    share=quota / sum(quotas.pairs),
                    passes=quota * mixture.copies[number] / mixture.sizes[number],
                    source_tokens=source_tokens,
                    target_tokens=target_tokens,
                )
            )
        stages.append(EpochShares(quotas.first_batch, count, tuple(corpora)))
    return tuple(stages)


def divide_proportionally(total: int, weights: Sequence[Fraction]) -> list[int]:
    """Return parts of a total in proportion to weights, rounded by largest remainder.

    >>> divide_proportionally(10, [Fraction(1), Fraction(1), Fraction(1)])
    [4, 3, 3]
    """
    exact_parts = [total * weight / sum(weights) for weight in weights]
    parts = [int(part) for part in exact_parts]
    by_remainder = sorted(range(len(parts)), key=lambda n: parts[n] - exact_parts[n])
    for n in by_remainder[: total - sum(parts)]:
        parts[n] += 1
    return parts


def _exact(weight: float) -> Fraction:
    """Return the exact value of the decimal digits: 1/10 for 0.1."""
    return Fraction(repr(weight))


def _size_weight(num_pairs: Fraction, *, temperature: float) -> Fraction:
    """Return size^(1/T) with 28 digits, the same on every machine."""
    if temperature == 1:
        return num_pairs
    with decimal.localcontext(decimal.Context(prec=28)):
        size = decimal.Decimal(num_pairs.numerator) / num_pairs.denominator
        return Fraction(size ** (1 / decimal.Decimal(repr(temperature))))
