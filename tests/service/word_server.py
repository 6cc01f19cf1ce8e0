"""A server for the tests of the page: it answers as the service does, word by word.

It translates a sentence by its words in reverse order, each with a prime, so that
"one in-two." is "two.′ in′ one′": what a hyphen joins are two words of the translation.
"""

import contextlib
import json
import mimetypes
import pathlib
import re
import select
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import vaswani_jax.service

FILES = pathlib.Path(vaswani_jax.service.__file__).parent / "web"
MODELS = {
    "models": [
        {
            "name": "first",
            "directions": [{"source": "de", "target": "en"}],
            "checkpoint": "averaged",
            "parameters": 1000,
            "beam_sizes": [4, 1],
            "length_penalty": 0.6,
        },
        {
            "name": "second",
            "directions": [
                {"source": "en", "target": "de"},
                {"source": "en", "target": "ar"},
            ],
            "checkpoint": "100",
            "parameters": 1000,
            "beam_sizes": [2],
            "length_penalty": 1.0,
        },
    ],
    "limits": {
        "texts": 128,
        "characters": 1500,
        "n_best": 3,
        "length_penalties": [0.0, 2.0],
        "seconds": 30.0,
    },
}
LANGUAGES = {
    "languages": [
        {"code": "de", "name": "German", "targets": ["en"]},
        {"code": "en", "name": "English", "targets": ["de", "ar"]},
    ]
}
SENTENCE = re.compile(r"[^\s.!?](?:[^\n.!?]*[^\s.!?])?[.!?]*|[.!?]+")
SECONDS = 20.0


def translate_sentence(sentence: str) -> tuple[str, list[tuple[int, int, int, int]]]:
    """Return the translation of a sentence, and where its words and theirs lie."""
    target, alignment = "", []
    for match in reversed(list(re.finditer(r"\S+", sentence))):
        for part in reversed(match[0].split("-")):
            begin = len(target) + bool(target)
            target = f"{target} {part}′" if target else f"{part}′"
            alignment.append((match.start(), match.end(), begin, len(target)))
    return target, alignment


def translate(text: str, *, n_best: int) -> dict[str, Any]:
    """Return an entry of `results`; the n-th translation ends with n - 1 stars."""
    target, end, entries = "", 0, []
    for match in SENTENCE.finditer(text):
        gap = text[end : match.start()]
        target += gap if "\n" in gap or not end else " "
        words, alignment = translate_sentence(match[0])
        begin, end = len(target), match.end()
        target += words
        entries.append(
            {
                "source_begin": match.start(),
                "source_end": end,
                "target_begin": begin,
                "target_end": len(target),
                "score": -0.5,
                "alignment": [
                    (match.start() + b, match.start() + e, begin + tb, begin + te)
                    for b, e, tb, te in alignment
                ],
            }
        )
    target += text[end:]
    translations = [
        {"text": target + "*" * rank, "score": -0.5 - rank / 4}
        for rank in range(n_best)
    ]
    return {"translations": translations, "sentences": entries}


class WordServer:
    """A server on the loopback address, which is closed at the end of its block.

    Attributes:
        status: What /health says.
        key: The key that is needed, "" for none.
        refusals: What the next requests to translate are refused with, the first
            first: status, body and headers.
        endings: How the next streams end after their first sentence, in bytes; None
            for as they should.
        gate: If set, each sentence of a stream waits for its release.
        answer_gate: If set, each answer without a stream waits for its release.
        refused_paths: The paths that are refused with status 429.
        requests: The bodies of the requests to translate, as they arrived.
        left: The texts whose client went away before the answer.
        edits: The parts of files that are replaced, by the file's name.
    """

    def __init__(self, root_path: str = "") -> None:
        """Listen.

        Args:
            root_path: What all paths begin with.
        """
        self.status = "ready"
        self.key = ""
        self.refusals: list[tuple[int, Any, dict[str, str]]] = []
        self.endings: list[bytes | None] = []
        self.gate: threading.Semaphore | None = None
        self.answer_gate: threading.Semaphore | None = None
        self.refused_paths: set[str] = set()
        self.requests: list[dict[str, Any]] = []
        self.left: list[str] = []
        self.edits: dict[str, tuple[str, str]] = {}
        self.root_path = root_path
        handler = type("Handler", (_Handler,), {"words": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.01}
        )

    @property
    def origin(self) -> str:
        """The scheme, the host and the port."""
        return f"http://127.0.0.1:{self._server.server_port}"

    @property
    def address(self) -> str:
        """The URL of the page."""
        return f"{self.origin}{self.root_path}/"

    def __enter__(self) -> "WordServer":
        """Begin to answer."""
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """End."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def file(self, name: str) -> bytes | None:
        """Return a file of the page, with its edits; None if there is none."""
        path = FILES / name
        if "/" in name or not path.is_file():
            return None
        text = path.read_text(encoding="utf-8")
        if name in self.edits:
            sound, mistaken = self.edits[name]
            assert text.count(sound) == 1, sound
            text = text.replace(sound, mistaken)
        return text.encode()


class _Handler(BaseHTTPRequestHandler):
    words: WordServer

    def log_message(self, *_: object) -> None:
        """Write nothing."""

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        root = self.words.root_path
        path = path[len(root) :] if path.startswith(f"{root}/") else ""
        file = self.words.file(path[1:] or "index.html") if path else None
        if file is not None:
            kind = mimetypes.guess_type(path)[0] or "text/html; charset=utf-8"
            self.send(200, file, {"Content-Type": kind, "ETag": "1"})
        elif path == "/health":
            status = self.words.status
            self.send_json(200 if status == "ready" else 503, {"status": status})
        elif path in self.words.refused_paths:
            self.refuse(429, "too many requests")
        elif self.is_admitted():
            answers = {"/v1/models": MODELS, "/v1/languages": LANGUAGES}
            if path == "/v1/page":
                self.send(200, b"<!doctype html>", {"Content-Type": "text/html"})
            elif path in answers:
                self.send_json(200, answers[path])
            else:
                self.refuse(404, "there is no such path")

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.words.requests.append(body)
        if not self.is_admitted():
            return
        if self.words.refusals:
            status, answer, headers = self.words.refusals.pop(0)
            self.send(status, json.dumps(answer).encode(), headers)
            return
        result = translate(body["text"], n_best=body["n_best"])
        answer = {"model": "", "source": "", "target": "", "results": [result]}
        if not body.get("stream"):
            with contextlib.suppress(ConnectionError):
                self.wait(self.words.answer_gate)
                self.send_json(200, answer)
            return
        self.send(200, b"", {"Content-Type": "text/event-stream; charset=utf-8"})
        try:
            for event in self.events(body["text"], answer):
                self.wfile.write(event)
        except ConnectionError:
            self.words.left.append(body["text"])

    def events(self, text: str, answer: dict[str, Any]) -> Iterator[bytes]:
        """Yield the events of a stream.

        Raises:
            ConnectionError: The client went away.
        """
        [result] = answer["results"]
        ending = self.words.endings.pop(0) if self.words.endings else None
        for entry in result["sentences"]:
            self.wait(self.words.gate)
            source = text[entry["source_begin"] : entry["source_end"]]
            best = result["translations"][0]["text"]
            target = best[entry["target_begin"] : entry["target_end"]]
            sides = {"text_index": 0, "source": source, "target": target}
            yield _event("sentence", {**entry, **sides})
            if ending is not None:
                yield ending
                return
        yield _event("done", answer)

    def wait(self, gate: threading.Semaphore | None) -> None:
        """Wait until a gate lets a sentence or an answer pass.

        Raises:
            ConnectionError: The client went away.
        """
        for _ in range(int(SECONDS / 0.01)):
            if gate is None or gate.acquire(timeout=0.01):
                return
            readable, _, _ = select.select([self.connection], [], [], 0)
            if readable and not self.connection.recv(1, socket.MSG_PEEK):
                raise ConnectionError

    def is_admitted(self) -> bool:
        """Return whether the request may be answered; refuse it if not."""
        key = self.headers.get("Authorization", "")
        if self.words.key and key != f"Bearer {self.words.key}":
            self.refuse(401, "this server needs a key")
        elif self.words.status != "ready":
            self.refuse(503, "try again", {"Retry-After": "1"})
        else:
            return True
        return False

    def refuse(
        self, status: int, message: str, headers: dict[str, str] | None = None
    ) -> None:
        """Send an error as the service does."""
        self.send_json(status, {"error": {"message": message, "field": None}}, headers)

    def send_json(
        self, status: int, value: Any, headers: dict[str, str] | None = None
    ) -> None:
        """Send a value as JSON."""
        kind = {"Content-Type": "application/json"}
        self.send(status, json.dumps(value).encode(), {**kind, **(headers or {})})

    def send(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        """Send an answer, or the head of a stream."""
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Security-Policy", "default-src 'self'")
        self.end_headers()
        self.wfile.write(body)


def _event(name: str, value: Any) -> bytes:
    return f"event: {name}\ndata: {json.dumps(value)}\n\n".encode()
