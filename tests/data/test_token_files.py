"""Sentences written to files and read back, a few of many at a time."""

import os
import tempfile
import tracemalloc
from pathlib import Path

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies

from vaswani_jax.data import token_files

# The last id that fits in 16 bits, and the first that does not.
VOCAB_SIZES = [2**16, 2**16 + 1, 300_000]
KINDS = {2**16: "uint16", 2**16 + 1: "int32", 300_000: "int32"}


def written(path, sentences, *, vocab_size, cuts=()):
    """The file of these sentences, handed to the writer in parts."""
    with token_files.open_writer(path, vocab_size=vocab_size) as writer:
        for start, end in zip([0, *cuts], [*cuts, len(sentences)], strict=True):
            writer.write(sentences[start:end])
    return token_files.TokenFile.open(path)


@strategies.composite
def sentences_in_parts(draw, vocab_size):
    token = strategies.integers(0, vocab_size - 1) | strategies.just(vocab_size - 1)
    sentence = strategies.lists(token, max_size=9)
    sentences = draw(strategies.lists(sentence, max_size=12))
    cuts = draw(strategies.lists(strategies.integers(0, len(sentences)), max_size=3))
    return sentences, sorted(cuts)


@pytest.mark.parametrize("vocab_size", VOCAB_SIZES)
@hypothesis.given(strategies.data())
def test_rows_are_the_sentences_that_were_written(vocab_size, data):
    sentences, cuts = data.draw(sentences_in_parts(vocab_size))
    picked = strategies.integers(0, max(0, len(sentences) - 1))
    indices = data.draw(strategies.lists(picked, max_size=7)) if sentences else []
    longest = max(map(len, sentences), default=0)
    length = data.draw(strategies.integers(max(1, longest), longest + 4))
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, "train.source")
        file = written(path, sentences, vocab_size=vocab_size, cuts=cuts)
        ids, lengths = file.rows(np.array(indices, np.int64), length=length)
        id_lists = list(file.id_lists(np.array(indices, np.int64)))
    assert len(file) == len(sentences)
    assert file.lengths().tolist() == [len(sentence) for sentence in sentences]
    assert lengths.tolist() == [len(sentences[index]) for index in indices]
    padded = [sentences[i] + [0] * (length - len(sentences[i])) for i in indices]
    assert ids.shape == (len(indices), length)
    assert ids.tolist() == padded
    assert id_lists == [sentences[index] for index in indices]


@pytest.mark.parametrize("vocab_size", VOCAB_SIZES)
def test_ids_take_two_bytes_where_that_is_enough(tmp_path, vocab_size):
    last = vocab_size - 1
    path = tmp_path / "train.source"
    file = written(path, [[last, 0], [], [last]], vocab_size=vocab_size)
    ids, _ = file.rows(np.array([2, 1, 0]), length=2)
    assert ids.tolist() == [[last, 0], [0, 0], [last, 0]]
    names = {entry.name for entry in tmp_path.iterdir()}
    assert names == {f"train.source.{KINDS[vocab_size]}", "train.source.offsets"}


def test_more_tokens_than_16_bits_count_keep_their_places(tmp_path):
    sentences = [[number] * 7 for number in range(4, 10_004)]
    file = written(tmp_path / "train.source", sentences, vocab_size=20_000)
    ids, lengths = file.rows(np.array([9_999, 0, 9_363]), length=7)
    assert ids.tolist() == [[10_003] * 7, [4] * 7, [9_367] * 7]
    assert lengths.tolist() == [7, 7, 7]


def test_only_what_is_asked_for_comes_into_memory(tmp_path):
    path = tmp_path / "train.source"
    written(path, [[5, 6, 7]], vocab_size=100)
    tokens = 300_000_000  # a hole in the file, 600 MB that nobody reads
    os.truncate(tmp_path / "train.source.uint16", 2 * tokens)
    offsets = np.array([0, 3, tokens - 2, tokens], "<i8")
    offsets.tofile(tmp_path / "train.source.offsets")
    tracemalloc.start()
    try:
        file = token_files.TokenFile.open(path)
        ids, _ = file.rows(np.array([0, 2]), length=4)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert ids.tolist() == [[5, 6, 7, 0], [0, 0, 0, 0]]
    assert peak < 100_000


@pytest.mark.parametrize("name", ["uint16", "offsets"])
@pytest.mark.parametrize("lost_bytes", [1, 2, 8, "all"])
def test_a_file_cut_short_is_refused_with_its_name(tmp_path, name, lost_bytes):
    path = tmp_path / "train.source"
    written(path, [[5, 6, 7], [8, 9]], vocab_size=100)
    damaged = tmp_path / f"train.source.{name}"
    size = damaged.stat().st_size
    os.truncate(damaged, 0 if lost_bytes == "all" else size - lost_bytes)
    with pytest.raises(ValueError, match=str(path)):
        token_files.TokenFile.open(path)


def test_a_file_with_more_tokens_than_sentences_is_refused(tmp_path):
    path = tmp_path / "train.source"
    written(path, [[5, 6, 7], [8, 9]], vocab_size=100)
    with open(tmp_path / "train.source.uint16", "ab") as stream:
        stream.write(b"\x05\x00")
    with pytest.raises(ValueError, match=r"offsets end at 5, but it has 6 tokens"):
        token_files.TokenFile.open(path)


@pytest.mark.parametrize("name", ["uint16", "offsets"])
def test_a_missing_file_is_not_found(tmp_path, name):
    path = tmp_path / "train.source"
    written(path, [[5, 6, 7], [8, 9]], vocab_size=100)
    (tmp_path / f"train.source.{name}").unlink()
    with pytest.raises(FileNotFoundError, match=str(path)):
        token_files.TokenFile.open(path)


def test_offsets_out_of_order_are_refused_with_their_file(tmp_path):
    path = tmp_path / "train.source"
    written(path, [[5, 6, 7], [8, 9], [4]], vocab_size=100)
    offsets = tmp_path / "train.source.offsets"
    kind = token_files.OFFSET_TYPE
    changed = np.fromfile(offsets, kind)
    changed[1] = 10**9
    changed.tofile(offsets)
    with pytest.raises(ValueError, match=f"{path} is damaged: its offsets are out of"):
        token_files.TokenFile.open(path).lengths()
