"""Decide which of the waiting sentences are computed together, and when.

A queue knows neither threads nor a clock: its caller says what time it is.
"""

import dataclasses
import heapq
from collections.abc import Callable
from typing import Any, NamedTuple

from vaswani_jax.inference.pieces import Piece
from vaswani_jax.service.shapes import Lengths, Shapes


@dataclasses.dataclass(eq=False, kw_only=True)
class Request:
    """A call of a client, or a part of one, from its arrival to its answer.

    Attributes:
        deadline: When its answer is too late, in seconds.
        arrival: When it came.
        turn: How many jobs of the client's call stand before those of this part.
    """

    arrival: float
    deadline: float | None = None
    turn: int = 0


@dataclasses.dataclass(eq=False, kw_only=True)
class Sentence:
    """A sentence, or a piece of a long one, that waits for the search.

    Attributes:
        request: The request that it belongs to.
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
    def is_constrained(self) -> bool:
        """True if its translations have a prefix, or phrases to search for."""
        return bool(self.piece.prefix) or self.piece.has_phrases

    @property
    def length(self) -> int:
        """The tokens of the source, with the end mark."""
        return len(self.piece.ids) + 1


@dataclasses.dataclass(eq=False, kw_only=True)
class Call:
    """Sentences of one request that are computed together, without those of others.

    Attributes:
        request: The request that they belong to.
        index: Its place among the calls of its request.
        function: Computes them.
        num_sentences: The number of sentences.
    """

    request: Request
    index: int
    function: Callable[[], Any]
    num_sentences: int


Job = Sentence | Call


class Batch(NamedTuple):
    """Jobs that are computed together: sentences of any requests, or one call.

    Attributes:
        jobs: The sentences, or the call.
        lengths: The lengths that sentences are padded to; None for a call.
        num_rows: The number of rows, those of padding included.
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
            shapes: The shapes that batches may have.
            wait_seconds: Most seconds that a job waits for others while nothing is
                computed.
        """
        self._shapes = shapes
        self._max_rows = max(rows[-1] for rows in shapes.search_rows.values())
        self._wait_seconds = wait_seconds
        # A dictionary has an order and forgets a job at once.
        self._jobs: dict[Job, None] = {}
        self._is_oldest_next = True
        self.num_sentences = 0

    def add(self, job: Job) -> None:
        """Append a job."""
        self._jobs[job] = None
        self.num_sentences += job.num_sentences

    def discard(self, job: Job) -> None:
        """Remove a job, if it waits."""
        if job in self._jobs:
            del self._jobs[job]
            self.num_sentences -= job.num_sentences

    def late(self, now: float) -> list[Job]:
        """Return the jobs whose deadline has passed."""
        return [
            job
            for job in self._jobs
            if job.request.deadline is not None and job.request.deadline <= now
        ]

    def ready_time(self, *, num_requests: int = 0) -> float | None:
        """Return the time from which `take` may be called; None if nothing waits.

        The oldest job waits for others, unless they fill a batch already.

        Args:
            num_requests: How many requests wait or are expected soon.
        """
        oldest = next(iter(self._jobs), None)
        if oldest is None:
            return None
        is_full = self.num_sentences >= self._max_rows
        if is_full or len({job.request for job in self._jobs}) >= num_requests:
            return oldest.request.arrival
        return oldest.request.arrival + self._wait_seconds

    def take(self) -> Batch:
        """Remove and return the jobs of the next batch.

        At least one job must wait.

        Every other batch has the oldest job. Those between have the oldest among the
        jobs that come first in their clients' calls, so that a long call does not hold
        up a short one. The other rows are for sentences of similar length.
        """
        first = next(iter(self._jobs))
        if not self._is_oldest_next:
            # min returns the oldest of equals.
            first = min(self._jobs, key=lambda job: job.request.turn + job.index)
        self._is_oldest_next = not self._is_oldest_next
        if isinstance(first, Call):
            batch = Batch((first,), None, first.num_sentences)
        else:
            batch = self._batch_with(first)
        for job in batch.jobs:
            self.discard(job)
        return batch

    def _batch_with(self, first: Sentence) -> Batch:
        candidates = [
            job
            for job in self._jobs
            if isinstance(job, Sentence)
            and job.beam_size == first.beam_size
            and job.is_constrained == first.is_constrained
        ]
        # Outputs are about as long as their sources, and all wait for the longest.
        nearest = heapq.nsmallest(
            self._max_rows + 1,
            candidates,
            key=lambda job: (job is not first, abs(job.length - first.length)),
        )
        sentences: list[Sentence] = []
        lengths = self._lengths([first])
        for job in nearest:
            joint_lengths = self._lengths([*sentences, job])
            if len(sentences) < self._shapes.search_rows[joint_lengths][-1]:
                sentences.append(job)
                lengths = joint_lengths
        number = self._shapes.num_sentences(len(sentences), lengths)
        sentences = sentences[:number]
        lengths = self._lengths(sentences)
        num_rows = self._shapes.num_rows(len(sentences), lengths)
        return Batch(tuple(sentences), lengths, num_rows)

    def _lengths(self, sentences: list[Sentence]) -> Lengths:
        return self._shapes.lengths(
            source=max(job.length for job in sentences),
            prefix=max(len(job.piece.prefix) for job in sentences),
            has_phrases=any(job.piece.has_phrases for job in sentences),
        )
