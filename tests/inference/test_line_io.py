"""Lines come and go in order, few at a time, whatever they come from."""

import contextlib
import gzip
import os
import pathlib
import pty
import queue
import select
import sys
import termios
import threading
from collections.abc import Iterator

import pytest

from vaswani_jax.inference import line_io


@pytest.fixture
def pipe(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """Standard input becomes a pipe; this is its other end."""
    reading, writing = os.pipe()
    with os.fdopen(reading) as stream:
        monkeypatch.setattr(sys, "stdin", stream)
        yield writing


def test_a_file_comes_in_blocks_of_bounded_size(tmp_path: pathlib.Path) -> None:
    total = line_io.BLOCK_LINES * 2 + 5
    lines = [f"line {number}" for number in range(total)]
    path = tmp_path / "input.gz"
    path.write_bytes(gzip.compress("\n".join(lines).encode()))
    blocks = list(line_io.read_blocks(str(path)))
    assert [len(block) for block in blocks] == [line_io.BLOCK_LINES] * 2 + [5]
    assert [line for block in blocks for line in block] == lines
    assert line_io.count_lines(str(path), flag="--input") == total


def test_lines_of_a_pipe_do_not_wait_for_later_ones(pipe: int) -> None:
    blocks = line_io.read_blocks("-")
    os.write(pipe, b"one\ntwo\n")
    early = [*next(blocks)]
    if len(early) == 1:  # the second may have come a moment later
        early += next(blocks)
    assert early == ["one", "two"]
    os.write(pipe, b"three")
    os.close(pipe)
    assert list(blocks) == [["three"]]


def test_a_fast_pipe_is_read_in_large_blocks_and_no_further_than_needed(
    pipe: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = []
    is_full = threading.Event()

    class WatchedQueue(queue.Queue[object]):
        def put(self, *arguments: object) -> None:
            if self.full():
                is_full.set()
            super().put(*arguments)

    monkeypatch.setattr(queue, "Queue", WatchedQueue)

    def write() -> None:
        with os.fdopen(pipe, "w") as stream:
            for number in range(200_000):
                stream.write(f"{number}\n")
                written.append(number)

    writer = threading.Thread(target=write)
    writer.start()
    blocks = line_io.read_blocks("-")
    lines = next(blocks)
    # The reader waits when its queue is full, so the writer must wait, too.
    assert is_full.wait(timeout=300)
    assert len(written) < 100_000
    lines += [line for block in blocks for line in block]
    writer.join(timeout=300)
    assert not writer.is_alive()
    assert lines == [str(number) for number in range(200_000)]


def test_bytes_that_are_not_utf8_come_after_the_lines_before_them(pipe: int) -> None:
    os.write(pipe, b"good\n\xff\n")
    os.close(pipe)
    lines = []
    with pytest.raises(ValueError, match="standard input, line 2: not UTF-8"):
        for block in line_io.read_blocks("-"):
            lines += block
    assert lines == ["good"]


def test_a_second_file_goes_along_and_must_be_as_long(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "aligned"
    path.write_text("a\nb\nc\n")
    assert list(line_io.zip_blocks([["1", "2"], ["3"]], str(path))) == [
        (["1", "2"], ["a", "b"]),
        (["3"], ["c"]),
    ]
    assert list(line_io.zip_blocks([["1"]])) == [(["1"],)]
    other = tmp_path / "other"
    other.write_text("x\ny\n")
    both = line_io.zip_blocks([["1", "2"], ["3"]], str(path), str(other))
    assert next(both) == (["1", "2"], ["a", "b"], ["x", "y"])
    with pytest.raises(ValueError, match="other has 2 lines, the input has more"):
        next(both)
    with pytest.raises(ValueError, match="has 3 lines, the input has more"):
        list(line_io.zip_blocks([["1", "2"], ["3", "4"]], str(path)))
    with pytest.raises(ValueError, match="has more than the 2 lines"):
        list(line_io.zip_blocks([["1", "2"]], str(path)))


def test_what_cannot_be_written_is_refused_before_work(tmp_path: pathlib.Path) -> None:
    source, output = str(tmp_path / "in"), str(tmp_path / "out")
    line_io.check_outputs([source, None, "-"], {"--output": output, "--attention": ""})
    for name, error, sentence in (
        (source, ValueError, "--output: .* is an input or another output"),
        (str(tmp_path), IsADirectoryError, "--output: .* is a directory"),
        (f"{tmp_path}/no/file", FileNotFoundError, "--output: there is no directory"),
        ("/proc/1/file", OSError, "--output: /proc/1/file may not be written"),
    ):
        with pytest.raises(error, match=sentence):
            line_io.check_outputs([source], {"--output": name})
    with pytest.raises(ValueError, match=r"--alignments: .* another output"):
        line_io.check_outputs([], {"--output": output, "--alignments": output})
    line_io.check_outputs([], {"--output": "/dev/null", "--alignments": "/dev/null"})
    with pytest.raises(ValueError, match="only one of --output, --alignments"):
        line_io.check_outputs([], {"--output": "-", "--alignments": "-"})


def test_a_file_is_known_by_any_of_its_names(tmp_path: pathlib.Path) -> None:
    source, link, soft = (tmp_path / name for name in ("in", "link", "soft"))
    source.write_text("a\n")
    link.hardlink_to(source)
    soft.symlink_to(link)
    sentence = "is an input or another output"
    for name in (source, link, soft):
        with pytest.raises(ValueError, match=sentence):
            line_io.check_outputs([str(source)], {"--output": str(name)})
    with pytest.raises(ValueError, match=sentence):
        outputs = {"--output": str(source), "--alignments": str(link)}
        line_io.check_outputs([], outputs)
    real_stdin = os.dup(0)
    with open(source) as stream:
        os.dup2(stream.fileno(), 0)
    try:
        with pytest.raises(ValueError, match=sentence):
            line_io.check_outputs(["-"], {"--output": str(link)})
        line_io.check_outputs(["-"], {"--output": str(tmp_path / "out")})
    finally:
        os.dup2(real_stdin, 0)
        os.close(real_stdin)


@pytest.mark.parametrize("later", [["a", "b"], ["a", "b", "c", "d"]])
def test_an_input_that_changes_while_it_is_read_is_an_error(
    tmp_path: pathlib.Path, later: list[str]
) -> None:
    source = tmp_path / "in"
    source.write_text("a\nb\nc\n")
    total = line_io.count_input(str(source), {})
    source.write_text("".join(f"{line}\n" for line in later))
    with pytest.raises(ValueError, match=rf"had 3 lines .* and {len(later)} when"):
        line_io.write_blocks(
            line_io.read_blocks(str(source)), str(tmp_path / "out"), total=total
        )


@pytest.mark.parametrize(
    ("total", "lines"),
    [(2049, "1,024 of 2,049 input lines"), (None, "1,024 input lines")],
)
def test_ctrl_c_leaves_the_lines_that_are_done_and_says_how_many(
    tmp_path: pathlib.Path,
    caplog: pytest.LogCaptureFixture,
    total: int | None,
    lines: str,
) -> None:
    def blocks() -> Iterator[list[str]]:
        yield ["a"] * 1024
        raise KeyboardInterrupt

    output = tmp_path / "out"
    with pytest.raises(KeyboardInterrupt):
        line_io.write_blocks(blocks(), str(output), total=total)
    assert output.read_text() == "a\n" * 1024
    assert caplog.messages == [f"interrupted: {output} has the output of {lines}"]


def test_all_lines_of_an_answer_are_counted(tmp_path: pathlib.Path) -> None:
    output = tmp_path / "out"
    blocks = iter([["1\n1", "2\u2028"], ["3\n3\n3"]])
    assert line_io.write_blocks(blocks, str(output), total=3) == 6
    assert output.read_bytes().count(b"\n") == 6


def test_files_are_counted_before_work_and_pipes_are_not(
    tmp_path: pathlib.Path,
) -> None:
    lines, fifo = tmp_path / "lines", tmp_path / "fifo"
    lines.write_text("a\nb\n")
    os.mkfifo(fifo)
    assert line_io.count_input(str(lines), {"--prefix": None}) == 2
    assert line_io.count_input(str(lines), {"--prefix": str(fifo)}) == 2
    assert line_io.count_input(str(fifo), {"--prefix": str(lines)}) is None
    assert line_io.count_input("-", {}) is None
    with pytest.raises(ValueError, match="--prefix=-: standard input is for --input"):
        line_io.count_input(str(lines), {"--prefix": "-"})
    with pytest.raises(FileNotFoundError, match=r"--input: no file .*none"):
        line_io.count_input(str(tmp_path / "none"), {})
    with pytest.raises(IsADirectoryError, match=r"--input: .* is a directory; name"):
        line_io.count_input(str(tmp_path), {})


@contextlib.contextmanager
def terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """The three streams are a terminal's; this is the person before it.

    It shows only what is written to it: the kernel echoes what is typed at any time.
    """
    person, screen = pty.openpty()
    termios.tcsetwinsize(screen, (24, 80))
    modes = termios.tcgetattr(screen)
    modes[3] &= ~termios.ECHO
    termios.tcsetattr(screen, termios.TCSANOW, modes)
    with (
        os.fdopen(screen) as reader,
        os.fdopen(os.dup(screen), "w") as writer,
        monkeypatch.context() as patch,
    ):
        patch.setattr(sys, "stdin", reader)
        patch.setattr(sys, "stdout", writer)
        patch.setattr(sys, "stderr", writer)
        yield person


def read_screen(person: int, awaited: str) -> str:
    """Return what the terminal shows up to a text, which may come in parts."""
    shown = ""
    while awaited not in shown:
        assert select.select([person], [], [], 300)[0], shown
        shown += os.read(person, 10_000).decode()
    return shown


def test_a_person_is_asked_for_each_line_and_sees_no_bar(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with terminal(monkeypatch) as person:
        os.write(person, b"one\ntwo\n\x04")
        blocks = (
            [line.upper() for line in block] for block in line_io.read_blocks("-")
        )
        assert line_io.write_blocks(blocks, "-", total=None) == 2
        shown = read_screen(person, "> \r\n").replace("\r", "")
    assert shown == "> ONE\n> TWO\n> \n"


def test_who_waits_at_a_terminal_sees_how_far_it_is(
    monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> None:
    with terminal(monkeypatch) as person:
        blocks = (["x"] * 10 for _ in range(3))
        assert line_io.write_blocks(blocks, str(tmp_path / "out"), total=30) == 30
        shown = read_screen(person, "30/30")
    assert "lines" in shown
    assert (tmp_path / "out").read_text() == "x\n" * 30
