"""Count, refuse and cancel requests before they reach the application.

The guard is an ASGI application around another one. It reads the whole body of a
request, within a limit, before the application sees it. While the application answers,
the guard cancels it if the client leaves.
"""

import asyncio
import contextlib
import dataclasses
import json
import logging
import time
import traceback
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from typing import Any

from vaswani_jax.service import refusals
from vaswani_jax.service.keys import Keys
from vaswani_jax.service.limits import TooLateError
from vaswani_jax.service.metrics import Metrics
from vaswani_jax.service.refusals import Refusal

logger = logging.getLogger(__name__)
Message = MutableMapping[str, Any]
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]
LOOPBACK_HOSTS = ("localhost", "127.0.0.1", "[::1]")
# The models refuse late requests themselves; this long after, the guard cuts them off.
LATE_SECONDS = 2.0
# A connection is cheap, but each may send a body.
MAX_CONNECTIONS = 1000
# This many bytes over the limit of a body are read and dropped: most clients send all
# of it before they read the answer, and closing with unread bytes is a reset.
MAX_DROPPED_BYTES = 64 << 20
# The status in logs and metrics of a request whose client went away.
CLIENT_LEFT = 499
# Sent with each answer, unless it has its own.
HEADERS = {
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "cache-control": "no-store",
}


@dataclasses.dataclass(eq=False)
class State:
    """The state of a server: "starting", "ready", or "draining" before it ends.

    Attributes:
        status: One of these words.
        in_progress: The number of requests to models that are not answered yet.
        count_connections: Counts the connections of clients.
    """

    status: str = "starting"
    in_progress: int = 0
    count_connections: Callable[[], int] = dataclasses.field(default=lambda: 0)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Rules:
    """The rules for requests.

    Attributes:
        hosts: The host names that the server answers to; none for any.
        root_path: The path at which a proxy shows the server, "" for its root.
        keys: The keys of those who may use the models.
        routes: The paths that logs and metrics name; other paths may have texts.
        body_bytes: The most bytes of a body.
        seconds: The most seconds until a body has arrived, and until its answer.
    """

    hosts: Sequence[str] = ()
    root_path: str = ""
    keys: Keys
    routes: frozenset[str] = frozenset()
    body_bytes: int
    seconds: float


class Guard:
    """An ASGI application that passes on the requests that keep the rules."""

    def __init__(
        self, app: Application, *, rules: Rules, state: State, metrics: Metrics
    ) -> None:
        """Keep the application and the rules."""
        self._app = app
        self._rules = rules
        self._state = state
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request; pass on other events."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        scope["root_path"] = self._rules.root_path
        begin = time.monotonic()
        scope.setdefault("state", {})["arrival"] = begin
        answer = _Answer(send)
        self._metrics.begin()
        is_cancelled = False
        try:
            await self._handle(scope, receive, answer)
        except Refusal as refusal:
            await answer.refuse(refusal, is_libretranslate=not _is_v1(path_of(scope)))
        except _ClientLeft:
            is_cancelled = True
        except Exception as error:
            # The message of an error may have the text of a request: it is not logged.
            frames = "".join(traceback.format_tb(error.__traceback__))
            logger.error(f"{type(error).__name__} in\n{frames}")
            failure = Refusal(500, "the server failed")
            await answer.refuse(failure, is_libretranslate=not _is_v1(path_of(scope)))
        finally:
            status = CLIENT_LEFT if is_cancelled else answer.status or 500
            route = self._route_of(scope)
            seconds = time.monotonic() - begin
            self._metrics.end(route=route, status=status, seconds=seconds)
            logger.debug(f"{scope['method'][:10]} {route} {status} {seconds:.3f} s")

    def _route_of(self, scope: Scope) -> str:
        """Return the path of a request's route, or "other"."""
        path = path_of(scope)
        if path in self._rules.routes:
            return path
        return getattr(scope.get("route"), "path", "other")

    async def _handle(self, scope: Scope, receive: Receive, answer: "_Answer") -> None:
        if self._state.count_connections() > MAX_CONNECTIONS:
            refusal = refusals.busy(1.0, "there are too many connections: try again")
            refusal.headers["Connection"] = "close"
            raise refusal
        headers = {name: value for name, value in scope["headers"]}
        path = path_of(scope)
        self._check_host(headers)
        if needs_header(path) and not self._rules.keys.accept(bearer(headers)):
            raise Refusal(
                401,
                "this server needs a key: send the header Authorization: Bearer KEY",
                headers={"WWW-Authenticate": "Bearer"},
            )
        if not needs_models(path):
            await self._app(scope, receive, answer.send)
            return
        if self._state.status != "ready":
            raise refusals.busy(1.0, f"the server is {self._state.status}: try again")
        self._state.in_progress += 1
        try:
            body = await self._read_body(headers, receive)
            await self._run(scope, body, receive, answer)
        finally:
            self._state.in_progress -= 1

    def _check_host(self, headers: dict[bytes, bytes]) -> None:
        """Refuse a name that is not the server's own.

        A page of another site may have its name lead to this machine (DNS rebinding);
        the browser then sends the name of that site.
        """
        if not self._rules.hosts:
            return
        host = headers.get(b"host", b"").decode("latin-1").lower()
        name = host if host.endswith("]") else host.rpartition(":")[0] or host
        if name not in self._rules.hosts:
            raise Refusal(
                421, "this server has another name: --hosts lists those it answers to"
            )

    async def _read_body(self, headers: dict[bytes, bytes], receive: Receive) -> bytes:
        """Return the body of a request; refuse one that is too large or too slow."""
        max_bytes, seconds = self._rules.body_bytes, self._rules.seconds
        most_bytes = max_bytes + MAX_DROPPED_BYTES
        length = _declared_bytes(headers)
        # A client that waits for "100 Continue" sends no body after a refusal.
        is_waiting = headers.get(b"expect", b"").lower() == b"100-continue"
        is_reading = length <= (max_bytes if is_waiting else most_bytes)
        parts: list[bytes] = []
        size = 0
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while is_reading:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise _ClientLeft
                    parts.append(message.get("body", b""))
                    size += len(parts[-1])
                    if size > max_bytes:
                        parts.clear()
                    has_more = message.get("more_body", False)
                    is_reading = has_more and size <= most_bytes
        if max(length, size) > max_bytes:
            raise Refusal(
                413,
                f"the body has more than {max_bytes:,} bytes",
                headers={"Connection": "close"},
            )
        if is_reading:
            raise Refusal(
                408,
                f"the body did not arrive within {seconds:g} seconds",
                headers={"Connection": "close"},
            )
        return b"".join(parts)

    async def _run(
        self, scope: Scope, body: bytes, receive: Receive, answer: "_Answer"
    ) -> None:
        """Run the application; cancel it if the client leaves before its end."""
        is_read = False

        async def replay() -> Message:
            nonlocal is_read
            if not is_read:
                is_read = True
                return {"type": "http.request", "body": body, "more_body": False}
            await (
                asyncio.Event().wait()
            )  # The task is cancelled when the client leaves.
            raise AssertionError

        running = asyncio.ensure_future(self._app(scope, replay, answer.send))
        leaving = asyncio.ensure_future(_wait_until_left(receive))
        try:
            await asyncio.wait(
                {running, leaving},
                timeout=self._rules.seconds + LATE_SECONDS,
                return_when="FIRST_COMPLETED",
            )
            if running.done() or answer.is_complete:
                await running
                return
            running.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await running
            if not leaving.done():
                raise refusals.of_engine(TooLateError())
            raise _ClientLeft
        finally:
            running.cancel()
            leaving.cancel()


class _ClientLeft(Exception):  # noqa: N818 (nobody sees it)
    """Nobody waits for the answer."""


class _Answer:
    """An answer to the client, with our headers.

    Attributes:
        status: The status of the answer once it has begun, before that 0.
        is_complete: Whether all of it was sent.
    """

    def __init__(self, send: Send) -> None:
        self.status = 0
        self.is_complete = False
        self._send = send

    async def send(self, message: Message) -> None:
        """Pass on what the application sends."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = list(message.get("headers", []))
            names = {name.lower() for name, _ in headers}
            headers += [
                (name.encode(), value.encode())
                for name, value in HEADERS.items()
                if name.encode() not in names
            ]
            message = {**message, "headers": headers}
        elif not message.get("more_body", False):
            self.is_complete = True
        await self._send(message)

    async def refuse(self, refusal: Refusal, *, is_libretranslate: bool) -> None:
        """Send a refusal, unless an answer has begun."""
        if self.status:
            return
        status, content = refusal.status, refusals.content(refusal)
        if is_libretranslate:
            status, content = refusals.as_libretranslate(refusal)
        body = json.dumps(content, ensure_ascii=False).encode(errors="replace")
        headers = {
            "content-type": "application/json",
            "content-length": str(len(body)),
            **refusal.headers,
        }
        encoded = [
            (name.lower().encode(), value.encode()) for name, value in headers.items()
        ]
        await self.send(
            {
                "type": "http.response.start",
                "status": status,
                "headers": encoded,
            }
        )
        await self.send({"type": "http.response.body", "body": body})


def _declared_bytes(headers: dict[bytes, bytes]) -> int:
    """Return the size of a body by its header, 0 without one."""
    digits = headers.get(b"content-length", b"0")
    return int(digits[:20]) if digits.isdigit() else 0


async def _wait_until_left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def path_of(scope: Scope) -> str:
    """Return the path of a request below the root path."""
    path, root = str(scope["path"]), str(scope.get("root_path", ""))
    if root and (path == root or path.startswith(f"{root}/")):
        return path[len(root) :]
    return path


def needs_models(path: str) -> bool:
    """Return whether models answer a path, so that it may have to wait."""
    return _is_v1(path) or path in ("/translate", "/detect")


def needs_header(path: str) -> bool:
    """Return whether a path needs a key in a header, on a server that has keys.

    LibreTranslate's clients send theirs in the body.
    """
    return _is_v1(path) or path == "/metrics"


def _is_v1(path: str) -> bool:
    return path == "/v1" or path.startswith("/v1/")


def bearer(headers: dict[bytes, bytes]) -> str | None:
    """Return the key in the header Authorization, or None."""
    scheme, _, key = headers.get(b"authorization", b"").decode("latin-1").partition(" ")
    return key.strip() if scheme.lower() == "bearer" else None
