"""Requests that a server has accepted are answered while its models are replaced."""

import asyncio
import dataclasses
import json
from typing import Any

import httpx2
import pytest

from tests.service import shouting
from tests.service.shouting import ShoutingEngine
from vaswani_jax.service import model_files
from vaswani_jax.service.app import Service
from vaswani_jax.service.limits import OverloadedError
from vaswani_jax.service.model_files import Origin
from vaswani_jax.service.models import Loader, Models, ServedModel

TEXT = "A dog barks. It runs.\n\nab cd"
NAMES = ("en-de", "de-en")


class DrainingEngine(ShoutingEngine):
    """Refuses all once it drains, and takes some turns of the loop for each call."""

    async def _wait(self, lines: Any) -> None:
        if not self.is_running:
            raise OverloadedError(1.0)
        for _ in range(5):
            await asyncio.sleep(0.001)
        await super()._wait(lines)


class ChangingLoader(Loader):
    """Loads a model of two languages, as its name says."""

    def __init__(self) -> None:
        self.num_loads = 0

    def load(self, origin: Origin) -> ServedModel:
        self.num_loads += 1
        source, _, target = origin.name.partition("-")
        locales = {"data.source_locale": source, "data.target_locale": target}
        limits = dataclasses.replace(shouting.LIMITS, queue=100)
        engine = DrainingEngine(name=origin.name, limits=limits, **locales)
        return ServedModel(engine, version=self.num_loads)


REQUESTS = {
    "/v1/translate": {"text": TEXT, "alignment": True},
    "/v1/translate?stream": {"text": TEXT, "alignment": True, "stream": True},
    "/v1/attention": {"text": "ab cd"},
    "/detect": {"q": TEXT},
    "/translate": {"q": TEXT, "source": "auto", "target": "de"},
}


@pytest.mark.parametrize("route", REQUESTS)
def test_none_fails(route: str, monkeypatch: pytest.MonkeyPatch) -> None:
    loader = ChangingLoader()
    # The files of all models change all the time.
    monkeypatch.setattr(model_files, "version", lambda path: object())
    origins = [Origin(name, name) for name in NAMES]
    served = Models(
        [loader.load(origin) for origin in origins],
        limits=shouting.LIMITS,
        origins=origins,
        loader=loader,
    )
    service = Service(served)

    async def ask(client: httpx2.AsyncClient) -> httpx2.Response:
        return await client.post(route, json=REQUESTS[route], timeout=20)

    async def run() -> list[httpx2.Response]:
        transport = httpx2.ASGITransport(service)
        async with httpx2.AsyncClient(
            transport=transport, base_url="http://localhost"
        ) as client:
            await served.start()
            service.state.status = "ready"
            first = served.all
            tasks = []
            for _ in range(10):
                tasks += [asyncio.create_task(ask(client)) for _ in range(2)]
                await asyncio.sleep(0.003)
                await service.refresh(has_urls=False)
            answers = await asyncio.gather(*tasks)
            await asyncio.sleep(0.01)
            assert not any(each.engine.is_running for each in first)
            await served.drain()
            return answers

    for answer in asyncio.run(run()):
        assert answer.status_code == 200, answer.text
        assert "event: error" not in answer.text
        if "stream" not in route:
            assert "error" not in json.loads(answer.text)
    assert loader.num_loads > 10
