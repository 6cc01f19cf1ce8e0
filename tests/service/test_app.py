"""The application answers while its models are ready, and describes itself."""

import asyncio
import dataclasses
import json

import pytest

from tests.service import shouting
from tests.service.shouting import ShoutingEngine
from tests.service.sockets import wait_until
from vaswani_jax.service import guard
from vaswani_jax.service.keys import Keys
from vaswani_jax.service.models import Models, ServedModel


def test_it_is_ready_once_its_models_are():
    engine = ShoutingEngine()
    service = shouting.service_of(engine)
    assert service.state.status == "starting"
    with shouting.TestClient(service, "http://localhost") as client:
        assert client.get("/health").json() == {
            "status": "ready",
            "models": ["shouting"],
        }
        assert engine.is_running
    assert not engine.is_running


def test_models_are_loaded_again_only_once_the_server_is_ready(monkeypatch):
    service = shouting.service_of(ShoutingEngine())
    refreshed = []

    async def refresh(*, has_urls):
        refreshed.append((service.state.status, has_urls))

    monkeypatch.setattr(service.models, "refresh", refresh)
    for status in ("starting", "ready", "draining"):
        service.state.status = status
        asyncio.run(service.refresh(has_urls=True))
    assert refreshed == [("ready", True)]


def test_models_at_urls_are_left_by_the_clock_and_loaded_by_a_signal(monkeypatch):
    service = shouting.service_of(ShoutingEngine(), reload_seconds=0.001)
    refreshed = []

    async def refresh(*, has_urls):
        refreshed.append(has_urls)

    monkeypatch.setattr(service.models, "refresh", refresh)
    with shouting.TestClient(service, "http://localhost"):
        wait_until(lambda: refreshed)
    assert not any(refreshed)
    asyncio.run(service.reload())
    assert refreshed[-1]


def test_a_signal_that_comes_early_reloads_once_the_server_is_ready(monkeypatch):
    service = shouting.service_of(ShoutingEngine())
    refreshed = []

    async def refresh(*, has_urls):
        refreshed.append((service.state.status, has_urls))

    monkeypatch.setattr(service.models, "refresh", refresh)
    for _ in range(2):
        asyncio.run(service.reload())
    assert not refreshed
    with shouting.TestClient(service, "http://localhost"):
        wait_until(lambda: refreshed)
    assert refreshed == [("ready", True)]


@pytest.mark.parametrize("status", ["starting", "draining"])
def test_a_server_that_is_not_ready_says_so_and_when_to_come_back(status):
    service = shouting.service_of(ShoutingEngine())
    with shouting.TestClient(service, "http://localhost") as client:
        wait_until(lambda: service.state.status == "ready")
        service.state.status = status
        health = client.get("/health")
        assert (health.status_code, health.json()["status"]) == (503, status)
        answer = client.post("/v1/translate", json={"text": "a"})
        assert answer.status_code == 503
        assert answer.headers["retry-after"] == "1"
        assert client.get("/metrics").status_code == 200


def test_a_model_that_cannot_be_prepared_is_told():
    engine = ShoutingEngine()

    def fail():
        raise ValueError("no memory")

    engine.warm = fail
    errors = []
    service = shouting.Service(shouting.models_of(engine), on_failure=errors.append)
    with shouting.TestClient(service, "http://localhost") as client:
        assert client.get("/health").status_code == 503
    assert [str(error) for error in errors] == ["no memory"]


def test_draining_waits_for_what_is_in_progress():
    service = shouting.service_of(ShoutingEngine())
    service.state.in_progress = 1

    async def run():
        draining = asyncio.create_task(service.drain(seconds=10.0))
        await asyncio.sleep(0.05)
        assert not draining.done()
        service.state.in_progress = 0
        await draining

    asyncio.run(run())
    assert service.state.status == "draining"


def test_every_operation_is_described(client):
    api = client.get("/openapi.json").json()
    assert set(api["paths"]) == {
        *("/v1/translate", "/v1/score", "/v1/attention", "/v1/page"),
        *("/v1/models", "/v1/languages", "/health", "/metrics"),
        *("/translate", "/detect", "/languages", "/frontend/settings"),
    }
    for methods in api["paths"].values():
        for operation in methods.values():
            assert operation["summary"] and operation["description"]
    examples = api["components"]["schemas"]["TranslateRequest"]["examples"]
    for example in examples:
        assert client.post("/v1/translate", json=example).status_code == 200


def test_the_description_says_which_operations_need_a_key():
    key = "a-key-of-this-server"
    with shouting.client_of(keys=Keys([key])) as client:
        api = client.get("/openapi.json").json()
    [(name, scheme)] = api["components"]["securitySchemes"].items()
    assert (scheme["type"], scheme["scheme"]) == ("http", "bearer")
    closed = {
        path
        for path, methods in api["paths"].items()
        for operation in methods.values()
        if operation.get("security") == [{name: []}]
    }
    assert closed == {path for path in api["paths"] if guard.needs_header(path)}
    with shouting.client_of() as client:
        api = client.get("/openapi.json").json()
    assert "securitySchemes" not in api["components"]


def test_a_server_of_too_many_connections_says_when_to_come_back():
    service = shouting.service_of(ShoutingEngine())
    with shouting.TestClient(service, "http://localhost") as client:
        wait_until(lambda: service.state.status == "ready")
        service.state.count_connections = lambda: guard.MAX_CONNECTIONS + 1
        answer = client.post("/v1/translate", json={"text": "a"})
        assert answer.status_code == 503
        assert answer.headers["retry-after"] == "1"
        assert answer.headers["connection"] == "close"
        assert "connections" in answer.json()["error"]["message"]
        service.state.count_connections = lambda: guard.MAX_CONNECTIONS
        assert client.post("/v1/translate", json={"text": "a"}).status_code == 200


def test_a_text_and_a_glossary_of_the_longest_spelling_are_read():
    limits = dataclasses.replace(shouting.LIMITS, characters=10_000)
    models = Models([ServedModel(ShoutingEngine(limits=limits))], limits=limits)
    service = shouting.Service(models)
    # Pairs of two characters, each of which has two escapes.
    glossary = {chr(0x20000 + n): "\U0001f600" for n in range(5000)}
    body = json.dumps({"text": "\U0001f600" * 10_000, "glossary": glossary})
    with shouting.TestClient(service, "http://localhost") as client:
        wait_until(lambda: service.state.status == "ready")
        headers = {"Content-Type": "application/json"}
        answer = client.post("/v1/translate", content=body, headers=headers)
    # Its size is not refused, but a character that the vocabulary lacks.
    error = shouting.error_of(answer, 422)
    assert error["field"] == "glossary" and "vocabulary" in error["message"]


def test_behind_a_proxy_both_kinds_of_paths_lead_to_the_routes():
    with shouting.client_of(root_path="/mt") as client:
        for path in ("/v1/models", "/mt/v1/models"):
            assert client.get(path).status_code == 200
        assert client.get("/mtv1/models").status_code == 404
        api = client.get("/mt/openapi.json").json()
    assert api["servers"] == [{"url": "/mt"}]


def test_behind_a_proxy_no_redirect_names_a_scheme():
    with shouting.client_of(root_path="/mt") as client:
        client.follow_redirects = False
        root = client.get("/mt")
        assert (root.status_code, root.headers["location"]) == (308, "/mt/")
        assert client.get("/mt/").status_code == 200
        for answer in (
            client.post("/mt/v1/translate/", json={"text": "a"}),
            client.post("/translate/", json={"q": "a"}),
            client.get("/mt/docs/"),
        ):
            assert answer.status_code == 404
            assert "location" not in answer.headers


@pytest.mark.parametrize(
    ("root_path", "route"),
    [
        ("/translate", "/translate"),
        ("/v1", "/v1/translate"),
        ("/frontend", "/frontend/settings"),
        ("/docs", "/docs"),
        ("/app.css", "/app.css"),
    ],
)
def test_a_root_path_that_hides_a_route_is_refused(root_path, route):
    with pytest.raises(ValueError) as raised:
        shouting.service_of(ShoutingEngine(), root_path=root_path)
    assert f"--root_path={root_path} hides the route {route}:" in str(raised.value)
    shouting.service_of(ShoutingEngine(), root_path=f"{root_path}s")


def test_other_origins_may_read_answers_only_if_they_are_named():
    headers = {"Origin": "https://a.example", "Access-Control-Request-Method": "POST"}
    with shouting.client_of() as client:
        answer = client.options("/v1/translate", headers=headers)
        assert "access-control-allow-origin" not in answer.headers
    with shouting.client_of(cors_origins=["https://a.example"]) as client:
        answer = client.options("/v1/translate", headers=headers)
        assert answer.headers["access-control-allow-origin"] == "https://a.example"
        answer = client.get("/health", headers=headers)
        assert "Retry-After" in answer.headers["access-control-expose-headers"]
        headers["Origin"] = "https://b.example"
        answer = client.options("/v1/translate", headers=headers)
        assert "access-control-allow-origin" not in answer.headers


@pytest.mark.parametrize("path", ["/v1/none", "/none", "/app.py", "/%2e%2e/app.css"])
def test_an_unknown_path_is_a_404_in_the_form_of_its_api(client, path):
    answer = client.get(path)
    assert answer.status_code == 404
    reason = "Not Found"
    if path.startswith("/v1"):
        reason = {"message": reason, "field": None}
    assert answer.json() == {"error": reason}
