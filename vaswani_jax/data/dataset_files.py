"""Section 5.1: how tensorflow-datasets reads archives and parallel text here.

Deviations: its own extraction and the files to which it spills over a gigabyte of
records ask for TensorFlow's file system, and both the extraction and its reader of
parallel text hold whole files in memory, which for the 36 million pairs of
French-English is over 10 GB. These stand in for them while a corpus is prepared.
"""

import contextlib
import gzip
import itertools
import os
import pathlib
import resource
import shutil
import tempfile
import types
from collections.abc import Callable, Iterator
from typing import Any

from etils import epath

from vaswani_jax.data import progress


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
