"""A service on a socket of this process."""

import contextlib
import socket
import threading
import time

import uvicorn

from vaswani_jax.service.connections import Connection


@contextlib.contextmanager
def served(service):
    """Run a service on a socket; yield its port."""
    config = uvicorn.Config(
        lambda scope, receive, send: service(scope, receive, send),
        http=Connection,
        interface="asgi3",
        log_config=None,
        ws="none",
        lifespan="on",
    )
    server = uvicorn.Server(config)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=server.run, args=([listener],))
        thread.start()
        try:
            wait_until(lambda: service.state.status == "ready")
            yield listener.getsockname()[1]
        finally:
            server.should_exit = True
            thread.join(30)


def wait_until(condition, *, seconds=20):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)
