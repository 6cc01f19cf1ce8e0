"""WMT14 through tensorflow-datasets' own builder, from archives served on this machine.

The archives have WMT14's names and layout and a few lines each; requests reach them
through a proxy, so that all of the builder runs: its list of corpora, its downloads,
its reading of text and SGML, its records.
"""

import contextlib
import errno
import gzip
import pathlib
import resource
import types
from collections.abc import Iterator
from unittest import mock

import pytest
from tensorflow_datasets.core import shuffle

from tests import interpreter
from tests import wmt14 as archives
from tests.data import small_wmt14
from vaswani_jax.data import prepared, tfds


@pytest.fixture
def server() -> Iterator[archives.Server]:
    tfds.make_builder.cache_clear()
    with archives.serving(small_wmt14.archive) as server:
        yield server
    tfds.make_builder.cache_clear()


@pytest.fixture
def no_checksums() -> Iterator[None]:
    with archives.without_checksums():
        yield


pytestmark = pytest.mark.filterwarnings("default")


@pytest.mark.usefixtures("no_checksums")
@pytest.mark.parametrize("language", ["de", "fr"])
def test_the_builders_pairs_are_those_of_the_archives(
    server: archives.Server, tmp_path: pathlib.Path, language: str
) -> None:
    data = small_wmt14.settings_of(tmp_path, language).data
    tfds.prepare(data)
    train = list(tfds.pairs(data, "train", indices=None))
    assert (
        tfds.count(data, "train") == len(train) == small_wmt14.training_pairs(language)
    )
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
        assert target == small_wmt14.line(name, language, int(number))
    for split in ("valid", "test"):
        name = {"valid": "newstest2013", "test": f"newstest2014-{language}en-"}[split]
        held_out = set(tfds.pairs(data, split, indices=None))
        assert len(held_out) == small_wmt14.LINES
        assert all(source.startswith(name) for source, _ in held_out)
    # The other direction is the same text, with the sides exchanged.
    reverse = small_wmt14.settings_of(
        tmp_path,
        language,
        **{"data.source_locale": language, "data.target_locale": "en"},
    ).data
    exchanged = [pair[::-1] for pair in tfds.pairs(reverse, "train", indices=None)]
    assert exchanged == train
    assert list(tfds.pairs(data, "train", indices=[7, 3])) == [train[7], train[3]]
    # A prepared corpus needs no network.
    server.asked = []
    tfds.prepare(data)
    assert server.asked == []


# Characters that other readers take for the end of a line, and empty lines.
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
    trains = []
    for name in ("ours", "theirs"):
        tfds.make_builder.cache_clear()
        data = small_wmt14.settings_of(tmp_path / name, "fr").data
        tfds.prepare(data)
        trains.append(list(tfds.pairs(data, "train", indices=None)))
        # The builder's own reader, which holds all lines.
        monkeypatch.setattr(tfds, "is_plain_text", lambda *paths: False)
    assert trains[0] == trains[1]
    # The builder leaves out a pair with an empty side.
    assert len(trains[0]) == small_wmt14.TRAINING["fr"] * (len(ODD) - 1)


@pytest.mark.usefixtures("no_checksums")
def test_records_that_do_not_fit_into_memory_are_the_same(
    server: archives.Server, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A thousand files, each with a share of the records, are open at once.
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    trains = []
    for max_bytes in (shuffle.MAX_MEM_BUFFER_SIZE, 1000):
        monkeypatch.setattr(shuffle, "MAX_MEM_BUFFER_SIZE", max_bytes)
        tfds.make_builder.cache_clear()
        data = small_wmt14.settings_of(tmp_path / str(max_bytes)).data
        resource.setrlimit(resource.RLIMIT_NOFILE, (100, limits[1]))
        try:
            tfds.prepare(data)
            assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] == 100
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, limits)
        trains.append(list(tfds.pairs(data, "train", indices=None)))
    assert trains[0] == trains[1]


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


# Forks a new interpreter for each WORK=DIRECTORY. A fork of the process of the tests
# would lack the threads with which tensorflow-datasets downloads.
KILLED = """
import os, pathlib, sys
from tests import wmt14
from tests.data import small_wmt14
from vaswani_jax.data import tfds
with wmt14.without_checksums():
    for argument in sys.argv[1:]:
        work, _, directory = argument.partition("=")
        if not (process := os.fork()):
            module, _, function = work.partition(".")
            setattr(getattr(tfds, module), function, lambda *_, **__: os._exit(9))
            tfds.prepare(small_wmt14.settings_of(pathlib.Path(directory)).data)
            sys.exit()
        _, status = os.waitpid(process, 0)
        assert os.waitstatus_to_exitcode(status) == 9, work
"""
WORKS = ("tqdm.tqdm", "shutil.copyfileobj")


@pytest.fixture(scope="module")
def directories(tmp_path_factory: pytest.TempPathFactory) -> dict[str, pathlib.Path]:
    """Return the directory of each preparation that was killed before it cleaned up.

    One was killed while it converted, one while it extracted.
    """
    directories = {work: tmp_path_factory.mktemp("killed") for work in WORKS}
    arguments = [f"{work}={directory}" for work, directory in directories.items()]
    with archives.serving(small_wmt14.archive):
        interpreter.output_of(KILLED, *arguments)
    return directories


@pytest.mark.usefixtures("no_checksums")
@pytest.mark.parametrize("work", WORKS)
def test_a_preparation_that_was_killed_leaves_nothing_behind(
    server: archives.Server, directories: dict[str, pathlib.Path], work: str
) -> None:
    directory = directories[work]
    assert list(directory.rglob("incomplete.*"))
    data = small_wmt14.settings_of(directory).data
    tfds.prepare(data)
    assert tfds.count(data, "train") == small_wmt14.training_pairs("de")
    assert not list(directory.rglob("incomplete.*"))


def test_an_archive_that_is_not_wmt14s_is_refused(
    server: archives.Server, tmp_path: pathlib.Path
) -> None:
    with pytest.raises(ValueError, match=r"(?s)NonMatchingChecksumError.*may be put"):
        tfds.prepare(small_wmt14.settings_of(tmp_path).data)


@pytest.mark.usefixtures("no_checksums")
def test_errors_of_other_kinds_do_not_mention_the_network(
    server: archives.Server, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = small_wmt14.settings_of(tmp_path).data
    # The archives are downloaded and extracted once.
    for error, raised, message in (
        (OSError(errno.ENOSPC, "No space left on device"), OSError, "No space left"),
        (OSError(errno.EACCES, "Not permitted"), ValueError, "Not permitted$"),
        (ValueError("differ in their numbers"), ValueError, "differ in their numbers$"),
    ):
        fail = mock.Mock(side_effect=error)
        monkeypatch.setattr(tfds, "tqdm", types.SimpleNamespace(tqdm=fail))
        tfds.make_builder.cache_clear()
        with pytest.raises(raised, match=message):
            tfds.prepare(data)
        assert fail.called


@pytest.mark.parametrize("language", ["de", "fr"])
def test_archives_put_there_by_hand_are_compared_and_not_downloaded(
    server: archives.Server, tmp_path: pathlib.Path, language: str
) -> None:
    by_hand = tmp_path / "downloads" / "manual"
    by_hand.mkdir(parents=True)
    # A pair needs only some of the archives.
    for name in archives.ARCHIVES:
        if (archive := small_wmt14.archive(name)) is not None:
            (by_hand / name).write_bytes(archive.read())
    with pytest.raises(ValueError, match=f"NonMatchingChecksumError.*\n?.*{by_hand}"):
        tfds.prepare(small_wmt14.settings_of(tmp_path, language).data)
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
        data = prepared.open_or_prepare(
            small,
            tmp_path / "data",
            rebuild=False,
        )
    assert data.counts["train"]["kept"] == small_wmt14.training_pairs("de")
    assert sum("downloading" in text for text in caplog.messages) == 1
    assert len(data.text("test")[0]) == small_wmt14.LINES
    program = (
        "import sys, tensorflow_datasets.translate.wmt14; "
        "import tensorflow_datasets as tfds; "
        f"b = tfds.builder('wmt14_translate/de-en', data_dir={str(tmp_path / 'tfds')!r}"
        ", file_format='array_record'); next(iter(b.as_data_source('train'))); "
        "print('tensorflow' in sys.modules)"
    )
    assert interpreter.output_of(program).split()[-1] == "False"


@pytest.mark.usefixtures("no_checksums")
def test_prepared_data_serves_where_the_corpus_is_missing(
    server: archives.Server, tmp_path: pathlib.Path, caplog: pytest.LogCaptureFixture
) -> None:
    first = prepared.open_or_prepare(
        small_wmt14.settings_of(tmp_path / "here"), tmp_path / "data", rebuild=False
    )
    elsewhere = small_wmt14.settings_of(tmp_path / "elsewhere")
    server.asked = []
    data = prepared.open_or_prepare(elsewhere, tmp_path / "data", rebuild=False)
    assert data.counts == first.counts and server.asked == []
    assert "config.data.source=tfds:wmt14_translate/de-en: no prepared" in caplog.text
    with pytest.raises(FileNotFoundError, match=f"no prepared corpus in {tmp_path}"):
        tfds.count(elsewhere.data, "train")
    # To prepare again, the text of the checkpoints is downloaded and compared.
    rebuilt = prepared.open_or_prepare(
        elsewhere,
        tmp_path / "data",
        rebuild=True,
        required_fingerprint=lambda: first.vocabulary.fingerprint,
    )
    assert rebuilt.counts == first.counts and server.asked


@pytest.mark.usefixtures("no_checksums")
def test_a_process_that_waited_reads_what_another_one_has_prepared(
    server: archives.Server, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = small_wmt14.settings_of(tmp_path / "tfds").data
    (tmp_path / "members").mkdir()

    @contextlib.contextmanager
    def wait(_: pathlib.Path) -> Iterator[None]:
        other = tfds.make_builder.__wrapped__(data.source, data.tfds_directory)
        with tfds.without_tensorflow(tmp_path / "members"):
            other.download_and_prepare()
        yield

    monkeypatch.setattr(tfds.files, "locked", wait)
    tfds.prepare(data)
    assert tfds.count(data, "train") == small_wmt14.training_pairs("de")
