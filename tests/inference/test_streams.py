"""Lines come and go in order, few at a time, whatever they come from."""

import gzip
import os
import pathlib
import sys
import threading
import time
from collections.abc import Iterator

import pytest

from vaswani_jax.inference import streams


@pytest.fixture
def pipe(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """Standard input becomes a pipe; this is its other end."""
    reading, writing = os.pipe()
    with os.fdopen(reading) as stream:
        monkeypatch.setattr(sys, "stdin", stream)
        yield writing


def test_a_file_comes_in_blocks_of_bounded_size(tmp_path: pathlib.Path) -> None:
    total = streams.BLOCK_LINES * 2 + 5
    lines = [f"line {number}" for number in range(total)]
    path = tmp_path / "input.gz"
    path.write_bytes(gzip.compress("\n".join(lines).encode()))
    blocks = list(streams.blocks(str(path)))
    assert [len(block) for block in blocks] == [streams.BLOCK_LINES] * 2 + [5]
    assert [line for block in blocks for line in block] == lines
    assert streams.count("--input", str(path)) == total


def test_lines_of_a_pipe_do_not_wait_for_later_ones(pipe: int) -> None:
    blocks = streams.blocks("-")
    os.write(pipe, b"one\ntwo\n")
    early = [*next(blocks)]
    if len(early) == 1:  # the second may have come a moment later
        early += next(blocks)
    assert early == ["one", "two"]
    os.write(pipe, b"three")
    os.close(pipe)
    assert list(blocks) == [["three"]]


def test_a_fast_pipe_is_read_in_large_blocks_and_no_further_than_needed(
    pipe: int,
) -> None:
    written = []

    def write() -> None:
        with os.fdopen(pipe, "w") as stream:
            for number in range(200_000):
                stream.write(f"{number}\n")
                written.append(number)

    writer = threading.Thread(target=write)
    writer.start()
    blocks = streams.blocks("-")
    first = next(blocks)
    time.sleep(0.5)
    # What waits is bounded, so that who writes must wait, too.
    assert len(written) < 100_000
    found = first + [line for block in blocks for line in block]
    writer.join()
    assert found == [str(number) for number in range(200_000)]


def test_bytes_that_are_not_utf8_come_after_the_lines_before_them(pipe: int) -> None:
    os.write(pipe, b"good\n\xff\n")
    os.close(pipe)
    found = []
    with pytest.raises(ValueError, match="standard input, line 2: not UTF-8"):
        for block in streams.blocks("-"):
            found += block
    assert found == ["good"]


def test_a_second_file_goes_along_and_must_be_as_long(tmp_path: pathlib.Path) -> None:
    other = tmp_path / "other"
    other.write_text("a\nb\nc\n")
    given = [["1", "2"], ["3"]]
    assert list(streams.beside(given, str(other))) == [
        (["1", "2"], ["a", "b"]),
        (["3"], ["c"]),
    ]
    with pytest.raises(ValueError, match="has 3 lines, the input has more"):
        list(streams.beside([["1", "2"], ["3", "4"]], str(other)))
    with pytest.raises(ValueError, match="has more than the 2 lines"):
        list(streams.beside([["1", "2"]], str(other)))
