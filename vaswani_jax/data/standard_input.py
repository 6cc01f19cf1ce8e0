"""Copy standard input to a file: text is read several times, and a pipe only once."""

import contextlib
import dataclasses
import logging
import pathlib
import shutil
import sys
import tempfile
from collections.abc import Iterator
from typing import Any

from vaswani_jax.core import config, corpora
from vaswani_jax.data import columns

logger = logging.getLogger(__name__)


@contextlib.contextmanager
def copied(
    data: config.DataConfig, directory: pathlib.Path
) -> Iterator[config.DataConfig]:
    """Yield settings with a copy of standard input in place of -, if they name it.

    Args:
        data: Settings whose text may be - (lines), -#2 (a column of tab-separated
            lines), or -#KEY (JSON lines).
        directory: Where the data will be prepared. The copy lies beside it until the
            context ends.

    Raises:
        ValueError: Two texts name standard input, or columns of different kinds.
        FileNotFoundError: Standard input is closed.
    """
    texts = {
        text: names
        for text, names in _names(data).items()
        if any(map(columns.is_standard_input, names))
    }
    if data.source != "text" or not texts:
        yield data
        return
    if len(texts) > 1:
        raise ValueError(
            f"standard input must be one text, got that of {' and '.join(texts)}: "
            "write it to a file"
        )
    if sys.stdin is None:
        raise FileNotFoundError("standard input is closed: name files")
    [names] = texts.values()
    file_name = _file_name(tuple(filter(columns.is_standard_input, names)))
    directory.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(
        dir=directory.parent.absolute(), prefix=f".{directory.name}.vaswani_jax_"
    ) as folder:
        path = pathlib.Path(folder, file_name)
        logger.info("reading standard input")
        with open(path, "wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file)
        logger.info(f"read standard input: {path.stat().st_size:,} bytes")
        yield _with_copy(data, path)


def _names(data: config.DataConfig) -> dict[str, tuple[str, str]]:
    """Return the source and the target of every text, by what to call it in errors."""
    names = {
        f"config.data.{split}_source": (
            getattr(data, f"{split}_source"),
            getattr(data, f"{split}_target"),
        )
        for split in ("train", "valid", "test")
    }
    return names | {
        f"corpus {corpus.name!r}": (corpus.source, corpus.target)
        for corpus in data.training_corpora
    }


def _file_name(names: tuple[str, ...]) -> str:
    """Return the name of the copy, which says what kind of columns it has.

    Raises:
        ValueError: The columns are of different kinds.
    """
    endings = set()
    for name in names:
        _, column = columns.split_name(name)
        endings.add("" if not column else ".tsv" if column.isdecimal() else ".jsonl")
    if len(endings) > 1:
        raise ValueError(
            "standard input has lines (-), tab-separated columns (-#2) or JSON lines "
            f"(-#KEY), got {' and '.join(names)}"
        )
    return f"standard_input{endings.pop()}"


def _with_copy(data: config.DataConfig, path: pathlib.Path) -> config.DataConfig:
    """Return settings that name a file in place of -."""

    def copy_of(name: str) -> str:
        is_copied = columns.is_standard_input(name)
        return f"{path}{name.removeprefix('-')}" if is_copied else name

    names: dict[str, Any] = {
        f"{split}_{side}": copy_of(getattr(data, f"{split}_{side}"))
        for split in ("train", "valid", "test")
        for side in ("source", "target")
    }
    mixed = [
        dataclasses.replace(
            corpus, source=copy_of(corpus.source), target=copy_of(corpus.target)
        )
        for corpus in data.training_corpora
    ]
    return dataclasses.replace(data, corpora=corpora.corpora_text(mixed), **names)
