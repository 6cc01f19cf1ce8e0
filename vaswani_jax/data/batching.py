"""Section 5.1: batch sentence pairs together by approximate sequence length.

A batch is global: its size does not depend on the number of devices. Which pairs it
holds depends on the seed and the step alone.
"""

import abc
import bisect
import collections
import dataclasses
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Int

from vaswani_jax.core import types
from vaswani_jax.data import token_files
from vaswani_jax.data.bucket_lengths import separate_lengths, shared_lengths
from vaswani_jax.data.mixture import Mixture
from vaswani_jax.data.sequences import Draws, UnitSequence

# With this multiple of rows, 2, 4 or 8 devices share a batch evenly.
ROW_MULTIPLE = 8
# The last numbers of the seeds of a mixture: the order of pairs, and of batches.
EPOCH, BATCHES = 4, 5
# From the rows of a global batch to the rows that this process reads.
LocalRows = Callable[[int], range]


@dataclasses.dataclass(frozen=True)
class Bucket:
    """One padded shape: rows, source tokens and target tokens of a batch."""

    rows: int
    source_length: int
    target_length: int

    def __str__(self) -> str:
        """Return rows and tokens, as 64x32; as 64x24x40 if the sides differ."""
        lengths = dict.fromkeys((self.source_length, self.target_length))
        return "x".join(map(str, (self.rows, *lengths)))

    def describe_tokens(self) -> str:
        """Return the tokens of a row in words."""
        if self.source_length == self.target_length:
            return f"{self.source_length} tokens"
        return f"{self.source_length} source and {self.target_length} target tokens"


def shape_notation(buckets: Iterable[Bucket]) -> str:
    """Return what the numbers in the texts of some buckets mean."""
    if all(bucket.source_length == bucket.target_length for bucket in buckets):
        return "rows x tokens"
    return "rows x tokens, or rows x source x target tokens"


class Slice(NamedTuple):
    """The rows of a batch in the order of an epoch, and the index of their bucket."""

    bucket: int
    start: int
    end: int


class EpochPlan(NamedTuple):
    """The batches of each epoch of a stage, and the number of the first, from 0."""

    first_batch: int
    slices: list[Slice]


class Batches(abc.ABC):
    """The batches of token pairs, in any order: `batch_at` is a pure function.

    Only the order of the last epoch asked for is kept in memory. Figures of an epoch
    are those of the first stage.

    Attributes:
        buckets: The padded shapes of the batches.
        epoch_plans: The epochs of each stage of the run, in their order.
        tokens_per_epoch: The mean number of tokens of an epoch with their end marks,
            source's and target's.
    """

    def __init__(
        self,
        *,
        buckets: list[Bucket],
        epoch_plans: Sequence[EpochPlan],
        tokens_per_epoch: tuple[float, float],
    ) -> None:
        self.buckets = buckets
        self.epoch_plans = epoch_plans
        self.tokens_per_epoch = tokens_per_epoch
        self._first_batches = [plan.first_batch for plan in epoch_plans]
        self._epoch = (-1, -1)
        self._order = self._batch_order = np.zeros(0, np.int64)

    @property
    def batches_per_epoch(self) -> int:
        """Number of batches of an epoch; of one corpus they hold every pair once."""
        return len(self._slices)

    @property
    def shapes(self) -> list[Bucket]:
        """The padded shapes that batches of an epoch have."""
        return [
            self.buckets[n]
            for n in sorted({batch_slice.bucket for batch_slice in self._slices})
        ]

    @property
    def num_batches(self) -> dict[Bucket, int]:
        """Number of batches of each shape in an epoch."""
        counts = collections.Counter(batch.bucket for batch in self._slices)
        return {bucket: counts[n] for n, bucket in enumerate(self.buckets)}

    @property
    def padding_share(self) -> float:
        """Share of the positions of an epoch's batches that hold no token."""
        shapes = [self.buckets[batch.bucket] for batch in self._slices]
        positions = sum(
            shape.rows * (shape.source_length + shape.target_length) for shape in shapes
        )
        return 1 - sum(self.tokens_per_epoch) / positions

    def batch_at(self, index: int, local_rows: LocalRows | None = None) -> types.Batch:
        """Return a batch of the run.

        A pure function of (seed, index), epoch after epoch.
        Rows beyond an epoch's last pair are padding.

        Args:
            index: The number of batches before it, skipped ones included.
            local_rows: Returns the rows to read; the others are padding. By default
                all rows are read.
        """
        bucket, rows = self._rows_at(index)
        selection = local_rows(bucket.rows) if local_rows else range(bucket.rows)
        return self._assemble(
            bucket, rows[selection.start : selection.stop], first_row=selection.start
        )

    def pairs_at(self, index: int) -> Int[np.ndarray, "N"]:
        """Return the indices of the pairs of `batch_at`."""
        return self._rows_at(index)[1]

    def empty(self, bucket: Bucket) -> types.Batch:
        """Return a batch of padding in the shape of a bucket."""
        return self._assemble(bucket, np.zeros(0, np.int64), first_row=0)

    @property
    def _slices(self) -> list[Slice]:
        return self.epoch_plans[0].slices

    def _rows_at(self, index: int) -> tuple[Bucket, Int[np.ndarray, "R"]]:
        stage_number = bisect.bisect(self._first_batches, index) - 1
        plan = self.epoch_plans[stage_number]
        epoch, place = divmod(index - plan.first_batch, len(plan.slices))
        if (stage_number, epoch) != self._epoch:
            self._order, self._batch_order = self._order_epoch(stage_number, epoch)
            self._epoch = stage_number, epoch
        number, start, end = plan.slices[self._batch_order[place]]
        return self.buckets[number], self._order[start:end]

    @abc.abstractmethod
    def _order_epoch(self, stage: int, epoch: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the order of the rows and of the batches of a stage's epoch."""

    @abc.abstractmethod
    def _assemble(
        self, bucket: Bucket, rows: Int[np.ndarray, "R"], *, first_row: int
    ) -> types.Batch:
        """Return a batch with these rows from `first_row` on, and padding."""


class BucketedBatches(Batches):
    """Batches with one pair in a row, of similar length."""

    def __init__(
        self,
        token_pairs: token_files.TokenPairs,
        *,
        source_tokens: int,
        target_tokens: int,
        num_buckets: int,
        bucket_lengths: str,
        max_length: int,
        seed: int,
        shuffle: bool,
        mixture: Mixture | None = None,
    ) -> None:
        """Plan the batches of an epoch.

        Args:
            token_pairs: The pairs.
            source_tokens: Padded source tokens of a batch, at most.
            target_tokens: Padded target tokens of a batch, at most.
            num_buckets: The largest number of padded shapes.
            bucket_lengths: "shared" for one padded length of both sides, "separate" for
                one of each.
            max_length: Tokens of the longest sentence, with its end mark.
            seed: Decides the order of the pairs.
            shuffle: Whether to draw a new order for each epoch. Mixtures are always
                shuffled.
            mixture: What each epoch has of parts of the pairs; if None, every pair.
        """
        plan = separate_lengths if bucket_lengths == "separate" else shared_lengths
        lengths, self._pair_buckets = plan(
            token_pairs, num_buckets=num_buckets, max_length=max_length
        )
        buckets = [
            Bucket(
                min(
                    rows_within(source_tokens, length=source),
                    rows_within(target_tokens, length=target),
                ),
                source,
                target,
            )
            for source, target in lengths
        ]
        self._token_pairs = token_pairs
        self._seed = seed
        self._shuffle = shuffle
        self._draws: Draws | None = None
        self._begins_plain = mixture is None or mixture.begins_plain
        if mixture:
            epoch_plans = self._plan_mixture(mixture, buckets)
        else:
            counts = token_files.histogram(self._pair_buckets)
            epoch_plans = [EpochPlan(0, plan_slices(counts, buckets))]
        super().__init__(
            buckets=buckets,
            epoch_plans=epoch_plans,
            tokens_per_epoch=tokens_per_epoch(token_pairs, mixture),
        )

    def _plan_mixture(self, mixture: Mixture, buckets: list[Bucket]) -> list[EpochPlan]:
        """Return the epochs of a mixture, from the fewest pairs of short buckets.

        An epoch that has more of them fills longer buckets with the rest.
        """
        sequences = [
            UnitSequence(
                [
                    part.start
                    + token_files.indices_of(number, self._pair_buckets[part])
                    for number in range(len(buckets))
                ],
                pairs_per_unit=[1] * len(buckets),
                seed=[self._seed, corpus_number],
            )
            for corpus_number, part in enumerate(mixture.parts)
        ]
        epoch_plans = []
        for quotas in mixture.quotas:
            least = sum(
                np.array(sequence.least_counts(num_pairs))
                for sequence, num_pairs in zip(sequences, quotas.pairs, strict=True)
            )
            counts = np.diff(least, prepend=0)
            epoch_plans.append(
                EpochPlan(quotas.first_batch, plan_slices(counts, buckets))
            )
        self._draws = Draws(
            mixture, sequences, num_batches=[len(plan.slices) for plan in epoch_plans]
        )
        return epoch_plans

    def _order_epoch(self, stage: int, epoch: int) -> tuple[np.ndarray, np.ndarray]:
        num_batches = len(self.epoch_plans[stage].slices)
        is_plain = stage == 0 and self._begins_plain
        if self._draws and not is_plain:
            pairs, _ = self._draws.epoch(stage, epoch)
            seed = [self._seed, stage, epoch]
            pairs = pairs[token_files.shuffled(len(pairs), [*seed, EPOCH])]
            batch_order = token_files.shuffled(num_batches, [*seed, BATCHES])
        elif self._shuffle:
            pairs = token_files.shuffled(len(self._pair_buckets), [self._seed, epoch])
            batch_order = token_files.shuffled(num_batches, [self._seed, epoch, 1])
        else:
            pairs = np.arange(len(self._pair_buckets))
            batch_order = np.arange(num_batches)
        buckets = self._pair_buckets[pairs]
        order = np.concatenate(
            [pairs[buckets == number] for number in range(len(self.buckets))]
        )
        return order, batch_order

    def _assemble(
        self, bucket: Bucket, rows: Int[np.ndarray, "R"], *, first_row: int
    ) -> types.Batch:
        source = np.zeros((bucket.rows, bucket.source_length), np.int32)
        target_in, target_out = (
            np.zeros((bucket.rows, bucket.target_length), np.int32) for _ in range(2)
        )
        row = first_row + np.arange(len(rows))
        ids, lengths = self._token_pairs.source.rows(rows, length=bucket.source_length)
        source[row] = ids
        source[row, lengths] = types.EOS_ID
        ids, lengths = self._token_pairs.target.rows(rows, length=bucket.target_length)
        target_in[row, 1:] = ids[:, :-1]
        target_in[row, 0] = types.BOS_ID
        target_out[row] = ids
        target_out[row, lengths] = types.EOS_ID
        return types.Batch(source, target_in, target_out)


def tokens_per_epoch(
    token_pairs: token_files.TokenPairs, mixture: Mixture | None
) -> tuple[float, float]:
    """Return the mean tokens of an epoch, of the first stage if there are several.

    End marks are counted.
    """
    if not mixture or mixture.begins_plain:
        source, target = (float(side.num_tokens() + len(side)) for side in token_pairs)
        return source, target
    source, target = (
        sum(
            count * (side.tokens_in(part) / (part.stop - part.start) + 1)
            for part, count in zip(mixture.parts, mixture.quotas[0].pairs, strict=True)
        )
        for side in token_pairs
    )
    return source, target


def plan_slices(counts: Int[np.ndarray, "K"], buckets: list[Bucket]) -> list[Slice]:
    """Return the batches of an epoch, in pairs ordered by bucket.

    Pairs that do not fill a bucket's last batch move up into the next bucket, so one
    batch of an epoch is not full. The slices depend on the counts alone, so every epoch
    has the same.
    """
    slices, start, end = [], 0, 0
    for number, bucket in enumerate(buckets):
        end += int(counts[number])
        while end - start >= bucket.rows:
            slices.append(Slice(number, start, start + bucket.rows))
            start += bucket.rows
    if end > start:
        slices.append(Slice(len(buckets) - 1, start, end))
    return slices


def rows_within(budget: int, *, length: int) -> int:
    """Return how many rows of a length fit a budget of tokens.

    A number above 8 is rounded down to a multiple of 8.
    """
    rows = budget // length
    if rows >= ROW_MULTIPLE:
        rows -= rows % ROW_MULTIPLE
    return max(1, rows)
