"""Requests and batches are counted, whatever model answers."""

import asyncio
import gc
import weakref

import pytest

from tests.service import shouting
from tests.service.shouting import ShoutingEngine
from vaswani_jax.service.figures import Figures
from vaswani_jax.service.metrics import COUNTERS, GAUGES, Metrics
from vaswani_jax.service.model_files import Origin
from vaswani_jax.service.models import Loader, Models, ServedModel


def lines_of(metrics):
    lines = metrics.text().decode().splitlines()
    return dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))


def test_requests_are_counted_by_route_and_status():
    with shouting.client_of() as client:
        client.post("/v1/translate", json={"text": "a"})
        client.post("/v1/translate", json={"text": 3})
        client.get("/none/of/these")
        client.post("/v1/score", content=b" " * 100_000)
        text = client.get("/metrics").text
    lines = dict(line.rsplit(" ", 1) for line in text.splitlines() if line[0] != "#")
    prefix = 'vaswani_requests_total{route="/v1/translate",status='
    assert lines[prefix + '"200"}'] == lines[prefix + '"422"}'] == "1.0"
    assert lines['vaswani_requests_total{route="other",status="404"}'] == "1.0"
    assert lines['vaswani_requests_total{route="/v1/score",status="413"}'] == "1.0"
    assert lines['vaswani_request_seconds_count{route="/v1/translate"}'] == "2.0"
    assert lines['vaswani_sentences_total{model="shouting"}'] == "1.0"
    assert float(lines["process_resident_memory_bytes"]) > 0


class ShoutingLoader(Loader):
    """Loads a model that shouts."""

    def __init__(self):
        pass

    def load(self, origin):
        return ServedModel(ShoutingEngine(name=origin.name))


@pytest.fixture
def models():
    """Two models, which a signal replaces."""
    loader, origins = ShoutingLoader(), [Origin(name, f"s3://{name}") for name in "ab"]
    return Models(
        list(map(loader.load, origins)),
        limits=shouting.LIMITS,
        origins=origins,
        loader=loader,
    )


def test_a_model_that_is_loaded_again_goes_on_counting(models):
    metrics = Metrics(models.figures)

    def sentences():
        return float(lines_of(metrics)['vaswani_sentences_total{model="a"}'])

    async def run():
        await models.start()
        engine = models.all[0].engine
        engine.lines += ["1", "2"]
        with models.request():
            for number in (3, 4):  # Replaced twice before its figures are read.
                await models.refresh(has_urls=True)
                models.all[0].engine.lines.append(str(number))
            engine.lines.append("5")  # The request began before both.
            assert sentences() == 5
        await models.drain()
        assert sentences() == sentences() == 5
        return weakref.ref(engine)

    # No model is kept in memory for its figures.
    first = asyncio.run(run())
    gc.collect()
    assert first() is None


def test_every_figure_of_a_model_is_shown():
    lines = lines_of(Metrics(lambda: {"a": Figures()}))
    for field in COUNTERS:
        assert f'vaswani_{field}_total{{model="a"}}' in lines
    for field in GAUGES:
        assert f'vaswani_{field}{{model="a"}}' in lines
