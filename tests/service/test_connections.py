"""A connection ends when the head of a request does not."""

import contextlib
import socket
import threading

import pytest

from tests.service import shouting
from tests.service.shouting import ShoutingEngine
from tests.service.sockets import served
from vaswani_jax.service.connections import MAX_HEAD_BYTES, REASON

HALF = b"a" * (MAX_HEAD_BYTES // 2)
REQUEST = b"GET /health HTTP/1.1\r\nHost: a\r\n"
TOO_LARGE = b"X: " + b"a" * MAX_HEAD_BYTES


def answer_to(content: bytes) -> bytes:
    """Return all that a server answers until it closes the connection."""
    with (
        served(shouting.service_of(ShoutingEngine())) as port,
        socket.create_connection(("127.0.0.1", port), timeout=20) as client,
    ):
        # Closing with unread bytes may reset the connection while this sends.
        sender = threading.Thread(target=send, args=(client, content))
        sender.start()
        received = bytearray()
        with contextlib.suppress(ConnectionResetError):
            while part := client.recv(65536):
                received += part
        sender.join()
        return bytes(received)


def send(client: socket.socket, content: bytes) -> None:
    with contextlib.suppress(ConnectionResetError, BrokenPipeError):
        client.sendall(content)


@pytest.mark.parametrize(
    "content",
    [
        REQUEST + TOO_LARGE * 10,  # One read may have more than the limit.
        REQUEST + TOO_LARGE + b"\r\n\r\n",
        b"GET /health?" + HALF * 20,
    ],
    ids=["no end", "whole", "URL"],
)
def test_a_head_that_is_too_large_is_refused(content: bytes) -> None:
    answer = answer_to(content)
    assert answer.startswith(b"HTTP/1.1 431 ") and answer.endswith(REASON.encode())


def test_so_is_a_trailer_without_end() -> None:
    chunked = REQUEST + b"Transfer-Encoding: chunked\r\n\r\n0\r\n"
    answer = answer_to(chunked + b"X: " + HALF * 20)
    assert answer.startswith(b"HTTP/1.1 200 OK\r\n")


def test_requests_before_it_are_answered() -> None:
    answer = answer_to((REQUEST + b"\r\n") * 2 + REQUEST + TOO_LARGE + b"\r\n\r\n")
    assert answer.count(b"HTTP/1.1 200 OK\r\n") == 2


def test_each_request_of_a_connection_has_a_head_of_its_own() -> None:
    request = REQUEST + b"X: " + HALF + b"\r\n\r\n"
    last = REQUEST + b"Connection: close\r\n\r\n"
    answer = answer_to(request * 3 + last)
    assert answer.count(b"HTTP/1.1 200 OK\r\n") == 4
