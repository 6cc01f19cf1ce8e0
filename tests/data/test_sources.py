"""Lines of text files, whatever is in them, and text that is generated."""

import gzip
import hashlib
import itertools
import os
import tempfile
from pathlib import Path

import hypothesis
import pytest
from hypothesis import strategies

from tests import settings
from vaswani_jax.data import sources, text_files

SPLITS = ["train", "valid", "test"]
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


def text_data(directory, **overrides):
    """Data settings of the text train.en, train.de and so on in a directory."""
    names = {
        f"data.{split}_{side}": f"{split}.{language}"
        for split in SPLITS
        for side, language in (("source", "en"), ("target", "de"))
    }
    values = {"data.source": "text", "data.text_directory": str(directory)}
    return settings.small_settings(**(values | names | overrides)).data


def generated(source, seed, **overrides):
    """Every pair of the generated task, a list for each split."""
    data = settings.small_settings(**({"data.source": source} | overrides)).data
    return {split: list(sources.pairs(data, split, seed=seed)) for split in SPLITS}


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


@pytest.mark.parametrize("ending", ["", ".gz"])
def test_pairs_are_the_lines_side_by_side(tmp_path, ending):
    write(tmp_path / f"train.en{ending}", b"one\ntwo\n\nfour")
    write(tmp_path / f"train.de{ending}", "eins\r\nzwei\r\n\r\nvier ü\r\n".encode())
    names = {"train_source": f"train.en{ending}", "train_target": f"train.de{ending}"}
    data = text_data(tmp_path, **{f"data.{key}": name for key, name in names.items()})
    pairs = list(sources.pairs(data, "train", seed=1))
    assert pairs == [("one", "eins"), ("two", "zwei"), ("", ""), ("four", "vier ü")]


def test_sides_of_unequal_length_are_refused_with_both_counts(tmp_path):
    source, target = tmp_path / "train.en", tmp_path / "train.de"
    data = text_data(tmp_path)
    for left, right, ends in itertools.product(range(7), range(7), ["", "\n"]):
        write(source, ("\n".join("x" * left) + ends * bool(left)).encode())
        write(target, ("\n".join("y" * right) + ends * bool(right)).encode())
        if left == right:
            assert list(sources.pairs(data, "train", seed=1)) == [("x", "y")] * left
            continue
        with pytest.raises(ValueError) as caught:
            list(sources.pairs(data, "train", seed=1))
        counts = f"{source} has {left}, {target} has {right}"
        assert str(caught.value).endswith(counts)


@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize("side", ["source", "target"])
def test_a_missing_file_is_named_with_its_key(tmp_path, split, side):
    for name in ("en", "de"):
        write(tmp_path / f"{split}.{name}", b"a\n")
    missing = tmp_path / f"{split}.{'en' if side == 'source' else 'de'}"
    missing.unlink()
    with pytest.raises(FileNotFoundError) as caught:
        sources.pairs(text_data(tmp_path), split, seed=1)
    assert f"config.data.{split}_{side}" in str(caught.value)
    assert str(missing) in str(caught.value)


def test_a_directory_is_no_text(tmp_path):
    (tmp_path / "train.en").mkdir()
    write(tmp_path / "train.de", b"a\n")
    with pytest.raises(FileNotFoundError, match=r"config\.data\.train_source"):
        sources.pairs(text_data(tmp_path), "train", seed=1)


def test_there_is_a_test_split_if_it_is_named_or_generated(tmp_path):
    without = {"data.test_source": "", "data.test_target": ""}
    assert sources.splits(text_data(tmp_path, **without)) == ["train", "valid"]
    assert sources.splits(text_data(tmp_path)) == SPLITS
    copy_task = settings.small_settings(**{"data.source": "copy"}).data
    assert sources.splits(copy_task) == SPLITS


@pytest.mark.parametrize("source", ["copy", "reverse"])
def test_generated_targets_are_the_copied_or_reversed_words(source):
    for source_line, target_line in itertools.chain(*generated(source, 1).values()):
        words = target_line.split(" ")
        if source == "reverse":
            words.reverse()
        assert words == source_line.split(" ")
        assert 4 <= len(words) <= 12
        assert all(len(word) == 1 and "a" <= word <= "z" for word in words)


@pytest.mark.parametrize("source", ["copy", "reverse"])
def test_generated_pairs_are_distinct_and_as_many_as_asked(source):
    sizes = {"train": 211, "valid": 31, "test": 17}
    overrides = {f"data.num_{split}": size for split, size in sizes.items()}
    splits = generated(source, 5, **overrides)
    assert {split: len(pairs) for split, pairs in splits.items()} == sizes
    # Distinct over all splits, so that nothing held out is trained on.
    sources_of_all = {source for pairs in splits.values() for source, _ in pairs}
    assert len(sources_of_all) == sum(sizes.values())


@pytest.mark.parametrize("source", ["copy", "reverse"])
def test_generated_text_depends_on_the_seed_alone(source):
    first, other, again = (generated(source, seed) for seed in (3, 4, 3))
    assert first == again
    assert all(first[split] != other[split] for split in SPLITS)


def test_the_record_of_a_text_is_the_digest_of_its_files(tmp_path):
    data = text_data(tmp_path)
    contents = {"source": b"one\ntwo\n", "target": b"eins\nzwei\n"}
    write(tmp_path / "train.en", contents["source"])
    write(tmp_path / "train.de", contents["target"])
    record = sources.text_record(data, "train", seed=1, previous={})
    for side, content in contents.items():
        assert record[side]["sha256"] == hashlib.sha256(content).hexdigest()


def test_the_record_notices_every_change_of_size_or_time(tmp_path):
    data = text_data(tmp_path)
    for name, content in (("train.en", b"one\n"), ("train.de", b"eins\n")):
        os.utime(write(tmp_path / name, content), ns=(10**18, 10**18))
    known = sources.text_record(data, "train", seed=1, previous={})
    same = sources.text_record(data, "train", seed=1, previous=known)
    os.utime(write(tmp_path / "train.en", b"two\n"), ns=(10**18, 10**18 + 1))
    later = sources.text_record(data, "train", seed=1, previous=known)
    os.utime(write(tmp_path / "train.en", b"three\n"), ns=(10**18, 10**18))
    longer = sources.text_record(data, "train", seed=1, previous=known)
    assert same == known
    digests = {record["source"]["sha256"] for record in (known, later, longer)}
    assert len(digests) == 3
    assert {later["target"]["sha256"], longer["target"]["sha256"]} == {
        known["target"]["sha256"]
    }


def test_a_file_of_known_size_and_time_is_not_read_again(tmp_path):
    # Digests of tens of gigabytes would be minutes at every start.
    data = text_data(tmp_path)
    for name in ("train.en", "train.de"):
        os.utime(write(tmp_path / name, b"one\n"), ns=(10**18, 10**18))
    known = sources.text_record(data, "train", seed=1, previous={})
    os.utime(write(tmp_path / "train.en", b"two\n"), ns=(10**18, 10**18))
    assert sources.text_record(data, "train", seed=1, previous=known) == known


def test_the_record_of_generated_text_names_task_and_seed():
    def record(source, seed):
        data = settings.small_settings(**{"data.source": source}).data
        return sources.text_record(data, "train", seed=seed, previous={})

    assert record("copy", 1) == record("copy", 1)
    assert record("copy", 1) != record("copy", 2)
    assert record("copy", 1) != record("reverse", 1)
