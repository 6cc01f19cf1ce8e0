"""One model in memory that answers the requests of many clients in shared batches."""

import asyncio
import collections
import contextlib
import dataclasses
import functools
import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent import futures
from typing import Any, TypeVar

from vaswani_jax.core import side_by_side
from vaswani_jax.inference.phrases import Phrase, mark_missing
from vaswani_jax.inference.results import AttendedPair, Hypothesis, PairScore
from vaswani_jax.inference.translator import Translator
from vaswani_jax.service import batches
from vaswani_jax.service.few_shapes import FewShapesTranslator, SearchRow
from vaswani_jax.service.figures import Figures
from vaswani_jax.service.limits import Limits, OverloadedError, Search, TooLateError

logger = logging.getLogger(__name__)
Result = TypeVar("Result")
# A request's pairs are scored so many at a time: other requests come between.
PAIRS_PER_CALL = 8
# A batch counts this share in the measured rate.
RATE_SHARE = 0.1
MIN_RETRY_SECONDS = 1.0
COMPILING_THREADS = 2
# A search of few rows keeps one or two cores of a CPU busy.
MAX_CPU_THREADS = 4


@dataclasses.dataclass(eq=False, kw_only=True)
class _Request(batches.Request):
    """A request and the future of its answer.

    Attributes:
        future: Gets the results of its jobs, in their order, or an error.
        results: The result of each job; None until it is there.
        num_missing: How many results are not there.
    """

    future: asyncio.Future[list[Any]]
    results: list[Any] = dataclasses.field(default_factory=list)
    num_missing: int = 0


@dataclasses.dataclass(eq=False)
class Admission:
    """Room in the queue for a client's call whose sentences arrive in parts.

    Attributes:
        num_left: How many sentences have not come.
    """

    num_left: int


class Engine:
    """A model with a queue of sentences and threads that compute them in batches.

    Its coroutines belong to the event loop that runs when `start` is called. Deadlines
    are seconds of `time.monotonic()`.

    Attributes:
        translator: The model, with programs of few shapes.
        limits: What it allows.
        name: What requests call it.
        num_threads: How many batches are computed at a time.
    """

    def __init__(
        self,
        translator: Translator,
        *,
        limits: Limits,
        name: str,
        num_threads: int | None = None,
    ) -> None:
        """Keep the parts; nothing is computed and no thread begins.

        Args:
            translator: The model.
            limits: What it allows.
            name: What requests call it.
            num_threads: How many batches are computed at a time; by default one for
                each core of a CPU, up to 4, and one on other devices.

        Raises:
            ValueError: The model draws its outputs at random.
        """
        self.translator = FewShapesTranslator(translator, limits=limits)
        self.limits = limits
        self.name = name
        self.num_threads = num_threads or _default_threads()
        self._queue = batches.Queue(
            self.translator.shapes, wait_seconds=limits.wait_seconds
        )
        # Holds the queue, the figures, `_num_reserved` and `_is_draining`.
        self._changed = threading.Condition()
        self._is_draining = True
        self._num_reserved = 0
        self._figures = Figures()
        self._count_requests: Callable[[], int] = lambda: 0
        # The requests of the batches that are computed, and how many jobs each has.
        self._running: collections.Counter[batches.Request] = collections.Counter()
        # How many requests the last batch answered; 0 once another is taken.
        self._num_answered = 0
        self._seconds_per_sentence = 0.0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._threads: list[threading.Thread] = []
        self._glossary_thread = futures.ThreadPoolExecutor(1)

    def warm(self) -> None:
        """Compile everything that a request can need; returns when it is done."""
        begin = time.monotonic()
        programs = self.translator.programs()
        # Otherwise the first line would wait until the tags are read, and the first
        # with an unknown character until all readings are found.
        source = self.translator.vocabulary.source
        source.num_tags([])
        # Parameters are placed once, before several threads need them.
        assert self.translator.replicated_params
        with futures.ThreadPoolExecutor(COMPILING_THREADS) as pool:
            tasks = [source.prepare_readings, *programs]
            for future in [pool.submit(task) for task in tasks]:
                future.result()
        logger.info(
            f"{self.name}: {len(programs)} programs are ready after "
            f"{time.monotonic() - begin:.1f} s"
        )

    def start(self, *, count_requests: Callable[[], int] = lambda: 0) -> None:
        """Begin to accept sentences; call it where the event loop runs.

        Args:
            count_requests: Returns how many requests the server has not answered.
        """
        self._count_requests = count_requests
        self._loop = asyncio.get_running_loop()
        self._is_draining = False
        self._threads = [
            threading.Thread(target=self._work, name=f"engine {self.name}", daemon=True)
            for _ in range(self.num_threads)
        ]
        for thread in self._threads:
            thread.start()

    async def drain(self) -> None:
        """Refuse further sentences, answer those that were accepted, and end."""
        with self._changed:
            self._is_draining = True
            self._changed.notify_all()
        for thread in self._threads:
            await asyncio.to_thread(thread.join)
        self._glossary_thread.shutdown(wait=False, cancel_futures=True)
        # What the threads have handed over last is delivered before this returns.
        await asyncio.sleep(0)

    @contextlib.contextmanager
    def admit(self, num_sentences: int) -> Iterator[Admission]:
        """Keep room in the queue for a client's call whose sentences come in parts.

        Raises:
            OverloadedError: The queue has no room, or the engine is stopping.
        """
        admission = Admission(num_sentences)
        with self._changed:
            if num_sentences:
                self._check_open(num_sentences)
            self._num_reserved += num_sentences
        try:
            yield admission
        finally:
            self._release(admission, admission.num_left)

    async def translate(
        self,
        lines: Sequence[str],
        *,
        search: Search,
        prefixes: Sequence[str] | None = None,
        glossary: Mapping[str, str] | None = None,
        deadline: float | None = None,
        admission: Admission | None = None,
        turn: int = 0,
    ) -> list[list[Hypothesis]]:
        """Return the translations of each line, as `Translator.hypotheses` does.

        Args:
            lines: A sentence each.
            search: How to search; its beam size is one of `Limits.beam_sizes`.
            prefixes: What each line's translations begin with; "" for anything.
            glossary: The translations of terms. A hypothesis names those that it lacks.
            deadline: When the request is too late.
            admission: The room that the client's call has.
            turn: How many lines of the client's call stand before these.

        Raises:
            OverloadedError: The queue is full, or the engine ends.
            TooLateError: The deadline passed before all lines were translated.
            ValueError: As for `Translator.hypotheses`.
        """
        self._check_open(len(lines), admission=admission)
        phrases = None
        if glossary is not None:
            phrases = await self._find_phrases(lines, glossary, deadline=deadline)
        pieces = self.translator.pieces(
            lines, search=search, prefixes=prefixes, phrases=phrases
        )
        request = self._request(deadline, turn=turn)
        jobs = [
            batches.Sentence(
                request=request,
                index=index,
                piece=piece,
                beam_size=search.beam_size,
                length_penalty=search.length_penalty,
                n_best=search.n_best,
            )
            for index, piece in enumerate(pieces)
        ]
        outputs = await self._answer(request, jobs, admission=admission)
        translator = self.translator.line_translator(search.beam_size, search.n_best)
        hypotheses = translator.join(outputs, pieces=pieces, lines=lines)
        return hypotheses if phrases is None else mark_missing(hypotheses, phrases)

    async def _find_phrases(
        self,
        lines: Sequence[str],
        glossary: Mapping[str, str],
        *,
        deadline: float | None,
    ) -> list[tuple[Phrase, ...]]:
        """Look for terms in a thread: many in long lines take seconds."""
        find = functools.partial(self.translator.find_phrases, lines, glossary=glossary)
        seconds = None if deadline is None else deadline - time.monotonic()
        try:
            async with asyncio.timeout(seconds):
                loop = asyncio.get_running_loop()
                return await loop.run_in_executor(self._glossary_thread, find)
        except TimeoutError:
            raise TooLateError from None

    async def score(
        self,
        sources: Sequence[str],
        targets: Sequence[str],
        *,
        deadline: float | None = None,
    ) -> list[PairScore]:
        """Return the probabilities of translations, as `Translator.score` does.

        Raises:
            OverloadedError, TooLateError: As for `translate`.
            ValueError: As for `Translator.score`.
        """
        return await self._call(
            self.translator.score,
            sources,
            targets,
            size=PAIRS_PER_CALL,
            deadline=deadline,
        )

    async def attend(
        self,
        sources: Sequence[str],
        targets: Sequence[str] | None = None,
        *,
        deadline: float | None = None,
        admission: Admission | None = None,
        turn: int = 0,
    ) -> list[AttendedPair]:
        """Return pairs with their attention, as `Translator.attend` does.

        Raises:
            OverloadedError, TooLateError: As for `translate`.
            ValueError: As for `Translator.attend`.
        """
        return await self._call(
            self.translator.attend,
            sources,
            targets,
            size=1,
            deadline=deadline,
            admission=admission,
            turn=turn,
        )

    def figures(self) -> Figures:
        """Return the figures as they are at this moment."""
        with self._changed:
            return dataclasses.replace(self._figures, waiting=self._queue.num_sentences)

    async def _call(
        self,
        function: Callable[..., list[Result]],
        sources: Sequence[str],
        targets: Sequence[str] | None,
        *,
        size: int,
        deadline: float | None,
        admission: Admission | None = None,
        turn: int = 0,
    ) -> list[Result]:
        """Return what a function returns for all pairs, a few of them at a time.

        Args:
            function: Takes sources, targets, and as `first_line` the number of their
                first pair in the request.
            sources: The source of each pair.
            targets: The target of each pair, or None.
            size: How many pairs are passed at once.
            deadline: When the request is too late.
            admission: The room that the client's call has.
            turn: How many jobs of the client's call stand before these.
        """
        self._check_open(len(sources), admission=admission)
        if targets is not None and len(targets) != len(sources):
            return function(sources, targets)  # Raises the error.
        request = self._request(deadline, turn=turn)
        jobs = []
        for index, start in enumerate(range(0, len(sources), size)):
            part = slice(start, start + size)
            call = functools.partial(
                function,
                sources[part],
                targets and targets[part],
                first_line=start + 1,
            )
            number = len(sources[part])
            jobs.append(
                batches.Call(
                    request=request, index=index, function=call, num_sentences=number
                )
            )
        results = await self._answer(request, jobs, admission=admission)
        return [result for part_results in results for result in part_results]

    def _request(self, deadline: float | None, *, turn: int) -> _Request:
        future = asyncio.get_running_loop().create_future()
        return _Request(
            arrival=time.monotonic(), deadline=deadline, turn=turn, future=future
        )

    async def _answer(
        self,
        request: _Request,
        jobs: Sequence[batches.Job],
        *,
        admission: Admission | None,
    ) -> list[Any]:
        """Return the results of a request's jobs, in their order."""
        if not jobs:
            return []
        request.results = [None] * len(jobs)
        request.num_missing = len(jobs)
        number = sum(job.num_sentences for job in jobs)
        with self._changed:
            self._check_open(number, admission=admission)
            if admission:
                self._release(admission, number)
            for job in jobs:
                self._queue.add(job)
            self._changed.notify_all()
        remaining = None
        if request.deadline is not None:
            remaining = max(0.0, request.deadline - time.monotonic())
        try:
            async with asyncio.timeout(remaining):
                return await request.future
        except TimeoutError:
            with self._changed:
                self._figures.late += self._forget(jobs)
            raise TooLateError from None
        finally:
            with self._changed:
                self._figures.cancelled += self._forget(jobs)

    def _release(self, admission: Admission, number: int) -> None:
        """Release the room of sentences that have arrived or will not arrive."""
        with self._changed:
            number = min(number, admission.num_left)
            admission.num_left -= number
            self._num_reserved -= number

    def _check_open(self, number: int, *, admission: Admission | None = None) -> None:
        """Refuse sentences for which there is no room, unless it was kept for them.

        An empty queue takes any request.
        """
        with self._changed:
            waiting = self._queue.num_sentences + self._num_reserved
            has_room = not waiting or waiting + number <= self.limits.queue
            has_room |= admission is not None
            if self._is_draining or not has_room:
                self._figures.refused += number
                seconds = waiting * self._seconds_per_sentence
                raise OverloadedError(max(MIN_RETRY_SECONDS, seconds))

    def _forget(self, jobs: Sequence[batches.Job]) -> int:
        """Remove the jobs that still wait, and return their number of sentences."""
        with self._changed:
            num_waiting = self._queue.num_sentences
            for job in jobs:
                self._queue.discard(job)
            return num_waiting - self._queue.num_sentences

    def _work(self) -> None:
        """Compute batch after batch, until the engine ends; each thread's function."""
        while (batch := self._next_batch()) is not None:
            begin = time.monotonic()
            results, error = self._compute(batch)
            seconds = time.monotonic() - begin
            number = sum(job.num_sentences for job in batch.jobs)
            with self._changed:
                mean = seconds / (number * self.num_threads)
                change = mean - self._seconds_per_sentence
                is_first = not self._seconds_per_sentence
                self._seconds_per_sentence += change * (1 if is_first else RATE_SHARE)
                self._running.subtract(job.request for job in batch.jobs)
                self._running = +self._running  # without those that have none
                self._num_answered = len({job.request for job in batch.jobs})
                self._figures.running -= number
                self._figures.busy_seconds += seconds
                self._figures.failures += error is not None
            assert self._loop is not None
            try:
                self._loop.call_soon_threadsafe(self._deliver, batch, results, error)
            except RuntimeError:
                return  # The loop is closed: nobody waits.

    def _next_batch(self) -> batches.Batch | None:
        """Wait for and return the next batch, or None when the engine ends."""
        with self._changed:
            while True:
                now = time.monotonic()
                for job in self._queue.late(now):
                    # The request's own timer raises the error.
                    self._queue.discard(job)
                    self._figures.late += job.num_sentences
                ready = self._queue.ready_time(num_requests=self._num_expected())
                if ready is None:
                    if self._is_draining:
                        return None
                    self._changed.wait()
                elif ready <= now or self._is_draining:
                    batch = self._queue.take()
                    self._running.update(job.request for job in batch.jobs)
                    self._num_answered = 0
                    self._figures.add_batch(batch, now)
                    return batch
                else:
                    self._changed.wait(ready - now)

    def _num_expected(self) -> int:
        """Return how many requests wait or are expected soon.

        The server still reads the expected ones, or they come from clients that have
        just got their answers.
        """
        return max(self._count_requests() - len(self._running), self._num_answered)

    def _compute(self, batch: batches.Batch) -> tuple[list[Any], Exception | None]:
        """Return what was computed for each job of a batch, or the error."""
        first = batch.jobs[0]
        try:
            if isinstance(first, batches.Call):
                return [first.function()], None
            assert batch.lengths is not None
            sentences = [job for job in batch.jobs if isinstance(job, batches.Sentence)]
            hypotheses = self.translator.search(
                [
                    SearchRow(job.piece, job.length_penalty, job.n_best)
                    for job in sentences
                ],
                beam_size=first.beam_size,
                lengths=batch.lengths,
                num_rows=batch.num_rows,
            )
            return list(zip(*hypotheses, strict=True))[: len(sentences)], None
        except Exception as error:
            if isinstance(first, batches.Sentence):
                # The texts of requests are in no log.
                logger.exception(f"{self.name}: a batch of {len(batch.jobs)} failed")
            return [], error

    def _deliver(
        self, batch: batches.Batch, results: Sequence[Any], error: Exception | None
    ) -> None:
        """Hand the results of a batch to its requests, in the loop's thread."""
        for row, job in enumerate(batch.jobs):
            request = job.request
            assert isinstance(request, _Request)
            if request.future.done():
                continue  # It was cancelled, is too late, or failed.
            if error is not None:
                request.future.set_exception(error)
                continue
            try:
                request.results[job.index] = self._read(job, results[row])
            except Exception as unreadable:  # The other requests get their results.
                request.future.set_exception(unreadable)
                continue
            request.num_missing -= 1
            if not request.num_missing:
                request.future.set_result(request.results)

    def _read(self, job: batches.Job, result: Any) -> Any:
        if isinstance(job, batches.Call):
            return result
        tokens, scores = result
        translator = self.translator.line_translator(job.beam_size, job.n_best)
        return translator.read(job.piece, tokens=tokens, scores=scores)


def _default_threads() -> int:
    """Return how many batches the devices compute best at a time."""
    return min(side_by_side.small_programs_at_a_time(), MAX_CPU_THREADS)
