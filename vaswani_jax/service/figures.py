"""Count the work of an engine."""

import dataclasses

from vaswani_jax.service.batches import Batch, Sentence


@dataclasses.dataclass(kw_only=True)
class Figures:
    """The work of an engine since its start, and the sentences that wait for it.

    Attributes:
        waiting: Sentences that wait for a batch.
        running: Sentences in the batches that are computed.
        batches: Batches that were computed.
        sentences: Sentences in these batches.
        rows: Rows of these batches, those of padding included.
        tokens: Tokens of the sources that were searched.
        padded_tokens: The same with padding.
        failures: Batches that failed.
        refused: Sentences that came while the queue had no room, or the engine ended.
        late: Sentences that were dropped because their request's time was over.
        cancelled: Sentences that were dropped because their client has left, or another
            part of their request failed.
        busy_seconds: Seconds that batches took to compute, the sum over threads.
        waited_seconds: Seconds that sentences waited for their batch, the sum over all.
    """

    waiting: int = 0
    running: int = 0
    batches: int = 0
    sentences: int = 0
    rows: int = 0
    tokens: int = 0
    padded_tokens: int = 0
    failures: int = 0
    refused: int = 0
    late: int = 0
    cancelled: int = 0
    busy_seconds: float = 0.0
    waited_seconds: float = 0.0

    def __add__(self, other: "Figures") -> "Figures":
        """Return the sum of each figure."""
        names = [field.name for field in dataclasses.fields(self)]
        return Figures(
            **{name: getattr(self, name) + getattr(other, name) for name in names}
        )

    def add_batch(self, batch: Batch, now: float) -> None:
        """Add a batch that begins.

        Args:
            batch: The batch.
            now: The time in seconds, by the clock of `Request.arrival`.
        """
        self.batches += 1
        self.rows += batch.num_rows
        for job in batch.jobs:
            self.running += job.num_sentences
            self.sentences += job.num_sentences
            self.waited_seconds += (now - job.request.arrival) * job.num_sentences
            if isinstance(job, Sentence):
                self.tokens += job.length
        if batch.lengths:
            self.padded_tokens += batch.lengths.source * batch.num_rows
