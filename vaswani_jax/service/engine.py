"""One model in memory that answers the requests of many clients."""

import asyncio
import dataclasses
import functools
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from vaswani_jax.inference.line_translator import Hypothesis
from vaswani_jax.inference.translator import AttendedPair, PairScore, Translator
from vaswani_jax.service.limits import Limits, OverloadedError, Search, TooLateError

Result = TypeVar("Result")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Figures:
    """What an engine has done since its start, and what waits for it.

    Attributes:
        waiting: Sentences that wait for a batch.
        running: Sentences in the batch that is computed.
        batches: Batches that were computed.
        sentences: Sentences in them.
        rows: Rows of them, with those of padding.
        tokens: Tokens of their sources.
        padded_tokens: The same with padding.
        failures: Batches that failed.
        refused: Sentences for which the queue had no room.
        late: Sentences that were dropped since their request's time was over.
        cancelled: Sentences that were dropped since nobody waits for them.
        busy_seconds: Seconds in which a batch was computed.
        waited_seconds: Seconds that all sentences waited for their batch, together.
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


class Engine:
    """A model with a queue of sentences and a thread that computes them in batches.

    Its coroutines belong to the event loop that runs when `start` is called. Deadlines
    are seconds of `time.monotonic()`.

    Attributes:
        translator: The model.
        limits: What it allows.
        name: What requests call it.
    """

    def __init__(self, translator: Translator, *, limits: Limits, name: str) -> None:
        """Keep the parts; nothing is computed and no thread begins.

        Args:
            translator: The model.
            limits: What it allows.
            name: What requests call it.
        """
        self.translator = translator
        self.limits = limits
        self.name = name
        self._is_draining = False
        self._running: set[asyncio.Future[Any]] = set()
        self._sentences = 0

    def warm(self) -> None:
        """Compile everything that a request can need; returns when it is done."""
        self.translator.hypotheses(["a"])

    def start(self) -> None:
        """Begin to accept sentences; call it where the event loop runs."""
        self._is_draining = False

    async def drain(self) -> None:
        """Refuse further sentences, answer those that were accepted, and end."""
        self._is_draining = True
        await asyncio.gather(*self._running, return_exceptions=True)

    async def translate(
        self,
        lines: Sequence[str],
        *,
        search: Search,
        prefixes: Sequence[str] | None = None,
        deadline: float | None = None,
    ) -> list[list[Hypothesis]]:
        """Return the translations of each line, as `Translator.hypotheses` does.

        Args:
            lines: A sentence each.
            search: How to search; its beam size is one of `Limits.beam_sizes`.
            prefixes: What each line's translations begin with; "" for anything.
            deadline: When the request is too late.

        Raises:
            OverloadedError: The queue is full, or the engine ends.
            TooLateError: The deadline passed before all lines were translated.
            ValueError: As for `Translator.hypotheses`.
        """
        call = functools.partial(
            self.translator.hypotheses,
            lines,
            prefixes=prefixes,
            n_best=search.n_best,
            beam_size=search.beam_size,
            length_penalty=search.length_penalty,
        )
        return await self._run(call, number=len(lines), deadline=deadline)

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
        call = functools.partial(self.translator.score, sources, targets)
        return await self._run(call, number=len(sources), deadline=deadline)

    async def attend(
        self,
        sources: Sequence[str],
        targets: Sequence[str] | None = None,
        *,
        deadline: float | None = None,
    ) -> list[AttendedPair]:
        """Return pairs with their attention, as `Translator.attend` does.

        Raises:
            OverloadedError, TooLateError: As for `translate`.
            ValueError: As for `Translator.attend`.
        """
        call = functools.partial(self.translator.attend, sources, targets)
        return await self._run(call, number=len(sources), deadline=deadline)

    def figures(self) -> Figures:
        """Return what has been done and what waits."""
        return Figures(sentences=self._sentences)

    async def _run(
        self, call: Callable[[], Result], *, number: int, deadline: float | None
    ) -> Result:
        if self._is_draining:
            raise OverloadedError(1.0)
        if deadline is not None and time.monotonic() >= deadline:
            raise TooLateError
        future = asyncio.ensure_future(asyncio.to_thread(call))
        self._running.add(future)
        future.add_done_callback(self._running.discard)
        remaining = None if deadline is None else deadline - time.monotonic()
        try:
            result = await asyncio.wait_for(asyncio.shield(future), remaining)
        except TimeoutError:
            raise TooLateError from None
        self._sentences += number
        return result
