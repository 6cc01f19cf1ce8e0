"""An object store on the loopback address: moto's server, which speaks S3 over HTTP."""

import contextlib
import itertools
import logging
import os
from collections.abc import Iterator, Mapping

import fsspec

NUMBERS = itertools.count()


class ObjectStore:
    """A server on a free port; what it stores stays while it is stopped."""

    def __init__(self) -> None:
        self._port = 0
        logging.getLogger("werkzeug").setLevel(logging.ERROR)
        self.start()

    @property
    def environment(self) -> Mapping[str, str]:
        """The variables that lead s3fs, here or in another process, to this server."""
        return {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{self._port}",
            "AWS_ACCESS_KEY_ID": "not",
            "AWS_SECRET_ACCESS_KEY": "secret",
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_MAX_ATTEMPTS": "1",
            # What the user has configured is not read.
            "AWS_CONFIG_FILE": os.devnull,
            "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
            "no_proxy": "127.0.0.1",
        }

    def start(self) -> None:
        """Serve; on the same port as before, if there was one."""
        from moto.server import ThreadedMotoServer  # a second, for few tests

        self._server = ThreadedMotoServer("127.0.0.1", self._port, verbose=False)
        self._server.start()
        _, self._port = self._server.get_host_and_port()

    def stop(self) -> None:
        """Refuse all connections until `start`."""
        self._server.stop()

    def make_bucket(self) -> str:
        """Return the URL of a bucket that nobody has used."""
        name = f"bucket{next(NUMBERS)}"
        fsspec.filesystem("s3").mkdir(name)
        return f"s3://{name}"


@contextlib.contextmanager
def serve() -> Iterator[ObjectStore]:
    """Run a server, and stop it."""
    server = ObjectStore()
    try:
        yield server
    finally:
        server.stop()
