"""Run an application on a socket until a signal ends it."""

import asyncio
import contextlib
import logging
import os
import signal
import socket
from collections.abc import Callable, Iterator, Sequence
from types import FrameType

import uvicorn

from vaswani_jax.service.app import Service
from vaswani_jax.service.connections import Connection

logger = logging.getLogger(__name__)
# Longer than the 60 seconds for which proxies usually keep a connection: they would
# send a request over one that is just being closed.
IDLE_SECONDS = 75
# After the last answer, for clients that are slow to read it.
CLOSING_SECONDS = 5


class Server(uvicorn.Server):
    """A server that ends at a signal, after it has answered accepted requests."""

    def __init__(
        self, service: Service, *, drain_seconds: float, hangups: Sequence[int] = ()
    ) -> None:
        """Configure uvicorn for an application; no socket is opened.

        Args:
            service: The application.
            drain_seconds: The longest wait for accepted requests.
            hangups: The list of `note_hangups`: a signal in it reloads the models.
        """
        for name in ("uvicorn", "uvicorn.error"):
            # A client that sends nonsense is not worth a line of the log.
            logging.getLogger(name).setLevel(logging.ERROR)
        super().__init__(
            uvicorn.Config(
                # Uvicorn would take what can be called without arguments for a factory.
                lambda scope, receive, send: service(scope, receive, send),
                http=Connection,
                interface="asgi3",
                ws="none",
                lifespan="on",
                log_config=None,
                access_log=False,
                proxy_headers=False,
                server_header=False,
                timeout_keep_alive=IDLE_SECONDS,
                timeout_graceful_shutdown=CLOSING_SECONDS,
            )
        )
        service.state.count_connections = lambda: len(self.server_state.connections)
        self._service = service
        self._drain_seconds = drain_seconds
        self._hangups = hangups
        self._loop: asyncio.AbstractEventLoop | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to listen; from here on signals are handled."""
        self._loop = asyncio.get_running_loop()
        _set_hangup_handler(self._handle_hangup)
        if self._hangups:
            self._begin(self._service.reload)
        await super().startup(sockets)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Drain at the first signal; end the process at once at the second."""
        del frame
        if self._service.state.status == "draining":
            # Uvicorn's `force_exit` would wait for the batches that are computed. All
            # that was printed or logged has been flushed.
            os._exit(128 + sig)
        self._service.state.status = "draining"
        if self._loop is None:
            self.should_exit = True
        else:
            self._loop.call_soon_threadsafe(self._begin, self._drain)

    def _handle_hangup(self, sig: int, frame: FrameType | None) -> None:
        del sig, frame
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._begin, self._service.reload)

    def _begin(self, work) -> None:  # type: ignore[no-untyped-def]
        task = asyncio.ensure_future(work())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _drain(self) -> None:
        logger.info("draining: accepted requests are answered, others refused")
        await self._service.drain(seconds=self._drain_seconds)
        self.should_exit = True


def note_hangups() -> Sequence[int]:
    """Handle SIGHUP until a `Server` starts, and return the list that records each.

    By default a SIGHUP while the models are loaded would end the process.
    """
    hangups: list[int] = []
    _set_hangup_handler(lambda sig, frame: hangups.append(sig))
    return hangups


def _set_hangup_handler(handler: Callable[[int, FrameType | None], None]) -> None:
    with contextlib.suppress(AttributeError, ValueError):
        # Windows has no SIGHUP, and only the main thread takes signals.
        signal.signal(signal.SIGHUP, handler)


@contextlib.contextmanager
def listening(host: str, port: int) -> Iterator[socket.socket]:
    """Open a socket that listens on a port; port 0 is any that is free.

    Raises:
        ValueError: The host is unknown, or the port is taken or not allowed.
    """
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        listener = socket.create_server((host, port), family=family, backlog=2048)
    except OSError as error:
        raise ValueError(
            f"--host={host} --port={port}: {error.strerror or error}"
        ) from None
    with listener:
        yield listener


def url_of(listener: socket.socket) -> str:
    """Return the URL of a listening socket."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"
