"""Download and read corpora of tensorflow-datasets (WMT14), without TensorFlow.

A corpus is named `tfds:DATASET/PAIR`. The pair has the name that tensorflow-datasets
gives it, whatever the direction of the translation. Downloaded archives and record
files stay in its directory, so that a second preparation needs no network.
"""

import contextlib
import errno
import functools
import gzip
import importlib
import itertools
import logging
import os
import pathlib
import shutil
import tempfile
import types
from collections.abc import Iterator, Sequence
from typing import Any

import tqdm
from etils import epath

from vaswani_jax.core import config, errors, files
from vaswani_jax.data import arrow_files

logger = logging.getLogger(__name__)
PREFIX = "tfds:"
SPLITS = {"train": "train", "valid": "validation", "test": "test"}
CHUNK = 10_000
# How tensorflow-datasets begins the names of unfinished files.
UNFINISHED = "incomplete."
Pairs = Iterator[tuple[str, str]]


def prepare(data: config.DataConfig) -> None:
    """Download and convert a corpus, unless that is done.

    After an interruption, whole archives are not downloaded again. An interrupted
    conversion starts again.

    Raises:
        ValueError: tensorflow-datasets has no such corpus, or it cannot be downloaded
            or converted. If the download fails, the message says where archives may
            be put by hand.
        OSError: The disk is full.
    """
    builder = _builder(data)
    directory = pathlib.Path(builder.data_dir)
    archives = pathlib.Path(data.tfds_directory or builder._data_dir_root)
    was_prepared = builder.is_prepared()
    # Corpora share archives, so only one process may prepare any of them.
    with files.locked(archives / "downloads"):
        if builder.is_prepared():
            if not (was_prepared and builder.info.splits):
                # Another process has prepared it; this builder knows no splits of it.
                make_builder.cache_clear()
            return
        logger.info(f"downloading and converting {data.source} into {directory}")
        _remove_unfinished(archives)
        _remove_unfinished(archives / "downloads" / "extracted")
        _remove_unfinished(directory.parent)
        try:
            with (
                tempfile.TemporaryDirectory(prefix=UNFINISHED, dir=archives) as members,
                without_tensorflow(pathlib.Path(members)),
            ):
                builder.download_and_prepare()
        except Exception as error:
            if isinstance(error, OSError) and error.errno == errno.ENOSPC:
                raise
            message = (
                f"config.data.source={data.source} could not be prepared: "
                f"{type(error).__name__}: {error}"
            )
            if _is_download_error(error):
                message += (
                    ". Without a network, archives whose checksums tensorflow-datasets "
                    f"has may be put into {archives / 'downloads' / 'manual'}"
                )
            raise ValueError(message) from error


def _is_download_error(error: Exception) -> bool:
    from tensorflow_datasets.core.download import download_manager, util

    if isinstance(error, OSError):  # Errors of the disk have a number.
        return error.errno is None
    return isinstance(
        error, (util.DownloadError, download_manager.NonMatchingChecksumError)
    )


def _remove_unfinished(directory: pathlib.Path) -> None:
    """Remove what an interrupted preparation left: gigabytes that nothing uses."""
    for path in directory.glob(f"{UNFINISHED}*"):
        shutil.rmtree(path, ignore_errors=True)


def count(data: config.DataConfig, split: str) -> int:
    """Return the number of pairs of a split of a prepared corpus."""
    return int(_split(data, split).num_examples)


def pairs(
    data: config.DataConfig, split: str, *, indices: Sequence[int] | None
) -> Pairs:
    """Yield (source, target) lines of a split of a prepared corpus.

    Args:
        data: The corpus, and which of its two languages is the source.
        split: "train", "valid" or "test".
        indices: Which pairs to read; None for all.
    """
    _split(data, split)
    records = _builder(data).as_data_source(split=SPLITS[split])
    remaining = iter(range(len(records)) if indices is None else indices)
    while chunk := list(itertools.islice(remaining, CHUNK)):
        for record in records.__getitems__(chunk):
            source, target = (
                arrow_files.one_line(record[locale].decode("utf-8"))
                for locale in (data.source_locale, data.target_locale)
            )
            yield source, target


def record(data: config.DataConfig, split: str) -> dict[str, Any]:
    """Return what identifies a split: its corpus with version, and its size."""
    split_info = _split(data, split)
    return {
        "generator": data.source,
        "version": str(_builder(data).version),
        "pairs": int(split_info.num_examples),
        "bytes": int(split_info.num_bytes),
    }


def _split(data: config.DataConfig, split: str) -> Any:
    builder = _builder(data)
    if not builder.is_prepared():
        raise FileNotFoundError(
            f"config.data.source={data.source}: no prepared corpus in "
            f"{builder.data_dir}"
        )
    splits = builder.info.splits
    if SPLITS[split] not in splits:
        raise ValueError(
            f"config.data.source={data.source} has no split {SPLITS[split]!r}; it has "
            f"{', '.join(splits)}"
        )
    return splits[SPLITS[split]]


@functools.lru_cache(maxsize=1)
def make_builder(source: str, directory: str) -> Any:
    """Return the builder of tensorflow-datasets for a corpus.

    Raises:
        ValueError: There is no such corpus.
    """
    # Imported late: it takes a second that other sources need not wait for.
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
        reason = errors.first_line(error)
        raise ValueError(
            f"config.data.source={source}: no such corpus of tensorflow-datasets "
            f"({reason}; a pair has one name for both directions, such as de-en)"
        ) from None


def _builder(data: config.DataConfig) -> Any:
    return make_builder(data.source, data.tfds_directory)


# tensorflow-datasets reads a prepared corpus without TensorFlow, but its only way to
# prepare one (`download_and_prepare`) imports TensorFlow to open files, and holds whole
# files of WMT14 in memory. It offers no hook for either, so five of its private names
# are replaced while it runs. pyproject.toml therefore admits one minor version of it.
@contextlib.contextmanager
def without_tensorflow(directory: pathlib.Path) -> Iterator[None]:
    """Let tensorflow-datasets prepare a corpus without TensorFlow, line by line.

    Args:
        directory: An empty directory for members of archives, on the file system of
            the corpus.
    """
    from tensorflow_datasets.core import shuffle
    from tensorflow_datasets.core.download import extractor
    from tensorflow_datasets.translate import wmt

    iter_archive = extractor.iter_archive
    parse_sentences = wmt._parse_parallel_sentences

    def iter_members(path: Any, method: Any) -> Iterator[tuple[str, _Member]]:
        for name, handle in iter_archive(path, method):
            yield name, _Member(handle, directory)

    def parse_lines(first: str, second: str) -> Iterator[tuple[str, dict[str, str]]]:
        parse = _parse_plain if is_plain_text(first, second) else parse_sentences
        return parse(first, second)

    gfile = types.SimpleNamespace(
        GFile=lambda path, mode: epath.Path(path).open(mode),
        exists=os.path.exists,
        remove=os.remove,
    )
    tensorflow = types.SimpleNamespace(
        io=types.SimpleNamespace(gfile=gfile),
        compat=types.SimpleNamespace(as_text=os.fspath),
        # No error is one of too many open files: `_more_open_files` admits them.
        errors=types.SimpleNamespace(ResourceExhaustedError=()),
    )
    with contextlib.ExitStack() as stack:
        stack.enter_context(_more_open_files(shuffle.BUCKETS_NUMBER))
        for module, name, replacement in (
            (extractor, "tf", tensorflow),
            (shuffle, "tf", tensorflow),
            (extractor, "iter_archive", iter_members),
            (extractor, "_copy", os.replace),
            (wmt, "_parse_parallel_sentences", parse_lines),
        ):
            stack.callback(setattr, module, name, getattr(module, name))
            setattr(module, name, replacement)
        yield


@contextlib.contextmanager
def _more_open_files(count: int) -> Iterator[None]:
    """Raise the limit of open files of this process, where it has one."""
    try:
        import resource
    except ImportError:  # Windows
        yield
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = soft + count
    if hard != resource.RLIM_INFINITY:
        limit = max(soft, min(limit, hard))
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


class _Member:
    """A file of an archive, which `read` copies to the disk instead of to memory."""

    def __init__(self, handle: Any, directory: pathlib.Path) -> None:
        self._handle, self._directory = handle, directory

    def read(self) -> str:
        """Return the path of a copy, which `os.replace` then moves to its place."""
        with tempfile.NamedTemporaryFile(dir=self._directory, delete=False) as file:
            shutil.copyfileobj(self._handle, file, 1 << 20)
        return file.name


def is_plain_text(*paths: str) -> bool:
    """Return True for files with one sentence a line, which can be read in parts."""
    return not any(path.endswith((".sgm", ".txt")) or "*" in path for path in paths)


def _parse_plain(first: str, second: str) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield the records that tensorflow-datasets' own reader makes, one at a time."""
    names = (path.removesuffix(".gz") for path in (first, second))
    languages = [name.rpartition(".")[2] for name in names]
    size = os.path.getsize(first)
    logger.info(f"converting {pathlib.Path(first).name}, {size:,} bytes")
    # None disables the bar where there is no terminal.
    disable = None if logger.isEnabledFor(logging.INFO) else True
    with tqdm.tqdm(total=size, unit="B", unit_scale=True, disable=disable) as bar:
        sides = itertools.zip_longest(_lines(first, bar), _lines(second, None))
        for index, pair in enumerate(sides):
            if None in pair:
                raise ValueError(
                    f"{first} and {second} differ in their numbers of lines"
                )
            yield f"0/{index}", dict(zip(languages, pair, strict=True))


def _lines(path: str, bar: Any | None) -> Iterator[str]:
    """Yield the lines of a file, and move the bar by the bytes that were read."""
    with contextlib.ExitStack() as stack:
        raw = stack.enter_context(epath.Path(path).open("rb"))
        file = stack.enter_context(gzip.open(raw)) if path.endswith(".gz") else raw
        for line in file:
            if bar is not None:
                bar.update(raw.tell() - bar.n)
            yield line.decode("utf-8").removesuffix("\n")
