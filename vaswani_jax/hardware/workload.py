"""Describe the run that `check` judges: its settings and the shapes of its batches."""

import dataclasses
from collections.abc import Sequence

from vaswani_jax.core import config, types
from vaswani_jax.data import batching

# The commonest padded length of the sentences of WMT14.
USUAL_LENGTH = 32


@dataclasses.dataclass(frozen=True, kw_only=True)
class Shape:
    """A padded shape of global batches.

    Attributes:
        bucket: Its rows and lengths.
        batches: How many batches of an epoch have it; 0 if no data is prepared.
    """

    bucket: batching.Bucket
    batches: int


@dataclasses.dataclass(frozen=True, kw_only=True)
class Workload:
    """A run to judge.

    Attributes:
        settings: Its settings.
        vocab_size: V.
        shapes: Those of its batches, or one in place of unknown ones.
        num_shapes: How many shapes the run will have.
        target_tokens: Mean of a batch, without padding; None if no data is prepared.
        all_shapes: Whether to compile every shape.
        dollars_per_hour: The price of a chip; None for no price.
    """

    settings: config.Config
    vocab_size: types.VocabSize
    shapes: Sequence[Shape]
    num_shapes: int
    target_tokens: float | None
    all_shapes: bool
    dollars_per_hour: float | None

    @property
    def commonest(self) -> batching.Bucket:
        """The shape of the most batches."""
        return max(self.shapes, key=lambda shape: shape.batches).bucket

    @property
    def judged(self) -> list[batching.Bucket]:
        """The shapes that estimates are of."""
        if self.all_shapes:
            return [shape.bucket for shape in self.shapes]
        return [self.commonest]


def usual_length(data: config.DataConfig) -> int:
    """Return the padded length of usual sentences, at most the longest in training."""
    return min(USUAL_LENGTH, data.max_length)


def usual_bucket(data: config.DataConfig) -> batching.Bucket:
    """Return the shape of batches to expect before data is prepared."""
    is_packed = data.batching == "packed"
    length = data.packed_length if is_packed else usual_length(data)
    budget = min(data.source_tokens_per_batch, data.target_tokens_per_batch)
    rows = batching.rows_within(budget, length=length)
    return batching.Bucket(rows, length, length)
