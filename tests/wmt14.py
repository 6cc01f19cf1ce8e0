"""WMT14's archives served on this machine: a proxy for tensorflow-datasets' builder."""

import contextlib
import http.server
import os
import pathlib
import shutil
import threading
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO

# The archives that the builder downloads for German and for French, and their files
# of a pair XX-en: {p} is the pair, {s} the side, {j} XXen, {r} src or ref.
ARCHIVES = {
    "training-parallel-europarl-v7.tgz": ["training/europarl-v7.{p}.{s}"],
    "training-parallel-commoncrawl.tgz": ["commoncrawl.{p}.{s}"],
    "training-parallel-nc-v9.tgz": ["training/news-commentary-v9.{p}.{s}"],
    "training-parallel-un.tgz": ["un/undoc.2000.{p}.{s}"],
    "training-giga-fren.tar": ["giga-fren.release2.fixed.{s}.gz"],
    "dev.tgz": ["dev/newstest2013.{s}", "dev/newstest2014-{j}-{r}.{s}.sgm"],
}


def files(archive: str, language: str) -> Iterator[tuple[str, str]]:
    """The paths of an archive's files of a pair, and their language."""
    for pattern in ARCHIVES[archive]:
        for side in (language, "en"):
            role = "ref" if side == "en" else "src"
            names = {"p": f"{language}-en", "s": side, "j": f"{language}en", "r": role}
            yield pattern.format(**names), side


class Server(http.server.ThreadingHTTPServer):
    """Gives an archive, whatever host is asked; `asked` has the names so far."""

    def __init__(self, find: Callable[[str], BinaryIO | None]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.find = find
        self.asked: list[str] = []
        self.broken = ""


class _Handler(http.server.BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        name = self.path.rpartition("/")[2]
        self.server.asked.append(name)
        archive = None if name == self.server.broken else self.server.find(name)
        self.send_response(404 if archive is None else 200)
        self.end_headers()
        if archive is not None:
            with archive:
                shutil.copyfileobj(archive, self.wfile, 1 << 20)

    def log_message(self, *arguments: Any) -> None:
        pass


@contextlib.contextmanager
def serving(find: Callable[[str], BinaryIO | None]) -> Iterator[Server]:
    """All requests of this process go to a server of archives."""
    names = ("http_proxy", "https_proxy", "no_proxy")
    variables = {name: os.environ.pop(name, None) for name in names}
    with Server(find) as server:
        for name in names[:2]:
            os.environ[name] = f"http://127.0.0.1:{server.server_port}"
        # Else the end of the server waits for half a second.
        options = {"poll_interval": 0.01}
        threading.Thread(
            target=server.serve_forever, kwargs=options, daemon=True
        ).start()
        try:
            yield server
        finally:
            server.shutdown()
            for name, value in variables.items():
                os.environ.pop(name, None)
                if value is not None:
                    os.environ[name] = value


@contextlib.contextmanager
def without_checksums() -> Iterator[None]:
    """The builder takes other archives than WMT14's own, whose checksums it knows."""
    from tensorflow_datasets.core.download import checksums
    from tensorflow_datasets.translate import wmt14

    get_infos, attributes = checksums.get_all_url_infos, wmt14.Wmt14Translate.__dict__
    url_infos = attributes.get("url_infos")
    checksums.get_all_url_infos = dict
    wmt14.Wmt14Translate.url_infos = {}
    try:
        yield
    finally:
        checksums.get_all_url_infos = get_infos
        if url_infos is None:
            del wmt14.Wmt14Translate.url_infos
        else:
            wmt14.Wmt14Translate.url_infos = url_infos


def found_in(directory: pathlib.Path) -> Callable[[str], BinaryIO | None]:
    """Archives that lie in a directory."""

    def find(name: str) -> BinaryIO | None:
        path = directory / name
        return path.open("rb") if path.is_file() else None

    return find
