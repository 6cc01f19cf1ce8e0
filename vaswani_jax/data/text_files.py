"""Read and write text files line by line: UTF-8, plain or gzipped."""

import gzip
import io
import pathlib
import zlib
from collections.abc import Iterable, Iterator


def read_lines(path: pathlib.Path) -> Iterator[str]:
    """Yield the lines of a UTF-8 file, plain or gzipped, without their ends.

    Only a line feed ends a line; a carriage return before it is removed. Other
    characters cannot make the two sides of a parallel text differ in length.

    Raises:
        ValueError: A line is not UTF-8 (the message has the file and the line), or
            a compressed file is damaged.
    """
    with open_bytes(path) as stream:
        try:
            yield from decode_lines(stream, name=str(path))
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise ValueError(f"{path} is no whole gzip file: {error}") from None


def decode_lines(stream: Iterable[bytes], *, name: str) -> Iterator[str]:
    """Yield the lines of a binary stream as `read_lines` does.

    Args:
        stream: Lines with their line feeds.
        name: Name of the stream, for errors.

    Raises:
        ValueError: A line is not UTF-8.
    """
    for number, line in enumerate(stream, start=1):
        try:
            text = line.decode("utf-8")
        except UnicodeDecodeError as error:
            raise ValueError(
                f"{name}, line {number}: not UTF-8 (byte {line[error.start]:#04x} at "
                f"column {error.start + 1}); convert the file to UTF-8"
            ) from None
        if number == 1:
            text = text.removeprefix("\ufeff")
        yield text.removesuffix("\n").removesuffix("\r")


def open_bytes(path: pathlib.Path) -> io.BufferedIOBase:
    """Open a file to read, uncompressed if its name ends in .gz."""
    if path.suffix == ".gz":
        return gzip.GzipFile(path, "rb")
    return open(path, "rb")


def write_lines(path: pathlib.Path, lines: Iterable[str]) -> None:
    """Write lines in UTF-8, a line feed after each; compressed if it ends in .gz."""
    open_text = gzip.open if path.suffix == ".gz" else open
    with open_text(path, "wt", encoding="utf-8", newline="\n") as stream:
        stream.writelines(f"{line}\n" for line in lines)
