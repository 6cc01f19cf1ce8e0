"""WMT14 through tensorflow-datasets' own builder, from archives served on this machine.

The archives have WMT14's names and layout and a few lines each; requests reach them
through a proxy, so that all of the builder runs: its list of corpora, its downloads,
its reading of text and SGML, its records.
"""

import errno
import gzip
import pathlib
import resource
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from tensorflow_datasets.core import shuffle

from tests import wmt14 as archives
from tests.data import small_wmt14
from vaswani_jax.data import prepared as prepared_
from vaswani_jax.data import tfds


@pytest.fixture
def server() -> Iterator[archives.Server]:
    tfds.make_builder.cache_clear()
    with archives.serving(small_wmt14.archive) as found:
        yield found
    tfds.make_builder.cache_clear()


@pytest.fixture
def no_checksums() -> Iterator[None]:
    with archives.without_checksums():
        yield


pytestmark = pytest.mark.filterwarnings("default")


@pytest.mark.usefixtures("no_checksums")
@pytest.mark.parametrize("other", ["de", "fr"])
def test_the_builders_pairs_are_those_of_the_archives(
    server: archives.Server, tmp_path: pathlib.Path, other: str
) -> None:
    data = small_wmt14.settings_of(tmp_path, other).data
    tfds.prepare(data)
    train = list(tfds.pairs(data, "train", indices=None))
    assert tfds.count(data, "train") == len(train) == small_wmt14.training_pairs(other)
    assert len(set(train)) == len(train)
    assert not pathlib.Path("/tmp/escaped_from_an_archive").exists()
    unpacked = list((tmp_path / "downloads" / "extracted").rglob("*"))
    assert any(path.name.startswith("newstest2013") for path in unpacked)
    for path in tmp_path.parent.rglob("*"):
        assert path.name not in ("escaped", "e")
        assert not path.is_symlink() or tmp_path not in path.parents
    for source, target in train:
        name, _, number = source.split(" ")[0], *source.split(" ")[1:3]
        assert source == small_wmt14.line(name, "en", int(number))
        assert target == small_wmt14.line(name, other, int(number))
    for split in ("valid", "test"):
        name = {"valid": "newstest2013", "test": f"newstest2014-{other}en-"}[split]
        found = set(tfds.pairs(data, split, indices=None))
        assert len(found) == small_wmt14.LINES
        assert all(source.startswith(name) for source, _ in found)
    # The other direction is the same text, told the other way round.
    back = small_wmt14.settings_of(
        tmp_path, other, **{"data.source_locale": other, "data.target_locale": "en"}
    ).data
    turned = [pair[::-1] for pair in tfds.pairs(back, "train", indices=None)]
    assert turned == train
    assert list(tfds.pairs(data, "train", indices=[7, 3])) == [train[7], train[3]]
    # What is prepared asks for nothing.
    before = len(server.asked)
    tfds.prepare(data)
    assert len(server.asked) == before


# What other readers take for the end of a line, or for no line.
ODD = ["a\rb", "\u2028 c", "\x85d", "e\r", " \tf ", "\x0bg", "", "last"]


@pytest.mark.usefixtures("no_checksums")
def test_reading_line_by_line_changes_no_record(
    server: archives.Server, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def odd(name: str, language: str) -> bytes:
        if name.endswith("sgm"):
            return small_wmt14.content(name, language)
        lines = (f"{name} {n} {odd}" if odd else "" for n, odd in enumerate(ODD))
        # Some files end without a line's end.
        text = "\n".join(lines) + "\n" * name.startswith("europarl")
        return gzip.compress(text.encode()) if name.endswith("gz") else text.encode()

    server.find = lambda name: small_wmt14.archive(name, odd)
    found = []
    for name in ("ours", "theirs"):
        tfds.make_builder.cache_clear()
        data = small_wmt14.settings_of(tmp_path / name, "fr").data
        tfds.prepare(data)
        found.append(list(tfds.pairs(data, "train", indices=None)))
        # The builder's own reader, which holds all lines.
        monkeypatch.setattr(tfds, "_is_plain", lambda *paths: False)
    assert found[0] == found[1]
    # The builder leaves out a pair with an empty side.
    assert len(found[0]) == small_wmt14.TRAINING["fr"] * (len(ODD) - 1)


@pytest.mark.usefixtures("no_checksums")
def test_records_that_do_not_fit_into_memory_are_the_same(
    server: archives.Server, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A file each of a thousand shares of the records, all open at once.
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    found = []
    for most in (shuffle.MAX_MEM_BUFFER_SIZE, 1000):
        monkeypatch.setattr(shuffle, "MAX_MEM_BUFFER_SIZE", most)
        tfds.make_builder.cache_clear()
        data = small_wmt14.settings_of(tmp_path / str(most)).data
        resource.setrlimit(resource.RLIMIT_NOFILE, (100, before[1]))
        try:
            tfds.prepare(data)
            assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] == 100
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, before)
        found.append(list(tfds.pairs(data, "train", indices=None)))
    assert found[0] == found[1]


@pytest.mark.usefixtures("no_checksums")
def test_a_download_that_failed_goes_on_with_what_is_there(
    server: archives.Server, tmp_path: pathlib.Path
) -> None:
    data = small_wmt14.settings_of(tmp_path).data
    server.broken = "dev.tgz"
    with pytest.raises(ValueError, match=r"could not be prepared: .*\n?.*downloads"):
        tfds.prepare(data)
    assert "training-parallel-europarl-v7.tgz" in server.asked
    server.broken, server.asked = "", []
    tfds.make_builder.cache_clear()
    tfds.prepare(data)
    assert server.asked == ["dev.tgz"]


@pytest.mark.usefixtures("no_checksums")
@pytest.mark.parametrize("where", ["_lines", "_Member.read"])
def test_a_preparation_that_was_killed_leaves_nothing_behind(
    server: archives.Server, tmp_path: pathlib.Path, where: str
) -> None:
    """Killed while it extracts, or while it converts: no clean-up of its own ran."""
    program = (
        "import os, pathlib\n"
        "from tests import wmt14\n"
        "from tests.data import small_wmt14\n"
        "from vaswani_jax.data import tfds\n"
        f"tfds.{where} = lambda *_: os._exit(9)\n"
        f"data = small_wmt14.settings_of(pathlib.Path({str(tmp_path)!r})).data\n"
        "with wmt14.without_checksums():\n"
        "    tfds.prepare(data)\n"
    )
    killed = subprocess.run([sys.executable, "-c", program], capture_output=True)
    assert killed.returncode == 9, killed.stderr
    assert list(tmp_path.rglob("incomplete.*"))
    data = small_wmt14.settings_of(tmp_path).data
    tfds.prepare(data)
    assert tfds.count(data, "train") == small_wmt14.training_pairs("de")
    assert not list(tmp_path.rglob("incomplete.*"))


def test_an_archive_that_is_not_wmt14s_is_refused(
    server: archives.Server, tmp_path: pathlib.Path
) -> None:
    with pytest.raises(ValueError, match=r"(?s)NonMatchingChecksumError.*may be put"):
        tfds.prepare(small_wmt14.settings_of(tmp_path).data)


@pytest.mark.usefixtures("no_checksums")
@pytest.mark.parametrize(
    ("error", "raised", "told"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), OSError, "No space left"),
        (OSError(errno.EACCES, "Not permitted"), ValueError, "Not permitted$"),
        (ValueError("differ in their numbers"), ValueError, "differ in their numbers$"),
    ],
)
def test_what_is_no_matter_of_the_network_does_not_speak_of_it(
    server: archives.Server,
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
    error: Exception,
    raised: type[Exception],
    told: str,
) -> None:
    def fail(*_: Any) -> Iterator[str]:
        raise error
        yield

    monkeypatch.setattr(tfds, "_lines", fail)
    with pytest.raises(raised, match=told):
        tfds.prepare(small_wmt14.settings_of(tmp_path).data)


@pytest.mark.parametrize("other", ["de", "fr"])
def test_archives_put_there_by_hand_are_not_asked_for_but_compared(
    server: archives.Server, tmp_path: pathlib.Path, other: str
) -> None:
    by_hand = tmp_path / "downloads" / "manual"
    by_hand.mkdir(parents=True)
    # What one direction does not need, it does not ask for.
    for name in archives.ARCHIVES:
        if (found := small_wmt14.archive(name)) is not None:
            (by_hand / name).write_bytes(found.read())
    with pytest.raises(ValueError, match=f"NonMatchingChecksumError.*\n?.*{by_hand}"):
        tfds.prepare(small_wmt14.settings_of(tmp_path, other).data)
    assert server.asked == []


def test_an_unknown_corpus_is_refused(tmp_path: pathlib.Path) -> None:
    data = small_wmt14.settings_of(
        tmp_path,
        **{"data.source": "tfds:wmt14_translate/xx-en"} | {"data.target_locale": "xx"},
    ).data
    with pytest.raises(ValueError, match="no such corpus"):
        tfds.prepare(data)


@pytest.mark.usefixtures("no_checksums")
def test_a_corpus_is_prepared_once_and_loads_no_tensorflow(
    server: archives.Server, tmp_path: pathlib.Path, caplog: pytest.LogCaptureFixture
) -> None:
    small = small_wmt14.settings_of(tmp_path / "tfds")
    for _ in range(2):
        prepared = prepared_.open_or_prepare(
            small,
            tmp_path / "data",
            rebuild=False,
        )
    assert prepared.counts["train"]["kept"] == small_wmt14.training_pairs("de")
    assert sum("downloading" in text for text in caplog.messages) == 1
    assert len(prepared.text("test")[0]) == small_wmt14.LINES
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
