"""WMT14 through tensorflow-datasets' own builder, from archives served on this machine.

The archives have WMT14's names and layout and a few lines each; requests reach them
through a proxy, so that all of the builder runs: its list of corpora, its downloads,
its reading of text and SGML, its records.
"""

import gzip
import http.server
import io
import pathlib
import subprocess
import sys
import tarfile
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from tests import settings
from vaswani_jax.core import config
from vaswani_jax.data import corpus, dataset_files, datasets

LINES = 40
EXTRA = {"de": "ß", "fr": "é", "en": ""}
# The archive, the files of a pair XX-en in it, and whether they are of the test set.
ARCHIVES = {
    "training-parallel-europarl-v7.tgz": ["training/europarl-v7.{p}.{s}"],
    "training-parallel-commoncrawl.tgz": ["commoncrawl.{p}.{s}"],
    "training-parallel-nc-v9.tgz": ["training/news-commentary-v9.{p}.{s}"],
    "training-parallel-un.tgz": ["un/undoc.2000.{p}.{s}"],
    "training-giga-fren.tar": ["giga-fren.release2.fixed.{s}.gz"],
    "dev.tgz": ["dev/newstest2013.{s}", "dev/newstest2014-{j}-{r}.{s}.sgm"],
}
TRAINING = {"de": 3, "fr": 5}  # archives that train a pair
TELLS = ("promise", "imp module", "utcnow", "pkg_resources")


def line(name: str, language: str, number: int) -> str:
    return f"{name.partition('.')[0]} line {number} {EXTRA[language]}{language}"


def content(name: str, language: str) -> bytes:
    lines = [line(name, language, number) for number in range(LINES)]
    if name.endswith("sgm"):
        lines = [f'<seg id="{n + 1}">{text}</seg>' for n, text in enumerate(lines)]
        lines = ["<srcset>", "<doc>", *lines, "</doc>", "</srcset>"]
    text = ("\n".join(lines) + "\n").encode()
    return gzip.compress(text) if name.endswith("gz") else text


def archive(name: str) -> bytes:
    files = {}
    for other in ("de", "fr"):
        for pattern in ARCHIVES[name]:
            for side in (other, "en"):
                path = pattern.format(
                    p=f"{other}-en",
                    s=side,
                    j=f"{other}en",
                    r="ref" if side == "en" else "src",
                )
                files[path] = content(pathlib.Path(path).name, side)
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz" if name[-1] == "z" else "w") as tar:
        for path, data in files.items():
            info = tarfile.TarInfo(path)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return packed.getvalue()


class Server(http.server.ThreadingHTTPServer):
    """A proxy that has WMT14's archives, whatever host is asked."""

    asked: list[str]
    broken: str = ""


class Handler(http.server.BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        name = self.path.rpartition("/")[2]
        self.server.asked.append(name)
        found = name in ARCHIVES and name != self.server.broken
        data = archive(name) if found else b"gone"
        self.send_response(200 if found else 404)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *arguments: Any) -> None:
        pass


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    found = Server(("127.0.0.1", 0), Handler)
    found.asked = []
    threading.Thread(target=found.serve_forever, daemon=True).start()
    for name in ("http_proxy", "https_proxy"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{found.server_port}")
    monkeypatch.delenv("no_proxy", raising=False)
    datasets._builder_of.cache_clear()
    yield found
    found.shutdown()
    found.server_close()
    datasets._builder_of.cache_clear()


@pytest.fixture
def no_checksums(monkeypatch: pytest.MonkeyPatch) -> None:
    """The archives are not WMT14's own, whose checksums the builder knows."""
    from tensorflow_datasets.core.download import checksums
    from tensorflow_datasets.translate import wmt14

    monkeypatch.setattr(checksums, "get_all_url_infos", dict)
    monkeypatch.setattr(wmt14.Wmt14Translate, "url_infos", {})


def wmt14(directory: pathlib.Path, other: str = "de", **more: Any) -> config.Config:
    return settings.small_settings(
        **{
            "data.source": f"tfds:wmt14_translate/{other}-en",
            "data.source_locale": "en",
            "data.target_locale": other,
            "data.tfds_directory": str(directory),
            "data.vocab_size": 90,
            "data.max_length": 60,
            "data.source_tokens_per_batch": 256,
            "data.target_tokens_per_batch": 256,
            "model.max_positions": 64,
            **more,
        }
    )


def quiet(text: str) -> None:
    pass


pytestmark = pytest.mark.filterwarnings("default")


@pytest.mark.usefixtures("no_checksums")
@pytest.mark.parametrize("other", ["de", "fr"])
def test_the_builders_pairs_are_those_of_the_archives(
    server: Server, tmp_path: pathlib.Path, other: str
) -> None:
    data = wmt14(tmp_path, other).data
    datasets.prepare(data, log=quiet)
    train = list(datasets.pairs(data, "train", chosen=None))
    assert datasets.count(data, "train") == len(train) == TRAINING[other] * LINES
    assert len(set(train)) == len(train)
    for source, target in train:
        name, _, number = source.split(" ")[0], *source.split(" ")[1:3]
        assert source == line(name, "en", int(number))
        assert target == line(name, other, int(number))
    for split in ("valid", "test"):
        name = {"valid": "newstest2013", "test": f"newstest2014-{other}en-"}[split]
        found = set(datasets.pairs(data, split, chosen=None))
        assert len(found) == LINES
        assert all(source.startswith(name) for source, _ in found)
    # The other direction is the same text, told the other way round.
    back = wmt14(
        tmp_path, other, **{"data.source_locale": other, "data.target_locale": "en"}
    ).data
    turned = [pair[::-1] for pair in datasets.pairs(back, "train", chosen=None)]
    assert turned == train
    assert list(datasets.pairs(data, "train", chosen=[7, 3])) == [train[7], train[3]]
    # What is prepared asks for nothing.
    before = len(server.asked)
    datasets.prepare(data, log=quiet)
    assert len(server.asked) == before


@pytest.mark.usefixtures("no_checksums")
def test_reading_line_by_line_changes_no_record(
    server: Server, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = []
    for name in ("ours", "theirs"):
        datasets._builder_of.cache_clear()
        data = wmt14(tmp_path / name, "fr").data
        datasets.prepare(data, log=quiet)
        found.append(list(datasets.pairs(data, "train", chosen=None)))
        # The builder's own reader, which holds all lines.
        monkeypatch.setattr(dataset_files, "_is_plain", lambda path: False)
    assert found[0] == found[1]


@pytest.mark.usefixtures("no_checksums")
def test_a_download_that_failed_goes_on_with_what_is_there(
    server: Server, tmp_path: pathlib.Path
) -> None:
    data = wmt14(tmp_path).data
    server.broken = "dev.tgz"
    with pytest.raises(ValueError, match=r"could not be prepared: .*\n?.*downloads"):
        datasets.prepare(data, log=quiet)
    assert "training-parallel-europarl-v7.tgz" in server.asked
    server.broken, server.asked = "", []
    datasets._builder_of.cache_clear()
    datasets.prepare(data, log=quiet)
    assert server.asked == ["dev.tgz"]


def test_an_archive_that_is_not_wmt14s_is_refused(
    server: Server, tmp_path: pathlib.Path
) -> None:
    with pytest.raises(ValueError, match="NonMatchingChecksumError"):
        datasets.prepare(wmt14(tmp_path).data, log=quiet)


def test_an_unknown_corpus_is_refused(tmp_path: pathlib.Path) -> None:
    data = wmt14(
        tmp_path,
        **{"data.source": "tfds:wmt14_translate/xx-en"} | {"data.target_locale": "xx"},
    ).data
    with pytest.raises(ValueError, match="no such corpus"):
        datasets.prepare(data, log=quiet)


@pytest.mark.usefixtures("no_checksums")
def test_a_corpus_is_prepared_once_and_loads_no_tensorflow(
    server: Server, tmp_path: pathlib.Path
) -> None:
    told: list[str] = []
    small = wmt14(tmp_path / "tfds")
    for _ in range(2):
        prepared = corpus.open_or_prepare(
            small,
            tmp_path / "data",
            rebuild=False,
            trained_with=None,
            log=told.append,
        )
    assert prepared.counts["train"]["kept"] == TRAINING["de"] * LINES
    assert sum("downloading" in text for text in told) == 1
    assert len(prepared.text("test")[0]) == LINES
    program = (
        "import sys, tensorflow_datasets.translate.wmt14; "
        "import tensorflow_datasets as tfds; "
        f"b = tfds.builder('wmt14_translate/de-en', data_dir={str(tmp_path / 'tfds')!r}"
        ", file_format='array_record'); next(iter(b.as_data_source('train'))); "
        "print('tensorflow' in sys.modules)"
    )
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert result.stdout.split()[-1] == "False"
