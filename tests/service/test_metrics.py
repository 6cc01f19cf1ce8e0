"""Requests and batches are counted, whatever model answers."""

import gc
import weakref

from tests.service import shouting
from tests.service.shouting import ShoutingEngine
from vaswani_jax.service.metrics import COUNTERS, GAUGES, Metrics


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


def test_a_model_that_was_loaded_again_goes_on_counting():
    engines = [ShoutingEngine(name="a"), ShoutingEngine(name="b")]
    metrics = Metrics(lambda: engines)
    engines[0].lines += ["1", "2"]
    key = 'vaswani_sentences_total{model="a"}'
    assert lines_of(metrics)[key] == "2.0"
    engines[0].lines.append("3")
    assert lines_of(metrics)[key] == "3.0"
    old = weakref.ref(engines[0])
    engines[0] = ShoutingEngine(name="a")
    gc.collect()
    assert old() is None
    assert lines_of(metrics)[key] == "3.0"
    engines[0].lines.append("4")
    assert lines_of(metrics)[key] == lines_of(metrics)[key] == "4.0"


def test_every_figure_of_an_engine_is_shown():
    lines = lines_of(Metrics(lambda: [ShoutingEngine(name="a")]))
    for field in COUNTERS:
        assert f'vaswani_{field}_total{{model="a"}}' in lines
    for field in GAUGES:
        assert f'vaswani_{field}{{model="a"}}' in lines
