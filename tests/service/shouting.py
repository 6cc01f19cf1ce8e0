"""Models that shout what they are given, behind the routes of a server."""

import asyncio
import contextlib
import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import httpx2
import numpy as np
from starlette.testclient import TestClient

from tests import settings
from vaswani_jax.core import types
from vaswani_jax.data.vocabulary import Vocabulary
from vaswani_jax.inference.phrases import mark_missing
from vaswani_jax.inference.results import (
    AttendedPair,
    Attention,
    Hypothesis,
    Output,
    PairScore,
)
from vaswani_jax.inference.translator import Translator
from vaswani_jax.service.app import Options, Service
from vaswani_jax.service.engine import Admission, Engine
from vaswani_jax.service.figures import Figures
from vaswani_jax.service.limits import Limits
from vaswani_jax.service.models import Models, ServedModel

LIMITS = Limits(
    texts=4, characters=200, beam_sizes=(2, 4), n_best=3, seconds=20.0, queue=8
)
_VOCABULARIES: list[Vocabulary] = []


def vocabulary() -> Vocabulary:
    """A vocabulary with tags of two languages, whose subwords are letters mostly."""
    if not _VOCABULARIES:
        data = settings.small_settings(
            **settings.TWO_TARGETS, **{"data.vocab_size": 40}
        ).data
        lines = ["a b c d e f g h", "A B C D E F G H"] * 20
        _VOCABULARIES.append(settings.learn_vocabulary(lines, data))
    return _VOCABULARIES[0]


class ShoutingEngine(Engine):
    """Translates to capitals; the n-th best ends in n marks of exclamation.

    Attributes:
        lines: All that it was given.
        error: What it raises instead, if it is not None.
        gate: It waits until this is set.
        cancelled: How many calls were cancelled.
    """

    def __init__(
        self, *, name: str = "shouting", limits: Limits = LIMITS, **overrides: Any
    ) -> None:
        small = settings.small_settings(**{"data.source_locale": "en", **overrides})
        translator = Translator(small, vocabulary(), members=[])
        super().__init__(translator, limits=limits, name=name)
        self.lines: list[str] = []
        self.searches: list[Any] = []
        self.error: Exception | None = None
        self.gate = asyncio.Event()
        self.gate.set()
        self.cancelled = 0
        self.is_running = False
        self._is_draining = False  # It admits, whether it was started or not.

    def warm(self) -> None:
        pass

    def start(self, *, count_requests: Callable[[], int]) -> None:
        del count_requests
        self.is_running = True

    async def drain(self) -> None:
        self.is_running = False

    def figures(self) -> Figures:
        return Figures(sentences=len(self.lines), tokens=7)

    async def translate(
        self,
        lines: Sequence[str],
        *,
        search: Any,
        prefixes: Sequence[str] | None = None,
        glossary: Mapping[str, str] | None = None,
        deadline: float | None = None,
        admission: Admission | None = None,
        turn: int = 0,
    ) -> list[list[Hypothesis]]:
        await self._wait(lines)
        self.searches.append(search)
        prefixes = prefixes or [""] * len(lines)
        hypotheses = [
            [
                self._hypothesis(line, prefix, rank)
                for rank in range(1 if " one" in line else search.n_best)
            ]
            for line, prefix in zip(lines, prefixes, strict=True)
        ]
        if glossary is None:
            return hypotheses
        phrases = self.translator.find_phrases(lines, glossary=glossary)
        return mark_missing(hypotheses, phrases)

    def _hypothesis(self, line: str, prefix: str, rank: int) -> Hypothesis:
        source = self.translator.vocabulary.encode([line])[0]
        text = prefix + self._without_tag(line).upper() + rank * "!"
        output = Output(tuple(source), (types.EOS_ID,), -1.0 - rank)
        return Hypothesis(text, -1.0 - rank, (), (output,))

    def _without_tag(self, line: str) -> str:
        return line.partition("> ")[2] if line.startswith("<2") else line

    async def score(
        self,
        sources: Sequence[str],
        targets: Sequence[str],
        *,
        deadline: float | None = None,
    ) -> list[PairScore]:
        await self._wait(sources)
        # Texts of its target language have capitals.
        return [
            PairScore(-9.0 * sum(map(str.islower, text)), ("a", "</s>"), (-1.0, -2.0))
            for text in targets
        ]

    async def attend(
        self,
        sources: Sequence[str],
        targets: Sequence[str] | None = None,
        *,
        deadline: float | None = None,
        admission: Admission | None = None,
        turn: int = 0,
    ) -> list[AttendedPair]:
        await self._wait(sources)
        texts = targets or [self._without_tag(line).upper() for line in sources]
        return [self._pair(*pair) for pair in zip(sources, texts, strict=True)]

    def _pair(self, line: str, text: str) -> AttendedPair:
        """Return a pair whose n-th target token looks at the n-th of the source."""
        known = self.translator.vocabulary
        source, target = known.encode([line])[0], known.encode([text], target=True)[0]
        ids = [*target, types.EOS_ID]
        num_tags = known.source.num_tags(source)
        memory = np.zeros((2, 1, len(ids), len(source) + 1))
        for row in range(len(ids)):
            memory[:, :, row, min(row + num_tags, len(source))] = 1.0
        size = len(source) + 1, len(ids)
        return AttendedPair(
            text=text,
            source=tuple(source),
            ids=tuple(ids),
            log_probs=(-1.0,) * len(ids),
            attention=Attention(
                source=("x",) * size[0],
                target_in=("x",) * size[1],
                target_out=("x",) * size[1],
                encoder=np.zeros((1, 1, size[0], size[0])),
                decoder=np.zeros((2, 1, size[1], size[1])),
                memory=memory,
            ),
        )

    async def _wait(self, lines: Sequence[str]) -> None:
        self.lines += lines
        if self.error is not None:
            raise self.error
        try:
            await self.gate.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise


def models_of(*engines: Engine) -> Models:
    """The models of a server."""
    # Those of the server name no beam sizes by default: each model has its own.
    limits = dataclasses.replace(LIMITS, beam_sizes=())
    return Models([ServedModel(engine) for engine in engines], limits=limits)


def service_of(*engines: Engine, **options: Any) -> Service:
    """A server's application."""
    return Service(models_of(*engines), Options(**options))


@contextlib.contextmanager
def client_of(*engines: Engine, **options: Any) -> Iterator[TestClient]:
    """A client of such models; shouting ones from English to German by default."""
    if not engines:
        engines = (ShoutingEngine(**{"data.target_locale": "de"}),)
    with TestClient(service_of(*engines, **options), "http://localhost") as client:
        yield client


def post(client: TestClient, route: str, **body: Any) -> httpx2.Response:
    """Send a request to a route under /v1."""
    return client.post(f"/v1/{route}", json=body)


def error_of(answer: httpx2.Response, status: int) -> Any:
    """Check the status of an answer, and return its error."""
    assert answer.status_code == status, answer.text
    return answer.json()["error"]
