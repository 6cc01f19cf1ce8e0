"""Copy standard input to a file, as text is read several times and a pipe only once."""

import contextlib
import dataclasses
import glob
import logging
import pathlib
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator
from typing import Any

from vaswani_jax.core import config, data_rules, files
from vaswani_jax.data import columns

logger = logging.getLogger(__name__)
KEYS = tuple(
    f"{split}_{side}"
    for split in ("train", "valid", "test")
    for side in ("source", "target")
)


@contextlib.contextmanager
def copy_to_file(
    data: config.DataConfig, directory: pathlib.Path
) -> Iterator[config.DataConfig]:
    """Yield settings with a copy of standard input in place of -, if they name it.

    Errors of the context name standard input in place of the copy.

    Args:
        data: Settings whose text may be - (lines), -#2 (a column of tab-separated
            lines), or -#KEY (JSON lines).
        directory: Where the data will be prepared. The copy lies beside it until the
            context ends.

    Raises:
        ValueError: Two splits name standard input, or columns of different kinds, or
            corpora replace the text that names it.
        FileNotFoundError: Standard input is closed.
    """
    names = {
        key: name
        for key in KEYS
        if columns.is_standard_input(name := str(getattr(data, key)))
    }
    if data.source != "text" or not names:
        yield data
        return
    data_rules.check_training_files(data, [f"data.{key}" for key in names])
    splits = dict.fromkeys(key.partition("_")[0] for key in names)
    if len(splits) > 1:
        raise ValueError(
            "standard input must be the text of one split, got "
            f"{' and '.join(splits)}: write it to a file"
        )
    if sys.stdin is None:
        raise FileNotFoundError("standard input is closed: name files")
    file_name = _file_name(names.values())
    directory.parent.mkdir(parents=True, exist_ok=True)
    with _copy_folder(directory) as folder:
        path = folder / file_name
        logger.info("reading standard input")
        with open(path, "wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file)
        logger.info(f"read standard input: {path.stat().st_size:,} bytes")
        copies: dict[str, Any] = {
            key: f"{path}{name.removeprefix('-')}" for key, name in names.items()
        }
        try:
            yield dataclasses.replace(data, **copies)
        except (ValueError, FileNotFoundError) as error:
            message = str(error)
            if str(path) not in message:
                raise
            # Advice has the name alone, as in standard_input.tsv#2.
            message = message.replace(str(path), "standard input")
            raise type(error)(message.replace(f"{path.name}#", "-#")) from None


@contextlib.contextmanager
def _copy_folder(directory: pathlib.Path) -> Iterator[pathlib.Path]:
    """Yield a new folder beside a directory, and remove those of killed programs.

    A program locks its folder while it runs. Where there are no locks, all stay.
    """
    parent = directory.parent.absolute()
    prefix = f".{directory.name}.vaswani_jax_input_"
    with contextlib.ExitStack() as stack:
        with files.locked(parent / f"{directory.name}.input"):
            folder = pathlib.Path(
                stack.enter_context(
                    tempfile.TemporaryDirectory(dir=parent, prefix=prefix)
                )
            )
            stack.enter_context(files.held(folder))
            has_locks = files.is_held(folder)
            for path in parent.glob(f"{glob.escape(prefix)}*"):
                if has_locks and not files.is_held(path):
                    shutil.rmtree(path, ignore_errors=True)
        yield folder


def _file_name(names: Iterable[str]) -> str:
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
