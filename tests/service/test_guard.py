"""The guard checks names, keys and sizes, and cancels when clients leave."""

import asyncio
import socket
import tracemalloc
import urllib.error
import urllib.request

import pytest

from tests.service import shouting
from tests.service.shouting import ShoutingEngine
from tests.service.sockets import served, wait_until
from vaswani_jax.service import guard
from vaswani_jax.service.keys import Keys
from vaswani_jax.service.metrics import Metrics

KEY = "a-key-of-this-server"


def test_a_name_that_leads_here_by_rebinding_is_refused():
    with shouting.client_of(hosts=guard.LOOPBACK_HOSTS) as client:
        for host in ("localhost:8000", "127.0.0.1", "[::1]:80", "[::1]", "LOCALHOST"):
            assert client.get("/health", headers={"host": host}).status_code == 200
        for host in ("a.example:8000", "localhost.a.example", "", "127.0.0.1.example"):
            answer = client.get("/health", headers={"host": host})
            assert answer.status_code == 421
            assert "--hosts" in answer.json()["error"]


def test_what_needs_a_key():
    with shouting.client_of(keys=Keys([KEY])) as client:
        body = {"text": "a"}
        for key in (None, "Bearer wrong", f"Basic {KEY}", "Bearer", f"Bearer {KEY}x"):
            headers = {} if key is None else {"Authorization": key}
            answer = client.post("/v1/translate", json=body, headers=headers)
            assert answer.status_code == 401
            assert answer.headers["www-authenticate"] == "Bearer"
            assert client.get("/metrics", headers=headers).status_code == 401
        client.headers["Authorization"] = f"Bearer {KEY}"
        assert client.post("/v1/translate", json=body).status_code == 200
        assert client.get("/v1/models").status_code == 200
        assert client.get("/metrics").status_code == 200
        del client.headers["Authorization"]
        for path in ("/health", "/languages", "/frontend/settings", "/openapi.json"):
            assert client.get(path).status_code == 200


def test_a_body_that_is_too_large_is_refused(client):
    most = guard_bytes(client)

    def parts():
        for _ in range(1000):
            yield b" " * 10_000

    for content in (b" " * (most + 1), parts()):
        answer = client.post("/v1/translate", content=content)
        assert answer.status_code == 413
        assert (
            answer.json()["error"]["message"]
            == f"the body has more than {most:,} bytes"
        )
        answer = client.post("/translate", content=b" " * (most + 1))
        assert answer.status_code == 400
        assert answer.json() == {"error": f"the body has more than {most:,} bytes"}


def guard_bytes(client):
    from vaswani_jax.service import app

    return app.BYTES_OF_CHARACTER * shouting.LIMITS.characters + app.OTHER_BYTES


@pytest.mark.parametrize("is_chunked", [False, True])
def test_a_client_that_sends_all_before_it_reads_gets_the_refusal(is_chunked):
    body = [bytes(1_000_000)] * 20 if is_chunked else bytes(20_000_000)
    with served(shouting.service_of(ShoutingEngine())) as port:
        url = f"http://127.0.0.1:{port}/v1/translate"
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(url, body, headers)
        with pytest.raises(urllib.error.HTTPError) as raised:
            urllib.request.urlopen(request, timeout=20)
        assert raised.value.code == 413
        assert b"the body has more than" in raised.value.read()


def test_a_client_that_asks_before_it_sends_is_refused_at_once():
    with (
        served(shouting.service_of(ShoutingEngine())) as port,
        socket.create_connection(("127.0.0.1", port), timeout=20) as client,
    ):
        client.sendall(
            b"POST /v1/translate HTTP/1.1\r\nHost: localhost\r\n"
            b"Expect: 100-continue\r\nContent-Length: 20000000\r\n\r\n"
        )
        assert client.recv(65536).startswith(b"HTTP/1.1 413 ")


def test_a_body_without_end_is_read_up_to_a_limit_and_not_kept():
    part_bytes = 1 << 20
    num_parts = 0

    async def application(scope, receive, send):
        raise AssertionError

    async def receive():
        nonlocal num_parts
        num_parts += 1
        assert num_parts < 1000
        return {"type": "http.request", "body": bytes(part_bytes), "more_body": True}

    tracemalloc.start()
    try:
        sent = asyncio.run(run_guard(application, receive, seconds=20.0))
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert sent[0]["status"] == 413
    assert 0 < num_parts * part_bytes - guard.MAX_DROPPED_BYTES <= 2 * part_bytes
    assert peak_bytes < 8 * part_bytes


async def run_guard(application, receive, *, seconds):
    """Return what a guard sends that allows bodies of 10 bytes."""
    sent = []

    async def send(message):
        sent.append(message)

    state = guard.State()
    state.status = "ready"
    rules = guard.Rules(keys=Keys([]), body_bytes=10, seconds=seconds)
    metrics = Metrics(lambda: {})
    guarded = guard.Guard(application, rules=rules, state=state, metrics=metrics)
    scope = {"type": "http", "method": "POST", "path": "/v1/score", "headers": []}
    await guarded(scope, receive, send)
    assert state.in_progress == 0
    return sent


@pytest.mark.parametrize(
    ("messages", "status"),
    [
        ([], 408),
        ([{"type": "http.request", "body": b"a" * 11, "more_body": True}], 413),
        ([{"type": "http.request", "body": b"a"}], 504),
    ],
    ids=["body", "large body", "answer"],
)
def test_what_takes_too_long_is_given_up(messages, status, monkeypatch):
    monkeypatch.setattr(guard, "LATE_SECONDS", 0.0)
    cancelled = []

    async def application(scope, receive, send):
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.append(True)
            raise

    async def receive():
        if messages:
            return messages.pop()
        await asyncio.Event().wait()

    sent = asyncio.run(run_guard(application, receive, seconds=0.02))
    assert sent[0]["status"] == status
    assert len(cancelled) == (status == 504)


def test_a_failure_is_told_without_the_text(client, caplog):
    engine = ShoutingEngine()
    engine.error = KeyError("a secret")
    with shouting.client_of(engine) as client:
        answer = client.post("/v1/translate", json={"text": "a secret"})
    assert answer.status_code == 500
    assert answer.json()["error"]["message"] == "the server failed"
    assert "secret" not in answer.text + caplog.text
    assert "KeyError" in caplog.text
    assert "shouting.py" in caplog.text


def test_answers_tell_browsers_to_trust_nothing(client):
    for path in ("/health", "/v1/models", "/none", "/docs", "/"):
        headers = client.get(path).headers
        assert headers["x-content-type-options"] == "nosniff"
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert "unsafe" not in headers["content-security-policy"]


@pytest.mark.parametrize("is_stream", [False, True])
def test_a_client_that_leaves_frees_its_place(is_stream):
    engine = ShoutingEngine()
    service = shouting.service_of(engine)
    body = b'{"text": "A dog barks. It runs.", "stream": %b}' % (
        b"true" if is_stream else b"false"
    )
    engine.gate.clear()
    with served(service) as port:
        with socket.create_connection(("127.0.0.1", port)) as client:
            client.sendall(
                b"POST /v1/translate HTTP/1.1\r\nHost: localhost\r\n"
                b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%b"
                % (len(body), body)
            )
            wait_until(lambda: len(engine.lines) == 2)
            assert service.state.in_progress == 1
        wait_until(lambda: engine.cancelled == (2 if is_stream else 1))
        wait_until(lambda: service.state.in_progress == 0)
    assert 'route="/v1/translate",status="499"} 1.0' in service.metrics.text().decode()
