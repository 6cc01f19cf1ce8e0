"""Read lines as they arrive, write them as they are done, few at a time in memory."""

import io
import itertools
import logging
import os
import pathlib
import queue
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping

import tqdm

from vaswani_jax.core import paths, plurals
from vaswani_jax.data import text_files

# Lines that are sorted by length together, and written before the next are begun.
BLOCK_LINES = 1024

logger = logging.getLogger(__name__)


def count_input(name: str, aligned_files: Mapping[str, str | None]) -> int | None:
    """Return the number of lines of the input, after reading and checking all files.

    Args:
        name: The input, "-" for standard input.
        aligned_files: By their flags, files with a line for each of its lines.

    Returns:
        None for standard input and for a pipe, which cannot be read twice.

    Raises:
        FileNotFoundError: There is no such file.
        IsADirectoryError: A name is that of a directory.
        ValueError: A file cannot be read, or has another number of lines.
    """
    total = count_lines(name, flag="--input")
    for flag, file in aligned_files.items():
        if file == "-":
            raise ValueError(f"{flag}=-: standard input is for --input; name a file")
        count = count_lines(file, flag=flag) if file else None
        if total is not None and count not in (None, total):
            raise ValueError(
                f"{flag}={file} has {count:,} lines, --input={name} {total:,}: each "
                "input line needs one"
            )
    return total


def count_lines(name: str, *, flag: str) -> int | None:
    """Return the number of lines of a file, all of which are read and checked.

    Args:
        name: The file, "-" for standard input.
        flag: The flag that named it, for error messages.

    Returns:
        None for standard input and for a pipe, which cannot be read twice.

    Raises:
        FileNotFoundError: There is no such file.
        IsADirectoryError: It is a directory.
        ValueError: A line is not UTF-8, or a compressed file is damaged.
    """
    if name == "-":
        if sys.stdin is None:
            raise FileNotFoundError(f"{flag}=-: standard input is closed")
        return None
    path = paths.check_readable(name, flag=flag)
    if not path.is_file():
        return None
    return sum(1 for _ in text_files.read_lines(path))


def read_blocks(name: str) -> Iterator[list[str]]:
    """Yield the lines of a file, or of standard input ("-"), many at a time.

    A line on a pipe does not wait for later ones; a terminal shows a prompt for each.
    """
    if name != "-":
        lines = text_files.read_lines(pathlib.Path(name))
        while block := list(itertools.islice(lines, BLOCK_LINES)):
            yield block
    elif sys.stdin.isatty():
        for line in text_files.decode_lines(_prompted_lines(), name="standard input"):
            yield [line]
    else:
        yield from _available_blocks(
            text_files.decode_lines(_piped_lines(), name="standard input")
        )


def _prompted_lines() -> Iterator[bytes]:
    """Yield lines of the terminal, each after a prompt, until the input ends."""
    while True:
        sys.stderr.write("> ")
        sys.stderr.flush()
        line = sys.stdin.buffer.readline()
        if not line:
            sys.stderr.write("\n")
            return
        yield line


def _piped_lines() -> Iterator[bytes]:
    """Yield lines of standard input, read without its lock.

    A program that ends in the meantime needs that lock.
    """
    unfinished = b""
    while part := os.read(sys.stdin.fileno(), 1 << 16):
        *lines, unfinished = (unfinished + part).split(b"\n")
        yield from (line + b"\n" for line in lines)
    if unfinished:
        yield unfinished


def _available_blocks(lines: Iterator[str]) -> Iterator[list[str]]:
    """Yield at least one line each time, and all that have arrived by then."""
    arrived: queue.Queue[str | Exception | None] = queue.Queue(BLOCK_LINES)

    def read() -> None:
        try:
            for line in lines:
                arrived.put(line)
            arrived.put(None)
        except (ValueError, OSError) as error:
            arrived.put(error)

    threading.Thread(target=read, daemon=True).start()
    while True:
        block: list[str] = []
        line = arrived.get()
        while isinstance(line, str):
            block.append(line)
            if len(block) == BLOCK_LINES or arrived.empty():
                break
            line = arrived.get()
        if block:
            yield block
        if isinstance(line, Exception):
            raise line
        if line is None:
            return


def zip_blocks(
    blocks: Iterable[list[str]], *names: str
) -> Iterator[tuple[list[str], ...]]:
    """Yield blocks of lines, each with as many lines of each file.

    Raises:
        ValueError: A file has fewer lines, or more.
    """
    files = [text_files.read_lines(pathlib.Path(name)) for name in names]
    total = 0
    for lines in blocks:
        block = [lines]
        for name, file_lines in zip(names, files, strict=True):
            block.append(list(itertools.islice(file_lines, len(lines))))
            if (count := len(block[-1])) < len(lines):
                raise ValueError(
                    f"{name} has {total + count:,} lines, the input has more"
                )
        total += len(lines)
        yield tuple(block)
    for name, file_lines in zip(names, files, strict=True):
        if next(file_lines, None) is not None:
            raise ValueError(f"{name} has more than the {total:,} lines of the input")


def write_blocks(blocks: Iterable[list[str]], name: str, *, total: int | None) -> int:
    """Write blocks of lines as they are done; a terminal shows the progress.

    Ctrl-C leaves a file with the lines that are done, and a warning says how many.

    Args:
        blocks: What to write for each input line, of which some need several lines.
        name: The file, "-" for standard output.
        total: The number of input lines, if it is known.

    Returns:
        The number of lines that were written.

    Raises:
        ValueError: The number of input lines is not the `total`.
    """
    # None shows the bar on a terminal alone, but never among what a person types or
    # reads there.
    ends = (sys.stdin, sys.stdout)
    is_in_the_way = name == "-" and any(end and end.isatty() for end in ends)
    bar = tqdm.tqdm(total=total, unit=" lines", disable=True if is_in_the_way else None)
    num_lines = num_written = 0
    try:
        with open_output(name) as stream, bar:
            for lines in blocks:
                text = "".join(f"{line}\n" for line in lines)
                stream.write(text.encode())
                stream.flush()
                num_lines += len(lines)
                num_written += text.count("\n")
                bar.update(len(lines))
    except KeyboardInterrupt:
        if name != "-":
            input_lines = (
                plurals.format_count(num_lines, "input line")
                if total is None
                else f"{num_lines:,} of {plurals.format_count(total, 'input line')}"
            )
            logger.warning(f"interrupted: {name} has the output of {input_lines}")
        raise
    if total not in (None, num_lines):
        raise ValueError(
            f"the input had {total:,} lines when they were counted and {num_lines:,} "
            "when they were read: it has changed meanwhile"
        )
    return num_written


def check_outputs(
    inputs: Iterable[str | None], outputs: Mapping[str, str | None]
) -> None:
    """Refuse outputs that cannot be written, before work starts.

    Args:
        inputs: Files that must stay as they are.
        outputs: Files to write, by their flags.

    Raises:
        ValueError: An output is an input, too, or is named twice.
        OSError: There is no such directory, or writing there is not allowed.
    """
    if "-" in outputs.values() and sys.stdout is None:
        raise OSError("standard output is closed: name files")
    files = {_identity(name) for name in inputs if name}
    if list(outputs.values()).count("-") > 1:
        raise ValueError(f"only one of {', '.join(outputs)} can be standard output")
    for flag, name in outputs.items():
        if not name or name == "-":
            continue
        path = pathlib.Path(name).resolve()
        if path.exists() and not (path.is_file() or path.is_dir()):
            continue  # /dev/null, a pipe
        if _identity(name) in files:
            raise ValueError(
                f"{flag}: {name} is an input or another output, too: it would be "
                "overwritten"
            )
        files.add(_identity(name))
        if path.is_dir():
            raise IsADirectoryError(f"{flag}: {name} is a directory")
        if not path.parent.is_dir():
            raise FileNotFoundError(f"{flag}: there is no directory {path.parent}")
        if not os.access(path if path.exists() else path.parent, os.W_OK):
            raise PermissionError(f"{flag}: {name} may not be written")


def _identity(name: str) -> tuple[int, int] | pathlib.Path:
    """Return what all names of a file share, "-" naming standard input."""
    path = pathlib.Path(name).resolve()
    try:
        status = os.fstat(0) if name == "-" else path.stat()
    except OSError:
        return path
    return status.st_dev, status.st_ino


def open_output(name: str) -> io.BufferedIOBase:
    """Open a file to write, compressed if its name says so; "-" is stdout."""
    if name == "-":
        return open(sys.stdout.fileno(), "wb", closefd=False)
    return text_files.open_output(pathlib.Path(name))
