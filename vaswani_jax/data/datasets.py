"""Section 5.1: corpora of tensorflow-datasets (WMT14), without TensorFlow.

A corpus is named `tfds:DATASET/SOURCE-TARGET`, the pair as tensorflow-datasets names it
whatever the direction of the translation. Downloaded archives and their record files
stay in its own directory, so that later preparations need no network.
"""

import errno
import functools
import importlib
import itertools
import pathlib
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from vaswani_jax.core import config
from vaswani_jax.data import dataset_files, directories

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
    with directories.locked(archives / "downloads"):
        if builder.is_prepared():
            return
        log(f"downloading and converting {data.source} into {directory}")
        _remove_unfinished(archives)
        _remove_unfinished(archives / "downloads" / "extracted")
        _remove_unfinished(directory.parent)
        try:
            with (
                tempfile.TemporaryDirectory(prefix=UNFINISHED, dir=archives) as members,
                dataset_files.streaming(pathlib.Path(members), log),
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
