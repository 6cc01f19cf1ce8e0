"""Section 5.1: corpora of tensorflow-datasets (WMT14), without TensorFlow.

A corpus is named `tfds:DATASET/SOURCE-TARGET`, the pair as tensorflow-datasets names it
whatever the direction of the translation. Downloaded archives and their record files
stay in its own directory, so that later preparations need no network.
"""

import contextlib
import errno
import functools
import gzip
import importlib
import itertools
import os
import pathlib
import resource
import shutil
import tempfile
import types
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from etils import epath

from vaswani_jax.core import config, files
from vaswani_jax.data import progress

PREFIX = "tfds:"
SPLITS = {"train": "train", "valid": "validation", "test": "test"}
CHUNK = 10_000
UNFINISHED = "incomplete."  # as tensorflow-datasets names what it has not finished
Pairs = Iterator[tuple[str, str]]


def prepare(data: config.DataConfig, *, log: Callable[[str], None]) -> None:
    """Download and convert the corpus, unless that is done.

    An interrupted download goes on with the archives that are whole; an interrupted
    conversion starts again.

    Raises:
        ValueError: tensorflow-datasets has no such corpus, or it cannot be had or
            converted; if it cannot be had, the message says where archives may be put
            by hand.
        OSError: The disk is full.
    """
    builder = _builder(data)
    directory = pathlib.Path(builder.data_dir)
    archives = pathlib.Path(data.tfds_directory or builder._data_dir_root)
    # Corpora share archives, so that one is prepared at a time.
    with files.locked(archives / "downloads"):
        if builder.is_prepared():
            return
        log(f"downloading and converting {data.source} into {directory}")
        _remove_unfinished(archives)
        _remove_unfinished(archives / "downloads" / "extracted")
        _remove_unfinished(directory.parent)
        try:
            with (
                tempfile.TemporaryDirectory(prefix=UNFINISHED, dir=archives) as members,
                streaming(pathlib.Path(members), log),
            ):
                builder.download_and_prepare()
        except Exception as error:
            if isinstance(error, OSError) and error.errno == errno.ENOSPC:
                raise
            told = (
                f"config.data.source={data.source} could not be prepared: "
                f"{type(error).__name__}: {error}"
            )
            if _is_of_download(error):
                told += (
                    ". Without a network, archives whose checksums tensorflow-datasets "
                    f"has may be put into {archives / 'downloads' / 'manual'}"
                )
            raise ValueError(told) from error


def _is_of_download(error: Exception) -> bool:
    from tensorflow_datasets.core.download import download_manager, util

    if isinstance(error, OSError):  # The disk's has a number, that of requests none.
        return error.errno is None
    refused = (util.DownloadError, download_manager.NonMatchingChecksumError)
    return isinstance(error, refused)


def _remove_unfinished(directory: pathlib.Path) -> None:
    """What an interrupted preparation left: gigabytes that nothing would use."""
    for path in directory.glob(f"{UNFINISHED}*"):
        shutil.rmtree(path, ignore_errors=True)


def count(data: config.DataConfig, split: str) -> int:
    """Pairs of a split, of a corpus that is prepared."""
    return int(_split(data, split).num_examples)


def pairs(
    data: config.DataConfig, split: str, *, chosen: Sequence[int] | None
) -> Pairs:
    """The (source, target) lines of a split, of a corpus that is prepared.

    Args:
        data: Which corpus, and which of its two languages is the source.
        split: "train", "valid" or "test".
        chosen: The pairs wanted, or None for all.
    """
    _split(data, split)
    records = _builder(data).as_data_source(split=SPLITS[split])
    wanted = iter(range(len(records)) if chosen is None else chosen)
    while indices := list(itertools.islice(wanted, CHUNK)):
        for record in records.__getitems__(indices):
            yield _line(record[data.source_locale]), _line(record[data.target_locale])


def record(data: config.DataConfig, split: str) -> dict[str, Any]:
    """What identifies the text of a split: the corpus, its version and its size."""
    builder = _builder(data)
    found = _split(data, split)
    return {
        "generator": data.source,
        "version": str(builder.version),
        "pairs": int(found.num_examples),
        "bytes": int(found.num_bytes),
    }


def _line(text: bytes) -> str:
    """One line, as a text file would hold it."""
    return text.decode("utf-8").replace("\n", " ").removesuffix("\r")


def _split(data: config.DataConfig, split: str) -> Any:
    found = _builder(data).info.splits
    if SPLITS[split] not in found:
        raise ValueError(
            f"config.data.source={data.source} has no split {SPLITS[split]!r}; it has "
            f"{', '.join(found) or 'none: prepare it first'}"
        )
    return found[SPLITS[split]]


@functools.lru_cache(maxsize=1)
def _builder_of(source: str, directory: str) -> Any:
    # Here, since the import takes a second that other sources need not wait for.
    import tensorflow_datasets

    name = source.removeprefix(PREFIX)
    module = name.partition("/")[0].removesuffix("_translate")
    try:
        # Without TensorFlow a corpus is known once its module is imported.
        importlib.import_module(f"tensorflow_datasets.translate.{module}")
        return tensorflow_datasets.builder(
            name, data_dir=directory or None, file_format="array_record"
        )
    except Exception as error:
        reason = str(error).splitlines()[0]
        raise ValueError(
            f"config.data.source={source}: no such corpus of tensorflow-datasets "
            f"({reason}; a pair has one name for both directions, as de-en)"
        ) from None


def _builder(data: config.DataConfig) -> Any:
    return _builder_of(data.source, data.tfds_directory)


@contextlib.contextmanager
def streaming(directory: pathlib.Path, log: Callable[[str], None]) -> Iterator[None]:
    """tensorflow-datasets extracts by files in `directory` and reads line by line.

    Args:
        directory: On the file system of its data; not of its own.
        log: Is told now and then how far a file is converted.
    """
    from tensorflow_datasets.core import shuffle
    from tensorflow_datasets.core.download import extractor
    from tensorflow_datasets.translate import wmt

    iter_archive, reader = extractor.iter_archive, wmt._parse_parallel_sentences

    def members(path: Any, method: Any) -> Iterator[tuple[str, _Member]]:
        for name, handle in iter_archive(path, method):
            yield name, _Member(handle, directory)

    def pairs(first: str, second: str) -> Iterator[tuple[str, dict[str, str]]]:
        if all(map(_is_plain, (first, second))):
            return _pairs(first, second, log)
        return reader(first, second)

    gfile = types.SimpleNamespace(
        GFile=lambda path, mode: epath.Path(path).open(mode),
        exists=os.path.exists,
        remove=os.remove,
    )
    stand_in = types.SimpleNamespace(
        io=types.SimpleNamespace(gfile=gfile),
        compat=types.SimpleNamespace(as_text=os.fspath),
        # Of too many open files, of which there is room for all here.
        errors=types.SimpleNamespace(ResourceExhaustedError=()),
    )
    with contextlib.ExitStack() as stack:
        stack.enter_context(_open_files(shuffle.BUCKETS_NUMBER))
        for module, name, value in (
            (extractor, "tf", stand_in),
            (shuffle, "tf", stand_in),
            (extractor, "iter_archive", members),
            (extractor, "_copy", os.replace),
            (wmt, "_parse_parallel_sentences", pairs),
        ):
            stack.callback(setattr, module, name, getattr(module, name))
            setattr(module, name, value)
        yield


@contextlib.contextmanager
def _open_files(more: int) -> Iterator[None]:
    """So many more files may be open than the process is usually allowed."""
    before, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = before + more
    if most != resource.RLIM_INFINITY:
        wanted = max(before, min(wanted, most))
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, most))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (before, most))


class _Member:
    """A file of an archive that is read to the disk, not to memory."""

    def __init__(self, handle: Any, directory: pathlib.Path) -> None:
        self._handle, self._directory = handle, directory

    def read(self) -> str:
        """Where its content lies, which `os.replace` then moves to its place."""
        with tempfile.NamedTemporaryFile(dir=self._directory, delete=False) as file:
            shutil.copyfileobj(self._handle, file, 1 << 20)
        return file.name


def _is_plain(path: str) -> bool:
    return not path.endswith((".sgm", ".txt")) and "*" not in path


def _pairs(
    first: str, second: str, log: Callable[[str], None]
) -> Iterator[tuple[str, dict[str, str]]]:
    """The records of tensorflow-datasets' own reader, one at a time."""
    names = (path.removesuffix(".gz") for path in (first, second))
    languages = [name.rpartition(".")[2] for name in names]
    sides = itertools.zip_longest(_lines(first, log), _lines(second, None))
    for index, pair in enumerate(sides):
        if None in pair:
            raise ValueError(f"{first} and {second} differ in their numbers of lines")
        yield f"0/{index}", dict(zip(languages, pair, strict=True))


def _lines(path: str, log: Callable[[str], None] | None) -> Iterator[str]:
    with contextlib.ExitStack() as stack:
        raw = stack.enter_context(epath.Path(path).open("rb"))
        file = stack.enter_context(gzip.open(raw)) if path.endswith(".gz") else raw
        meter = log and progress.Meter(
            f"converting {pathlib.Path(path).name}",
            total=os.path.getsize(path),
            unit="bytes",
            log=log,
        )
        for line in file:
            if meter:
                meter.done(raw.tell())
            yield line.decode("utf-8").removesuffix("\n")
