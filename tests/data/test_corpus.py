"""Text prepared once, never silently stale, and never lost to a crash."""

import errno
import os
import random
import shutil
import subprocess
import sys

import numpy as np
import pytest

from tests import settings
from vaswani_jax.data import corpus, directories, token_files, vocabulary

WORDS = "ba ko ri tu sen mal do fi gra lo pe zu bako rituba senmal dofi".split()
# Lines whose text a careless reader or writer changes.
STRANGE = ["", "  two  spaces ", "tab\t", "a\u2028b\x0c\x85", "\u2581", "\0", "e\u0301"]
SIZES = {"train": 120, "valid": 9, "test": 6}


def random_line(generator, most):
    return " ".join(generator.choices(WORDS, k=generator.randint(1, most)))


@pytest.fixture
def text(tmp_path):
    """A directory with a small parallel text, some of whose pairs are of no use."""
    directory = tmp_path / "text"
    directory.mkdir()
    generator = random.Random(1)
    for split, size in SIZES.items():
        for ending in ("en", "de"):
            lines = [random_line(generator, 6) for _ in range(size)]
            if split == "train":
                lines[3 if ending == "en" else 5] = ""
                lines[7] = " "
                lines[11 if ending == "en" else 13] = " ".join(WORDS * 9)
            else:
                lines[: len(STRANGE)] = STRANGE[: size - 2]
            write_lines(directory / f"{split}.{ending}", lines)
    return directory


def write_lines(path, lines):
    path.write_bytes("".join(line + "\n" for line in lines).encode())


def read_lines(path):
    return path.read_bytes().decode().split("\n")[:-1]


def settings_of(text, **overrides):
    values = {
        "data.source": "text",
        "data.text_directory": str(text),
        "data.vocab_size": 40,
        "data.byte_fallback": False,
        "data.max_length": 30,
        "data.source_tokens_per_batch": 512,
        "data.target_tokens_per_batch": 512,
        "data.sentencepiece_sample_size": 1000,
    }
    for split in SIZES:
        values |= {f"data.{split}_source": f"{split}.en"}
        values |= {f"data.{split}_target": f"{split}.de"}
    return settings.small_settings(**(values | overrides))


def prepare(text, *, rebuild=False, trained_with=None, log=None, **overrides):
    """The prepared data beside the text."""
    return corpus.open_or_prepare(
        settings_of(text, **overrides),
        text.with_name("data"),
        rebuild=rebuild,
        trained_with=trained_with,
        log=[].append if log is None else log.append,
    )


def contents(directory):
    """Every file below a directory, with when it was written."""
    return {
        path.relative_to(directory): (path.read_bytes(), path.stat().st_mtime_ns)
        for path in directory.rglob("*")
        if path.is_file()
    }


def sentences(file):
    """All sentences of a token file, as lists of ids."""
    lengths = file.lengths()
    ids, _ = file.rows(np.arange(len(file)), length=int(lengths.max()))
    return [row[:length].tolist() for row, length in zip(ids, lengths, strict=True)]


def refusal(text, **overrides):
    """Why data that was prepared is not used; it stays as it was."""
    before = contents(text.with_name("data"))
    with pytest.raises(ValueError) as caught:
        prepare(text, **overrides)
    assert contents(text.with_name("data")) == before
    assert "--rebuild_data" in str(caught.value)
    return str(caught.value)


def test_tokens_are_the_pairs_that_fit_in_their_order(text):
    prepared = prepare(text)
    for split in SIZES:
        sides = [read_lines(text / f"{split}.{ending}") for ending in ("en", "de")]
        pairs = list(zip(*map(prepared.vocabulary.encode, sides), strict=True))
        kept = [pair for pair in pairs if all(0 < len(side) < 30 for side in pair)]
        data = prepared.corpus(split)
        assert sentences(data.source) == [pair[0] for pair in kept]
        assert sentences(data.target) == [pair[1] for pair in kept]


def test_pairs_of_no_use_are_counted_and_told(text):
    log = []
    prepared = prepare(text, log=log)
    # An empty line on either side and one of spaces on both; a long one on either.
    assert prepared.counts["train"] == {"kept": 115, "empty": 3, "too_long": 2}
    [line] = [line for line in log if line.startswith("tokenised train")]
    assert "115 pairs kept" in line
    assert "2 over 30 tokens" in line
    assert "3 with an empty side" in line


def test_a_sentence_of_max_length_with_its_end_mark_is_kept(text):
    longest = max(
        max(map(len, prepare(text).vocabulary.encode([source, target])))
        for source, target in zip(
            read_lines(text / "train.en"), read_lines(text / "train.de"), strict=True
        )
    )
    exact = prepare(text, rebuild=True, **{"data.max_length": longest + 1})
    assert exact.counts["train"]["too_long"] == 0
    short = prepare(text, rebuild=True, **{"data.max_length": longest})
    assert short.counts["train"]["too_long"] > 0


def test_held_out_text_is_kept_to_the_letter(text):
    prepared = prepare(text)
    for split in ("valid", "test"):
        source, target = prepared.text(split)
        assert source == read_lines(text / f"{split}.en")
        assert target == read_lines(text / f"{split}.de")


def test_prepared_data_is_not_prepared_again(text, monkeypatch):
    first = prepare(text)
    before = contents(first.directory)
    monkeypatch.setattr(vocabulary, "train", forbidden)
    monkeypatch.setattr(token_files, "TokenWriter", forbidden)
    log = []
    second = prepare(text, log=log)
    assert contents(second.directory) == before
    assert second.counts == first.counts
    assert second.vocabulary.fingerprint == first.vocabulary.fingerprint
    assert log == []
    assert corpus.open_prepared(first.directory).counts == first.counts


def forbidden(*args, **kwargs):
    raise AssertionError("prepared again")


def test_settings_that_do_not_shape_the_data_may_change(text):
    before = contents(prepare(text).directory)
    others = {"data.source_tokens_per_batch": 700, "data.num_buckets": 4, "seed": 9}
    assert contents(prepare(text, **others).directory) == before


@pytest.mark.parametrize(
    ("key", "value", "was"),
    [
        ("data.vocab_size", 41, 40),
        ("data.max_length", 31, 30),
        ("data.subword_model", "unigram", "bpe"),
        ("data.byte_fallback", True, False),
        ("data.normalization", "nfkc", "identity"),
        ("data.sentencepiece_sample_size", 999, 1000),
        ("data.source_locale", "fr", "en"),
        ("data.target_locale", "fr", "de"),
    ],
)
def test_a_changed_setting_is_refused_with_both_values(text, key, value, was):
    prepare(text)
    assert f"config.{key} is {value!r}, was {was!r}" in refusal(text, **{key: value})


def test_all_changed_settings_are_named_at_once(text):
    prepare(text)
    write_lines(text / "valid.de", ["other"] * SIZES["valid"])
    message = refusal(text, **{"data.vocab_size": 41, "data.max_length": 31})
    assert "vocab_size" in message
    assert "max_length" in message
    assert "'valid'" in message


@pytest.mark.parametrize("split", SIZES)
@pytest.mark.parametrize("ending", ["en", "de"])
def test_changed_text_is_refused_with_its_split(text, split, ending):
    prepare(text)
    path = text / f"{split}.{ending}"
    lines = read_lines(path)
    write_lines(path, [*lines[:-1], lines[-1][::-1] + "."])
    assert f"the text of '{split}' has changed" in refusal(text)


def test_another_seed_of_generated_text_is_refused(tmp_path):
    def opened(seed):
        generated = settings.small_settings(**{"data.source": "reverse", "seed": seed})
        return corpus.open_or_prepare(
            generated,
            tmp_path / "data",
            rebuild=False,
            trained_with=None,
            log=[].append,
        )

    assert opened(1).counts == opened(1).counts
    with pytest.raises(ValueError, match=r"config\.seed is 2, was 1"):
        opened(2)


def test_touched_or_moved_text_is_the_same_text(text, tmp_path):
    before = contents(prepare(text).directory)
    for path in text.iterdir():
        os.utime(path, ns=(10**18, 10**18))
    assert contents(prepare(text).directory) == before
    moved = {"data.text_directory": str(tmp_path / "elsewhere")}
    text.rename(tmp_path / "elsewhere")
    assert contents(prepare(text, **moved).directory) == before


def test_prepared_data_serves_when_its_text_is_gone(text):
    before = contents(prepare(text).directory)
    shutil.rmtree(text)
    log = []
    prepared = prepare(text, log=log)
    assert contents(prepared.directory) == before
    assert prepared.text("test")[0][1] == STRANGE[1]
    assert any(line.startswith("note:") and "train.en" in line for line in log)


def test_missing_text_is_not_found_if_nothing_is_prepared(text):
    (text / "valid.de").unlink()
    with pytest.raises(FileNotFoundError, match=r"config\.data\.valid_target"):
        prepare(text)
    with pytest.raises(FileNotFoundError, match="no prepared data in"):
        corpus.open_prepared(text.with_name("data"))


def test_rebuilding_takes_the_changed_text_and_settings(text):
    prepare(text)
    write_lines(text / "valid.en", ["ba ko"] * SIZES["valid"])
    rebuilt = prepare(text, rebuild=True, **{"data.vocab_size": 41})
    assert rebuilt.vocabulary.size == 41
    assert rebuilt.text("valid")[0] == ["ba ko"] * SIZES["valid"]
    # What is there is what was asked for, so it opens.
    assert prepare(text, **{"data.vocab_size": 41}).counts == rebuilt.counts
    there = sorted(entry.name for entry in text.parent.iterdir())
    assert there == [".data.vaswani_jax_lock", "data", "text"]


def test_rebuilding_keeps_the_vocabulary_that_checkpoints_need(text):
    before = prepare(text)
    files = contents(before.directory)
    needed = before.vocabulary.fingerprint
    with pytest.raises(ValueError, match=f"trained with the vocabulary {needed}"):
        prepare(text, rebuild=True, trained_with=needed, **{"data.vocab_size": 41})
    assert contents(before.directory) == files
    again = prepare(text, rebuild=True, trained_with=needed)
    assert again.vocabulary.fingerprint == needed


def test_processes_that_prepare_at_once_end_with_the_same_data(text):
    program = (
        "import pathlib, sys\n"
        "from tests.data import test_corpus\n"
        "print(test_corpus.prepare(pathlib.Path(sys.argv[1])).vocabulary.fingerprint)\n"
    )
    command = [sys.executable, "-c", program, str(text)]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE) for _ in range(2)]
    prints = {process.communicate(timeout=120)[0].strip() for process in both}
    assert [process.returncode for process in both] == [0, 0]
    assert prints == {prepare(text).vocabulary.fingerprint.encode()}


@pytest.mark.parametrize("side", ["en", "de"])
def test_bad_text_is_refused_before_the_work_starts(text, side, monkeypatch):
    monkeypatch.setattr(vocabulary, "train", forbidden)
    path = text / f"test.{side}"
    write_lines(path, read_lines(path)[:-1])
    with pytest.raises(ValueError, match="same number of lines"):
        prepare(text)
    assert not text.with_name("data").exists()


@pytest.mark.parametrize("lines", [[], ["", " "]])
@pytest.mark.parametrize("split", ["train", "valid"])
def test_a_split_without_a_pair_of_use_is_refused(text, split, lines):
    for ending in ("en", "de"):
        write_lines(text / f"{split}.{ending}", lines)
    with pytest.raises(ValueError, match=r"pair|vocabulary"):
        prepare(text)
    assert not text.with_name("data").exists()


def test_without_test_files_there_is_no_test_split(text):
    prepared = prepare(text, **{"data.test_source": "", "data.test_target": ""})
    assert set(prepared.counts) == {"train", "valid"}


@pytest.mark.parametrize("rebuild", [True, False])
def test_a_directory_of_something_else_is_left_alone(text, rebuild):
    foreign = text.with_name("data")
    foreign.mkdir()
    (foreign / "notes.txt").write_text("mine")
    before = contents(foreign)
    with pytest.raises(ValueError, match="holds no prepared data"):
        prepare(text, rebuild=rebuild)
    assert contents(foreign) == before


def test_an_empty_directory_is_filled(text):
    text.with_name("data").mkdir()
    assert prepare(text).counts["train"]["kept"] == 115


def test_another_vocabulary_is_refused(text):
    prepared = prepare(text)
    other = vocabulary.train(
        read_lines(text / "train.en"), settings_of(text, **{"data.vocab_size": 39}).data
    )
    other.save(prepared.directory)
    message = refusal(text)
    assert other.fingerprint in message
    assert prepared.vocabulary.fingerprint in message


def test_a_damaged_manifest_is_refused_and_rebuilt(text):
    path = prepare(text).directory / "manifest.json"
    path.write_text(path.read_text()[:-30])
    assert str(path) in refusal(text)
    assert prepare(text, rebuild=True).counts["train"]["kept"] == 115


@pytest.mark.parametrize(
    ("num_pairs", "sample_size"), [(120, 40), (103, 40), (120, 39), (97, 96), (50, 2)]
)
def test_the_vocabulary_learns_from_lines_spread_over_the_text(
    text, num_pairs, sample_size, monkeypatch
):
    seen = []
    learn = vocabulary.train

    def spied(lines, data):
        seen.extend(lines)
        return learn(read_lines(text / "valid.en") + WORDS, data)

    for ending in ("en", "de"):
        lines = [f"{ending} {number}" for number in range(num_pairs)]
        write_lines(text / f"train.{ending}", lines)
    monkeypatch.setattr(vocabulary, "train", spied)
    prepare(text, **{"data.sentencepiece_sample_size": sample_size})
    numbers = [int(line.split(" ")[1]) for line in seen[::2]]
    assert seen[::2] == [f"en {number}" for number in numbers]
    assert seen[1::2] == [f"de {number}" for number in numbers]
    assert len(numbers) == sample_size // 2
    # As even as whole numbers can be, from the first pair to the end.
    every = num_pairs / len(numbers)
    gaps = [b - a for a, b in zip([*numbers, num_pairs], numbers[1:], strict=False)]
    assert numbers[0] == 0
    assert num_pairs - numbers[-1] <= every + 1
    assert all(every - 1 < gap < every + 1 for gap in gaps)


def test_the_vocabulary_learns_from_all_of_a_small_text(text, monkeypatch):
    seen = []
    learn = vocabulary.train
    monkeypatch.setattr(
        vocabulary, "train", lambda lines, data: learn(spy(lines, seen), data)
    )
    prepare(text, **{"data.sentencepiece_sample_size": 240})
    sides = [read_lines(text / f"train.{ending}") for ending in ("en", "de")]
    assert seen == [line for pair in zip(*sides, strict=True) for line in pair]


def spy(lines, seen):
    for line in lines:
        seen.append(line)
        yield line


def full_disk(*args, **kwargs):
    raise OSError(errno.ENOSPC, "No space left on device")


CRASHES = pytest.mark.parametrize(
    ("owner", "name"),
    [
        (vocabulary, "train"),
        (vocabulary.Vocabulary, "save"),
        (token_files, "write_text"),
        (token_files.TokenWriter, "write"),
        (corpus.json, "dumps"),
        (directories.os, "rename"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)


@CRASHES
def test_a_crash_leaves_the_earlier_data_and_the_next_call_succeeds(
    text, owner, name, monkeypatch
):
    before = contents(prepare(text).directory)
    with monkeypatch.context() as patch, pytest.raises(OSError, match="No space"):
        patch.setattr(owner, name, full_disk)
        prepare(text, rebuild=True, **{"data.vocab_size": 41})
    assert contents(text.with_name("data")) == before
    assert prepare(text).vocabulary.size == 40
    assert prepare(text, rebuild=True, **{"data.vocab_size": 41}).vocabulary.size == 41
    there = sorted(entry.name for entry in text.parent.iterdir())
    assert there == [".data.vaswani_jax_lock", "data", "text"]


@CRASHES
def test_a_first_call_that_crashed_is_followed_by_one_that_succeeds(
    text, owner, name, monkeypatch
):
    with monkeypatch.context() as patch, pytest.raises(OSError, match="No space"):
        patch.setattr(owner, name, full_disk)
        prepare(text)
    with pytest.raises(FileNotFoundError):
        corpus.open_prepared(text.with_name("data"))
    assert prepare(text).counts["train"]["kept"] == 115
    there = sorted(entry.name for entry in text.parent.iterdir())
    assert there == [".data.vaswani_jax_lock", "data", "text"]


def test_what_a_killed_call_left_behind_does_not_get_into_the_data(text):
    expected = set(contents(prepare(text).directory))
    shutil.rmtree(text.with_name("data"))
    unfinished = text.with_name(".data.vaswani_jax_unfinished")
    unfinished.mkdir()
    (unfinished / "train.source.int32").write_bytes(b"stale")
    prepared = prepare(text)
    assert set(contents(prepared.directory)) == expected
    assert len(prepared.corpus("train").source) == 115


def test_a_kill_between_the_two_renames_loses_no_data(text, monkeypatch):
    before = contents(prepare(text).directory)
    rename, calls = os.rename, []

    def dies_at_the_second(old, new):
        calls.append(new)
        if len(calls) == 2:
            raise KeyboardInterrupt
        rename(old, new)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(directories.os, "rename", dies_at_the_second)
        prepare(text, rebuild=True)
    # Nothing could be prepared again: the text is gone.
    shutil.rmtree(text)
    prepared = prepare(text)
    assert {path: old for path, (old, _) in contents(prepared.directory).items()} == {
        path: old for path, (old, _) in before.items()
    }
