"""A server opens its socket, and ends when it is told to."""

import asyncio
import os
import signal
import socket
from unittest import mock

import pytest
import uvicorn

from tests.service import shouting
from tests.service.shouting import ShoutingEngine
from vaswani_jax.service import server


def test_port_0_is_any_that_is_free():
    with server.listening("127.0.0.1", 0) as listener:
        port = listener.getsockname()[1]
        assert server.url_of(listener) == f"http://127.0.0.1:{port}/"
        with pytest.raises(ValueError, match=f"--port={port}: Address already in use"):
            server.listening("127.0.0.1", port).__enter__()


def test_an_unknown_host_is_refused():
    with pytest.raises(ValueError, match=r"--host=a\.invalid"):
        server.listening("a.invalid", 0).__enter__()


@pytest.mark.skipif(not socket.has_ipv6, reason="no IPv6")
def test_an_address_of_ipv6_has_brackets():
    with server.listening("::1", 0) as listener:
        assert server.url_of(listener).startswith("http://[::1]:")


def test_a_second_signal_does_not_wait(monkeypatch):
    statuses = []
    monkeypatch.setattr(os, "_exit", statuses.append)
    service = shouting.service_of(ShoutingEngine())
    running = server.Server(service, drain_seconds=30.0)
    # There is nothing to drain before it listens.
    running.handle_exit(signal.SIGINT, None)
    assert running.should_exit and not running.force_exit and not statuses
    running.handle_exit(signal.SIGTERM, None)
    assert statuses == [128 + signal.SIGTERM]


@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="no SIGHUP")
@pytest.mark.parametrize("num_signals", [0, 2])
def test_a_hangup_while_models_are_loaded_is_not_lost(num_signals, monkeypatch):
    service = shouting.service_of(ShoutingEngine())
    reload = mock.AsyncMock(spec=service.reload)
    monkeypatch.setattr(service, "reload", reload)
    monkeypatch.setattr(uvicorn.Server, "startup", mock.AsyncMock())

    async def start(running):
        await running.startup()
        await asyncio.sleep(0)

    handler = signal.getsignal(signal.SIGHUP)
    try:
        hangups = server.note_hangups()
        for _ in range(num_signals):
            signal.raise_signal(signal.SIGHUP)
        running = server.Server(service, drain_seconds=30.0, hangups=hangups)
        asyncio.run(start(running))
    finally:
        signal.signal(signal.SIGHUP, handler)
    assert reload.await_count == (num_signals > 0)


def test_idle_connections_stay_longer_than_proxies_keep_theirs():
    running = server.Server(shouting.service_of(ShoutingEngine()), drain_seconds=30.0)
    assert running.config.timeout_keep_alive > 60


def test_connections_are_counted_for_the_guard():
    service = shouting.service_of(ShoutingEngine())
    running = server.Server(service, drain_seconds=30.0)
    assert service.state.count_connections() == 0
    running.server_state.connections.add(object())
    assert service.state.count_connections() == 1
