"""Lines of text files, whatever is in them."""

import gzip
import os
import tempfile
from pathlib import Path

import hypothesis
import pytest
from hypothesis import strategies

from vaswani_jax.data import text_files

# What str.splitlines takes for the end of a line, and what else is strange.
STRANGE = [*"\x0b\x0c\x1c\x85\u2028\u2029\t\0\r\ufeff\u2581\U0001f389é"]

# Without what UTF-8 cannot spell and what ends a line.
characters = strategies.characters(exclude_categories=["Cs"], exclude_characters="\n")
texts = strategies.lists(
    strategies.text(strategies.one_of(characters, strategies.sampled_from(STRANGE)))
    # A carriage return at the end belongs to the line end.
    .map(lambda line: line.rstrip("\r"))
)


def write(path, content):
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


@pytest.mark.parametrize("name", ["text.en", "text.en.gz"])
@hypothesis.given(texts, strategies.sampled_from(["\n", "\r\n"]), strategies.booleans())
def test_lines_come_back_as_they_were_written(name, text, line_end, ends_last):
    content = line_end.join(text) + (line_end if ends_last else "")
    hypothesis.assume(not content.startswith("\ufeff"))
    # A last line that is empty needs its end to be one.
    hypothesis.assume(ends_last or (text and text[-1]))
    with tempfile.TemporaryDirectory() as directory:
        path = write(Path(directory, name), content.encode())
        assert list(text_files.read_lines(path)) == (text or ([""] if content else []))


@pytest.mark.parametrize("character", STRANGE)
def test_only_a_line_feed_ends_a_line(tmp_path, character):
    path = write(tmp_path / "text", f"a{character}b\nc{character}d".encode())
    assert list(text_files.read_lines(path)) == [f"a{character}b", f"c{character}d"]


def test_byte_order_mark_is_left_out_at_the_start_alone(tmp_path):
    path = write(tmp_path / "text", "\ufeffone\n\ufefftwo\n".encode())
    assert list(text_files.read_lines(path)) == ["one", "\ufefftwo"]


def test_empty_file_has_no_line_and_an_empty_line_is_one(tmp_path):
    assert list(text_files.read_lines(write(tmp_path / "none", b""))) == []
    assert list(text_files.read_lines(write(tmp_path / "one", b"\n"))) == [""]
    assert list(text_files.read_lines(write(tmp_path / "two", b"\n\n"))) == ["", ""]


@pytest.mark.parametrize("name", ["text.en", "text.en.gz"])
def test_a_line_that_is_not_utf8_is_named(tmp_path, name):
    path = write(tmp_path / name, "eins\nzwei\ngrün\n".encode("latin-1"))
    with pytest.raises(ValueError) as caught:
        list(text_files.read_lines(path))
    assert f"{path}, line 3: not UTF-8 (byte 0xfc at column 3)" in str(caught.value)


def test_a_compressed_file_cut_short_is_named(tmp_path):
    path = tmp_path / "text.gz"
    path.write_bytes(gzip.compress(os.urandom(999).hex().encode())[:-50])
    with pytest.raises(ValueError, match=str(path)):
        list(text_files.read_lines(path))


def test_a_file_that_only_claims_to_be_compressed_is_named(tmp_path):
    path = tmp_path / "text.gz"
    path.write_bytes(b"plain text\n")
    with pytest.raises(ValueError, match=str(path)):
        list(text_files.read_lines(path))


@hypothesis.given(strategies.lists(strategies.text(characters)))
def test_lines_are_written_with_line_feeds_alone(lines):
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, "test.source.txt")
        text_files.write_lines(path, lines)
        assert path.read_bytes() == "".join(line + "\n" for line in lines).encode()
