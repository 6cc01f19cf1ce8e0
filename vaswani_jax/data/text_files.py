"""Read and write text files line by line: UTF-8, plain or compressed."""

import gzip
import io
import lzma
import pathlib
import zlib
from collections.abc import Iterable, Iterator
from typing import Any

# The compressions, by the ending of a file's name, as errors call them.
COMPRESSIONS = {".gz": "gzip", ".xz": "xz", ".zst": "zstd"}
# The compressions by the first bytes of their files, whatever the name.
SIGNATURES = {
    b"\x1f\x8b": "gzip",
    b"BZh": "bzip2",
    b"PK\x03\x04": "zip",
    b"\xfd7zXZ": "xz",
    b"(\xb5/\xfd": "zstd",
}
# No sentence is as long; a file without line feeds must not fill the memory.
MAX_LINE_BYTES = 1 << 26
BUFFER_BYTES = 1 << 18


def read_lines(path: pathlib.Path) -> Iterator[str]:
    """Yield the lines of a UTF-8 file, plain or compressed, without their ends.

    Only a line feed ends a line; a carriage return before it is removed. Other
    characters cannot make the two sides of a parallel text differ in length.

    Raises:
        ValueError: A line is not UTF-8 or has over 64 MiB, or a compressed file is
            damaged. The message has the file and the line; of a damaged file, the last
            line that was read.
    """
    with open_bytes(path) as stream:
        yield from decode_lines(_split_lines(stream, path), name=str(path))


def decode_lines(stream: Iterable[bytes], *, name: str) -> Iterator[str]:
    """Yield the lines of a binary stream as `read_lines` does.

    Args:
        stream: Lines with their line feeds.
        name: Name of the stream, for errors.

    Raises:
        ValueError: A line is not UTF-8; the message says if the stream is compressed.
    """
    first_line = b""
    for number, line in enumerate(stream, start=1):
        first_line = first_line or line
        try:
            text = line.decode("utf-8")
        except UnicodeDecodeError as error:
            for signature, compression in SIGNATURES.items():
                # Text may begin so, too; then its first lines can be read.
                if number < 10 and first_line.startswith(signature):
                    raise ValueError(
                        f"{name}, line {number}: this is a {compression} file, not "
                        "UTF-8 text; decompress it, or let its name end in its "
                        f"compression: {', '.join(COMPRESSIONS)} are read"
                    ) from None
            raise ValueError(
                f"{name}, line {number}: not UTF-8 (byte {line[error.start]:#04x} at "
                f"column {error.start + 1}); convert the file to UTF-8"
            ) from None
        if number == 1:
            text = text.removeprefix("\ufeff")
        yield text.removesuffix("\n").removesuffix("\r")


def _split_lines(stream: io.BufferedIOBase, path: pathlib.Path) -> Iterator[bytes]:
    """Yield the lines of a stream with their line feeds.

    Raises:
        ValueError: A line is too long, or a compressed file is damaged.
    """
    compression = COMPRESSIONS.get(path.suffix)
    number = 0
    try:
        while line := stream.readline(MAX_LINE_BYTES):
            number += 1
            if len(line) == MAX_LINE_BYTES and not line.endswith(b"\n"):
                raise ValueError(
                    f"{path}, line {number}: over {MAX_LINE_BYTES:,} bytes without a "
                    "line feed; a text has one sentence a line"
                )
            yield line
        # Decoders take a file of 0 bytes for an empty text. A pipe has no size.
        if compression and not number and path.is_file() and not path.stat().st_size:
            raise EOFError("it is empty")
    except (EOFError, OSError, zlib.error, lzma.LZMAError) as error:
        # The errors of the disk have a number; those of the decoders have none.
        if getattr(error, "errno", None) is not None or compression is None:
            raise
        place = f"{path}, after line {number}" if number else f"{path}"
        raise ValueError(
            f"{place}: not a complete {compression} file ({error})"
        ) from None


def check_links(paths: Iterable[pathlib.Path]) -> None:
    """Refuse links to missing files, such as those to content that was not fetched.

    Raises:
        FileNotFoundError: The message has the first such link.
    """
    for path in paths:
        if not path.exists():
            raise FileNotFoundError(f"no file {path}: it is a link to a missing file")


def open_bytes(path: pathlib.Path) -> io.BufferedIOBase:
    """Open a file to read, uncompressed if its name ends in .gz, .xz or .zst."""
    if path.suffix == ".gz":
        return gzip.GzipFile(path, "rb")
    if path.suffix == ".xz":
        return io.BufferedReader(_XzStream(path), BUFFER_BYTES)
    if path.suffix == ".zst":
        import pyarrow  # Other files need not wait for it.

        file = pyarrow.OSFile(str(path))
        return io.BufferedReader(
            pyarrow.CompressedInputStream(file, "zstd"), BUFFER_BYTES
        )
    return open(path, "rb")


class _XzStream(io.RawIOBase):
    """The decompressed bytes of an .xz file.

    Unlike `lzma.LZMAFile`, refuses bytes after the last stream, which may be a damaged
    stream whose lines would be missing.
    """

    def __init__(self, path: pathlib.Path) -> None:
        self._file = open(path, "rb")  # noqa: SIM115
        self._decoder = lzma.LZMADecompressor(lzma.FORMAT_XZ)

    def readable(self) -> bool:
        return True

    def close(self) -> None:
        self._file.close()
        super().close()

    def readinto(self, buffer: Any) -> int:
        """Decompress into a buffer; return the number of bytes, 0 at the end."""
        while True:
            compressed = b""
            if self._decoder.eof:
                # Streams may follow each other, with zeros between them.
                compressed = self._decoder.unused_data.lstrip(b"\0")
                while not compressed:
                    chunk = self._file.read(BUFFER_BYTES)
                    if not chunk:
                        return 0
                    compressed = chunk.lstrip(b"\0")
                self._decoder = lzma.LZMADecompressor(lzma.FORMAT_XZ)
            elif self._decoder.needs_input:
                compressed = self._file.read(BUFFER_BYTES)
                if not compressed:
                    raise EOFError("it ends within a stream")
            if content := self._decoder.decompress(compressed, len(buffer)):
                buffer[: len(content)] = content
                return len(content)


def write_lines(path: pathlib.Path, lines: Iterable[str]) -> None:
    """Write lines in UTF-8, a line feed after each; compressed as the name says."""
    with open_output(path) as stream:
        stream.writelines(f"{line}\n".encode() for line in lines)


def open_output(path: pathlib.Path) -> io.BufferedIOBase:
    """Open a file to write, compressed if its name ends in .gz, .xz or .zst."""
    if path.suffix == ".gz":
        return gzip.GzipFile(path, "wb")
    if path.suffix == ".xz":
        return lzma.LZMAFile(path, "wb")
    if path.suffix == ".zst":
        import pyarrow

        stream = pyarrow.CompressedOutputStream(str(path), "zstd")
        return io.BufferedWriter(stream, BUFFER_BYTES)
    return open(path, "wb")
