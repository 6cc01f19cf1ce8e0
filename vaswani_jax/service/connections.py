"""Close a connection whose request has a URL and headers of more than 64 KiB.

The guard sees a request when its headers are complete; uvicorn's parser sets no limit.
"""

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

# Twice what nginx accepts by default for large headers.
MAX_HEAD_BYTES = 65536
REASON = f"the URL and the headers have more than {MAX_HEAD_BYTES:,} bytes"


class Connection(HttpToolsProtocol):
    """A connection of a client, with a limit on the head of each request."""

    _is_in_message = _has_head = _is_refused = False
    # Bytes since the parser last passed something on, and how often it did.
    _held_bytes = _num_events = 0

    def data_received(self, data: bytes) -> None:
        """Parse what the client sent; refuse it if a head or a trailer is too large."""
        if self._is_refused:
            return
        num_events = self._num_events
        super().data_received(data)
        if self._is_in_message and self._num_events == num_events:
            self._held_bytes += len(data)
        if self._is_refused or self._held_bytes > MAX_HEAD_BYTES:
            self._refuse()

    def on_message_begin(self) -> None:
        """Start to count the bytes of a head."""
        self._is_in_message, self._has_head = True, False
        self._restart_count()
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Start a request, unless its head is too large."""
        self._restart_count()
        fields = sum(len(name) + len(value) for name, value in self.headers)
        self._is_refused = self._is_refused or len(self.url) + fields > MAX_HEAD_BYTES
        if not self._is_refused:
            self._has_head = True
            super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Pass on a part of the body, which the guard limits."""
        self._restart_count()
        if not self._is_refused:
            super().on_body(body)

    def on_message_complete(self) -> None:
        """End the request."""
        self._is_in_message = False
        self._restart_count()
        if not self._is_refused:
            super().on_message_complete()

    def _restart_count(self) -> None:
        self._held_bytes = 0
        self._num_events += 1

    def _refuse(self) -> None:
        self._is_refused = True
        if self.transport.is_closing():
            return
        if self.cycle is not None and not self.cycle.response_complete:
            # The answers to earlier requests end the connection.
            self.cycle.keep_alive = False
            return
        if not self._has_head:
            self.transport.write(_answer())
        self.transport.close()


def _answer() -> bytes:
    body = REASON.encode()
    head = (
        "HTTP/1.1 431 Request Header Fields Too Large\r\n"
        "content-type: text/plain; charset=utf-8\r\n"
        f"content-length: {len(body)}\r\n"
        "connection: close\r\n\r\n"
    )
    return head.encode() + body
