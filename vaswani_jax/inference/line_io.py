"""Lines in as they come and out as they are done, few of them in memory at a time."""

import gzip
import itertools
import os
import pathlib
import queue
import sys
import threading
import typing
from collections.abc import Iterable, Iterator, Mapping
from typing import IO

import tqdm

from vaswani_jax.data import sources

# Lines that are sorted by length together, and written before the next are begun.
BLOCK_LINES = 1024


def count(flag: str, name: str) -> int | None:
    """The lines of a flag's file, all of which are read and checked.

    None for "-", and for a pipe, which cannot be read twice.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: A line is not UTF-8, or a compressed file is damaged.
    """
    if name == "-":
        if sys.stdin is None:
            raise FileNotFoundError(f"{flag}=-: standard input is closed")
        return None
    path = pathlib.Path(name)
    if not path.exists() or path.is_dir():
        raise FileNotFoundError(f"{flag}: no file {name}")
    if not path.is_file():
        return None
    return sum(1 for _ in sources.lines(pathlib.Path(name)))


def same_count(name: str, others: Mapping[str, str | None]) -> int | None:
    """The lines of the input, after a look at all files; see `count`.

    Args:
        name: The input.
        others: Files with a line for each of its lines, by their flags.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: A file cannot be read, or has another number of lines.
    """
    total = count("--input", name)
    for flag, other in others.items():
        if other == "-":
            raise ValueError(f"{flag}=-: standard input is for --input; name a file")
        found = count(flag, other) if other else None
        if total is not None and found not in (None, total):
            raise ValueError(
                f"{flag}={other} has {found:,} lines, --input={name} {total:,}"
            )
    return total


def blocks(name: str) -> Iterator[list[str]]:
    """The lines of a file, or of standard input ("-"), many at a time.

    What standard input has is not kept waiting for more; on a terminal each line is
    asked for.
    """
    if name != "-":
        yield from _of(sources.lines(pathlib.Path(name)))
    elif sys.stdin.isatty():
        for line in sources.decoded(_asked(), name="standard input"):
            yield [line]
    else:
        yield from _as_they_come(sources.decoded(_piped(), name="standard input"))


def _of(lines: Iterable[str]) -> Iterator[list[str]]:
    block: list[str] = []
    for line in lines:
        block.append(line)
        if len(block) == BLOCK_LINES:
            yield block
            block = []
    if block:
        yield block


def _asked() -> Iterator[bytes]:
    """Lines of the terminal, each after a prompt, until the end of the input."""
    while True:
        print("> ", end="", file=sys.stderr, flush=True)
        line = sys.stdin.buffer.readline()
        if not line:
            print(file=sys.stderr)
            return
        yield line


def _piped() -> Iterator[bytes]:
    """Lines of standard input, read without its lock: what ends meanwhile needs it."""
    rest = b""
    while part := os.read(sys.stdin.fileno(), 1 << 16):
        *lines, rest = (rest + part).split(b"\n")
        yield from (line + b"\n" for line in lines)
    if rest:
        yield rest


def _as_they_come(lines: Iterator[str]) -> Iterator[list[str]]:
    """At least one line each time, and all that have come by then."""
    waiting: queue.Queue[str | Exception | None] = queue.Queue(BLOCK_LINES)

    def read() -> None:
        try:
            for line in lines:
                waiting.put(line)
            waiting.put(None)
        except (ValueError, OSError) as error:
            waiting.put(error)

    threading.Thread(target=read, daemon=True).start()
    while True:
        block: list[str] = []
        item = waiting.get()
        while isinstance(item, str):
            block.append(item)
            if len(block) == BLOCK_LINES or waiting.empty():
                break
            item = waiting.get()
        if block:
            yield block
        if isinstance(item, Exception):
            raise item
        if item is None:
            return


def beside(
    given: Iterable[list[str]], name: str
) -> Iterator[tuple[list[str], list[str]]]:
    """Blocks of lines, each with as many lines of another file.

    Raises:
        ValueError: The other file has fewer lines, or more.
    """
    others = sources.lines(pathlib.Path(name))
    total = 0
    for lines in given:
        found = list(itertools.islice(others, len(lines)))
        total += len(found)
        if len(found) < len(lines):
            raise ValueError(f"{name} has {total:,} lines, the input has more")
        yield lines, found
    if next(others, None) is not None:
        raise ValueError(f"{name} has more than the {total:,} lines of the input")


def write(found: Iterable[list[str]], name: str, *, total: int | None) -> int:
    """Write lines as they are done; a terminal sees how far it is.

    Returns:
        How many were written, those of one input line together counting as one.

    Raises:
        ValueError: They are not as many as the input had, of which there was a count.
    """
    # None shows it on a terminal alone; but not beside what a person types or reads.
    ends = (sys.stdin, sys.stdout)
    in_the_way = name == "-" and any(end and end.isatty() for end in ends)
    bar = tqdm.tqdm(total=total, unit=" lines", disable=True if in_the_way else None)
    written = 0
    with open_output(name) as stream, bar:
        for lines in found:
            stream.write("".join(f"{line}\n" for line in lines).encode())
            stream.flush()
            written += len(lines)
            bar.update(len(lines))
    if total not in (None, written):
        raise ValueError(
            f"the input had {total:,} lines when they were counted and {written:,} "
            "when they were read: it has changed meanwhile"
        )
    return written


def check_outputs(
    reading: Iterable[str | None], writing: Mapping[str, str | None]
) -> None:
    """Refuse what cannot be written, before work starts.

    Args:
        reading: Files that must stay as they are.
        writing: Those to write, by their flags.

    Raises:
        ValueError: A file is to be read, too, or to be written twice.
        OSError: There is no such directory, or nothing may be written there.
    """
    if "-" in writing.values() and sys.stdout is None:
        raise OSError("standard output is closed: name files")
    seen = {_identity(name) for name in reading if name}
    if list(writing.values()).count("-") > 1:
        raise ValueError(f"only one of {', '.join(writing)} can be standard output")
    for flag, name in writing.items():
        if not name or name == "-":
            continue
        path = pathlib.Path(name).resolve()
        if path.exists() and not (path.is_file() or path.is_dir()):
            continue  # /dev/null, a pipe
        if _identity(name) in seen:
            raise ValueError(
                f"{flag}: {name} is an input or another output, too: it would be "
                "overwritten"
            )
        seen.add(_identity(name))
        if path.is_dir():
            raise IsADirectoryError(f"{flag}: {name} is a directory")
        if not path.parent.is_dir():
            raise FileNotFoundError(f"{flag}: there is no directory {path.parent}")
        if not os.access(path if path.exists() else path.parent, os.W_OK):
            raise PermissionError(f"{flag}: {name} may not be written")


def _identity(name: str) -> tuple[int, int] | pathlib.Path:
    """What all names of a file share, standard input being "-"."""
    path = pathlib.Path(name).resolve()
    try:
        found = os.fstat(0) if name == "-" else path.stat()
    except OSError:
        return path
    return found.st_dev, found.st_ino


def open_output(name: str) -> IO[bytes]:
    """The file, compressed if its name ends in .gz; "-" is standard output."""
    if name == "-":
        return open(sys.stdout.fileno(), "wb", closefd=False)
    if name.endswith(".gz"):
        return typing.cast(IO[bytes], gzip.open(name, "wb"))
    return open(name, "wb")
