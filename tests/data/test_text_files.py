"""Lines of text files, whatever is in them."""

import bz2
import gzip
import lzma
import os
import random
import re
import tempfile
import threading
import zlib
from pathlib import Path

import hypothesis
import pyarrow
import pytest
from hypothesis import strategies

from vaswani_jax.data import text_files

# What str.splitlines takes for the end of a line, and what else is strange.
STRANGE = [*"\x0b\x0c\x1c\x85\u2028\u2029\t\0\r\ufeff\u2581\U0001f389é"]


def zstd(content):
    return pyarrow.compress(content, codec="zstd", asbytes=True)


COMPRESSORS = {".gz": gzip.compress, ".xz": lzma.compress, ".zst": zstd}
ENDINGS = ["", *COMPRESSORS]


def from_zstd(content):
    with pyarrow.CompressedInputStream(pyarrow.py_buffer(content), "zstd") as stream:
        return stream.read()


DECOMPRESSORS = {".gz": gzip.decompress, ".xz": lzma.decompress, ".zst": from_zstd}


# Without what UTF-8 cannot spell and what ends a line.
characters = strategies.characters(exclude_categories=["Cs"], exclude_characters="\n")
endings = strategies.sampled_from(ENDINGS)
texts = strategies.lists(
    strategies.text(strategies.one_of(characters, strategies.sampled_from(STRANGE)))
    # A carriage return at the end belongs to the line end.
    .map(lambda line: line.rstrip("\r"))
)


def write(path, content):
    path.write_bytes(COMPRESSORS.get(path.suffix, bytes)(content))
    return path


@hypothesis.given(
    endings, texts, strategies.sampled_from(["\n", "\r\n"]), strategies.booleans()
)
def test_lines_come_back_as_they_were_written(ending, text, line_end, ends_last):
    content = line_end.join(text) + (line_end if ends_last else "")
    hypothesis.assume(not content.startswith("\ufeff"))
    # A last line that is empty needs its end to be one.
    hypothesis.assume(ends_last or (text and text[-1]))
    with tempfile.TemporaryDirectory() as directory:
        path = write(Path(directory, f"text.en{ending}"), content.encode())
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


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_line_that_is_not_utf8_is_named(tmp_path, ending):
    path = write(tmp_path / f"text.en{ending}", "eins\nzwei\ngrün\n".encode("latin-1"))
    with pytest.raises(ValueError) as caught:
        list(text_files.read_lines(path))
    assert f"{path}, line 3: not UTF-8 (byte 0xfc at column 3)" in str(caught.value)


@pytest.mark.parametrize("ending", COMPRESSORS)
def test_a_compressed_file_cut_short_is_named(tmp_path, ending):
    path = tmp_path / f"text{ending}"
    whole = COMPRESSORS[ending](os.urandom(999).hex().encode())
    for length in (0, 1, 5, len(whole) // 2, len(whole) - 50, len(whole) - 1):
        path.write_bytes(whole[:length])
        with pytest.raises(ValueError, match=str(path)):
            list(text_files.read_lines(path))


def test_a_compressed_pipe_may_have_no_line(tmp_path):
    # Its size is 0, whatever it carries.
    path = tmp_path / "text.gz"
    os.mkfifo(path)
    content = gzip.compress(b"")
    threading.Thread(target=path.write_bytes, args=[content], daemon=True).start()
    assert list(text_files.read_lines(path)) == []


@pytest.mark.parametrize("ending", COMPRESSORS)
@pytest.mark.parametrize("before", [b"", b"one\n"])
def test_a_file_that_only_claims_to_be_compressed_is_named(tmp_path, ending, before):
    # The lines after whole ones would be missing.
    path = tmp_path / f"text{ending}"
    begin = COMPRESSORS[ending](before) if before else b""
    path.write_bytes(begin + b"plain text\n")
    with pytest.raises(ValueError, match=str(path)):
        list(text_files.read_lines(path))


@pytest.mark.parametrize("ending", COMPRESSORS)
def test_a_damaged_file_is_named_with_the_last_line_that_was_read(tmp_path, ending):
    generator = random.Random(1)
    text = "".join(f"{generator.getrandbits(64):x}\n" for _ in range(50_000))
    path = tmp_path / f"text{ending}"
    whole = COMPRESSORS[ending](text.encode())
    path.write_bytes(whole[: len(whole) // 2])
    lines = []
    with pytest.raises(ValueError) as caught:
        lines.extend(text_files.read_lines(path))
    assert len(lines) > 10_000 and lines == text.split("\n")[: len(lines)]
    message = f"{path}, after line {len(lines)}: not a complete "
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize("ending", COMPRESSORS)
def test_compressed_files_can_be_joined(tmp_path, ending):
    # As `cat 1.xz 2.xz`; .xz files may have zeros between them.
    parts = [COMPRESSORS[ending](text) for text in (b"one\ntw", b"o\n", b"three\n")]
    padding = b"\0" * 8 if ending == ".xz" else b""
    path = tmp_path / f"text{ending}"
    path.write_bytes(padding.join(parts) + padding)
    assert list(text_files.read_lines(path)) == ["one", "two", "three"]


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_file_without_lines_does_not_fill_the_memory(tmp_path, ending, monkeypatch):
    monkeypatch.setattr(text_files, "MAX_LINE_BYTES", 1000)
    path = write(tmp_path / f"text{ending}", b"x" * 999 + b"\n" + b"x" * 1000 + b"\n")
    lines = text_files.read_lines(path)
    assert next(lines) == "x" * 999
    with pytest.raises(ValueError) as caught:
        next(lines)
    assert f"{path}, line 2: over 1,000 bytes" in str(caught.value)


@hypothesis.given(endings, strategies.lists(strategies.text(characters)))
def test_lines_are_written_with_line_feeds_alone(ending, lines):
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, f"test.source.txt{ending}")
        text_files.write_lines(path, lines)
        content = path.read_bytes()
    assert (
        DECOMPRESSORS.get(ending, bytes)(content)
        == "".join(line + "\n" for line in lines).encode()
    )


@pytest.mark.parametrize(
    ("kind", "compress"),
    [
        ("gzip", gzip.compress),
        ("bzip2", bz2.compress),
        ("xz", lzma.compress),
        ("zstd", zstd),
        ("zip", lambda content: b"PK\x03\x04\n\0\0\n" + zlib.compress(content)),
    ],
)
def test_a_compressed_file_of_another_name_is_named_with_its_kind(
    tmp_path, kind, compress
):
    path = tmp_path / "text.en"
    path.write_bytes(compress(os.urandom(99).hex().encode()))
    with pytest.raises(ValueError) as caught:
        list(text_files.read_lines(path))
    assert re.fullmatch(
        rf"{path}, line \d: this is a {kind} file, not UTF-8 text; decompress it, or "
        r"let its name end in its compression: \.gz, \.xz, \.zst are read",
        str(caught.value),
    )


def test_text_that_begins_as_a_compressed_file_does_is_text(tmp_path):
    path = tmp_path / "text.en"
    path.write_bytes(b"BZh 1\n" + b"a\n" * 20 + b"\xfc\n")
    with pytest.raises(ValueError, match="line 22: not UTF-8"):
        list(text_files.read_lines(path))
