"""Decide which of the waiting sentences are computed together, and when.

A queue knows neither threads nor a clock: its caller says what time it is.
"""

import dataclasses
import heapq
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from vaswani_jax.inference.line_translator import Piece
from vaswani_jax.service.shapes import Lengths, Shapes


@dataclasses.dataclass(eq=False, kw_only=True)
class Request:
    """A call of a client, from its arrival to its answer.

    Attributes:
        deadline: When its answer is too late, in seconds.
        arrival: When it came.
    """

    arrival: float
    deadline: float | None = None


@dataclasses.dataclass(eq=False, kw_only=True)
class Sentence:
    """A sentence, or a piece of a long one, that waits for the search.

    Attributes:
        request: Whose it is.
        index: Its place among those of its request.
        piece: Its ids.
        beam_size: W; sentences of equal beam sizes share batches.
        length_penalty: alpha.
        n_best: How many hypotheses are wanted.
    """

    request: Request
    index: int
    piece: Piece
    beam_size: int
    length_penalty: float
    n_best: int

    num_sentences = 1

    @property
    def length(self) -> int:
        """The tokens of the source, with the end mark."""
        return len(self.piece.ids) + 1


@dataclasses.dataclass(eq=False, kw_only=True)
class Call:
    """Sentences of one request that are computed together, without those of others.

    Attributes:
        request: Whose they are.
        index: Its place among the calls of its request.
        function: Computes them.
        num_sentences: How many they are.
    """

    request: Request
    index: int
    function: Callable[[], Any]
    num_sentences: int


Job = Sentence | Call


class Batch(NamedTuple):
    """Jobs that are computed together: sentences of any requests, or one call.

    Attributes:
        jobs: They.
        lengths: What sentences are padded to; None for a call.
        num_rows: The rows with those of padding.
    """

    jobs: tuple[Job, ...]
    lengths: Lengths | None
    num_rows: int


class Queue:
    """Jobs that wait, in the order of their arrival.

    Attributes:
        num_sentences: How many sentences they have.
    """

    def __init__(self, shapes: Shapes, *, wait_seconds: float) -> None:
        """Make an empty queue.

        Args:
            shapes: Those that batches may have.
            wait_seconds: Most seconds that a job waits for others while nothing is
                computed.
        """
        self._shapes = shapes
        self._wait_seconds = wait_seconds
        # A dictionary has an order and forgets a job at once.
        self._jobs: dict[Job, None] = {}
        self._num_requests = 0  # Those of the batch before.
        self._is_oldest_next = True
        self.num_sentences = 0

    def __iter__(self) -> Iterator[Job]:
        """Iterate over the jobs that wait, the oldest first."""
        return iter(self._jobs)

    def add(self, job: Job) -> None:
        """Let a job wait."""
        self._jobs[job] = None
        self.num_sentences += job.num_sentences

    def discard(self, job: Job) -> None:
        """Forget a job, if it waits."""
        if job in self._jobs:
            del self._jobs[job]
            self.num_sentences -= job.num_sentences

    def late(self, now: float) -> list[Job]:
        """Return the jobs that are too late."""
        return [
            job
            for job in self._jobs
            if job.request.deadline is not None and job.request.deadline <= now
        ]

    def ready_time(self) -> float | None:
        """Return from when on `take` returns a batch; None if nothing waits.

        A job that comes while nothing is computed waits for others if the batch before
        had those of more requests: these clients have their answers, and ask again.
        """
        oldest = next(iter(self._jobs), None)
        if oldest is None:
            return None
        if len({job.request for job in self._jobs}) >= self._num_requests:
            return oldest.request.arrival
        return oldest.request.arrival + self._wait_seconds

    def take(self) -> Batch:
        """Remove and return the jobs of the next batch; some must wait.

        Every other batch has the oldest job. Those between have the oldest among the
        jobs that come first in their requests, so that a long request does not hold up
        a short one. The other rows are for sentences of similar length.
        """
        first = next(iter(self._jobs))
        if not self._is_oldest_next:
            # min returns the oldest of equals.
            first = min(self._jobs, key=lambda job: job.index)
        self._is_oldest_next = not self._is_oldest_next
        if isinstance(first, Call):
            batch = Batch((first,), None, first.num_sentences)
        else:
            batch = self._batch_with(first)
        for job in batch.jobs:
            self.discard(job)
        self._num_requests = len({job.request for job in batch.jobs})
        return batch

    def _batch_with(self, first: Sentence) -> Batch:
        has_prefix = bool(first.piece.prefix)
        candidates = [
            job
            for job in self._jobs
            if isinstance(job, Sentence)
            and job.beam_size == first.beam_size
            and bool(job.piece.prefix) == has_prefix
        ]
        most = max(rows[-1] for rows in self._shapes.search_rows.values())
        # Outputs are about as long as their sources, and all wait for the longest.
        nearest = heapq.nsmallest(
            most + 1,
            candidates,
            key=lambda job: (job is not first, abs(job.length - first.length)),
        )
        chosen: list[Sentence] = []
        lengths = self._lengths([first])
        for job in nearest:
            joint = self._lengths([*chosen, job])
            if len(chosen) < self._shapes.search_rows[joint][-1]:
                chosen.append(job)
                lengths = joint
        number = self._shapes.num_sentences(len(chosen), lengths)
        chosen = chosen[:number]
        lengths = self._lengths(chosen)
        num_rows = self._shapes.num_rows(len(chosen), lengths)
        return Batch(tuple(chosen), lengths, num_rows)

    def _lengths(self, sentences: list[Sentence]) -> Lengths:
        return self._shapes.lengths(
            source=max(job.length for job in sentences),
            prefix=max(len(job.piece.prefix) for job in sentences),
        )
