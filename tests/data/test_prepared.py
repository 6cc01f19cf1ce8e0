"""Text prepared once, and never silently stale."""

import os
import shutil
import subprocess
import sys

import pytest

from tests import settings
from tests.data import small_text
from vaswani_jax.data import prepare, token_files
from vaswani_jax.data import prepared as prepared_


def test_tokens_are_the_pairs_that_fit_in_their_order(text):
    prepared = small_text.prepare(text)
    for split in small_text.SIZES:
        sides = [
            small_text.read_lines(text / f"{split}.{ending}") for ending in ("en", "de")
        ]
        pairs = list(zip(*map(prepared.vocabulary.encode, sides), strict=True))
        kept = [pair for pair in pairs if all(0 < len(side) < 30 for side in pair)]
        data = prepared.corpus(split)
        assert small_text.sentences(data.source) == [pair[0] for pair in kept]
        assert small_text.sentences(data.target) == [pair[1] for pair in kept]


def test_pairs_of_no_use_are_counted_and_logged(text, caplog):
    prepared = small_text.prepare(text)
    # An empty line on either side and one of spaces on both; a long one on either.
    assert prepared.counts["train"] == {"kept": 115, "empty": 3, "too_long": 2}
    [line] = [line for line in caplog.messages if line.startswith("tokenised train")]
    assert "115 pairs kept" in line
    assert "2 over 30 tokens" in line
    assert "3 with an empty side" in line


def test_a_sentence_of_max_length_with_its_end_mark_is_kept(text):
    longest = max(
        max(map(len, small_text.prepare(text).vocabulary.encode([source, target])))
        for source, target in zip(
            small_text.read_lines(text / "train.en"),
            small_text.read_lines(text / "train.de"),
            strict=True,
        )
    )
    exact = small_text.prepare(text, rebuild=True, **{"data.max_length": longest + 1})
    assert exact.counts["train"]["too_long"] == 0
    short = small_text.prepare(text, rebuild=True, **{"data.max_length": longest})
    assert short.counts["train"]["too_long"] > 0


def test_held_out_text_is_kept_to_the_letter(text):
    prepared = small_text.prepare(text)
    for split in ("valid", "test"):
        source, target = prepared.text(split)
        assert source == small_text.read_lines(text / f"{split}.en")
        assert target == small_text.read_lines(text / f"{split}.de")


def test_prepared_data_is_not_prepared_again(text, monkeypatch, caplog):
    first = small_text.prepare(text)
    before = small_text.contents(first.directory)
    monkeypatch.setattr(prepare, "learn_vocabulary", forbidden)
    monkeypatch.setattr(token_files, "TokenWriter", forbidden)
    caplog.clear()
    second = small_text.prepare(text)
    assert small_text.contents(second.directory) == before
    assert second.counts == first.counts
    assert second.vocabulary.fingerprint == first.vocabulary.fingerprint
    assert caplog.messages == []
    assert prepared_.open_prepared(first.directory).counts == first.counts


def forbidden(*args, **kwargs):
    raise AssertionError("prepared again")


def test_settings_that_do_not_shape_the_data_may_change(text):
    before = small_text.contents(small_text.prepare(text).directory)
    others = {"data.source_tokens_per_batch": 700, "data.num_buckets": 4, "seed": 9}
    assert small_text.contents(small_text.prepare(text, **others).directory) == before


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
    small_text.prepare(text)
    assert f"config.{key} is {value!r}, was {was!r}" in small_text.refusal(
        text, **{key: value}
    )


def test_all_changed_settings_are_named_at_once(text):
    small_text.prepare(text)
    small_text.write_lines(text / "valid.de", ["other"] * small_text.SIZES["valid"])
    message = small_text.refusal(text, **{"data.vocab_size": 41, "data.max_length": 31})
    assert "vocab_size" in message
    assert "max_length" in message
    assert "'valid'" in message


@pytest.mark.parametrize("split", small_text.SIZES)
@pytest.mark.parametrize("ending", ["en", "de"])
def test_changed_text_is_refused_with_its_split(text, split, ending):
    small_text.prepare(text)
    path = text / f"{split}.{ending}"
    lines = small_text.read_lines(path)
    small_text.write_lines(path, [*lines[:-1], lines[-1][::-1] + "."])
    assert f"the text of '{split}' has changed" in small_text.refusal(text)


def test_another_seed_of_generated_text_is_refused(tmp_path):
    def opened(seed):
        generated = settings.small_settings(**{"data.source": "reverse", "seed": seed})
        return prepared_.open_or_prepare(
            generated,
            tmp_path / "data",
            rebuild=False,
        )

    assert opened(1).counts == opened(1).counts
    with pytest.raises(ValueError, match=r"config\.seed is 2, was 1"):
        opened(2)


def test_touched_or_moved_text_is_the_same_text(text, tmp_path):
    before = small_text.contents(small_text.prepare(text).directory)
    for path in text.iterdir():
        os.utime(path, ns=(10**18, 10**18))
    assert small_text.contents(small_text.prepare(text).directory) == before
    moved = {"data.text_directory": str(tmp_path / "elsewhere")}
    text.rename(tmp_path / "elsewhere")
    assert small_text.contents(small_text.prepare(text, **moved).directory) == before


def test_prepared_data_serves_when_its_text_is_gone(text, caplog):
    before = small_text.contents(small_text.prepare(text).directory)
    shutil.rmtree(text)
    prepared = small_text.prepare(text)
    assert small_text.contents(prepared.directory) == before
    assert prepared.text("test")[0][1] == small_text.STRANGE[1]
    assert any(
        line.startswith("note:") and "train.en" in line for line in caplog.messages
    )


def test_missing_text_is_not_found_if_nothing_is_prepared(text):
    (text / "valid.de").unlink()
    with pytest.raises(FileNotFoundError, match=r"config\.data\.valid_target"):
        small_text.prepare(text)
    with pytest.raises(FileNotFoundError, match="no prepared data in"):
        prepared_.open_prepared(text.with_name("data"))


def test_rebuilding_takes_the_changed_text_and_settings(text):
    small_text.prepare(text)
    small_text.write_lines(text / "valid.en", ["ba ko"] * small_text.SIZES["valid"])
    rebuilt = small_text.prepare(text, rebuild=True, **{"data.vocab_size": 41})
    assert rebuilt.vocabulary.size == 41
    assert rebuilt.text("valid")[0] == ["ba ko"] * small_text.SIZES["valid"]
    # What is there is what was asked for, so it opens.
    assert small_text.prepare(text, **{"data.vocab_size": 41}).counts == rebuilt.counts
    there = sorted(entry.name for entry in text.parent.iterdir())
    assert there == [".data.vaswani_jax_lock", "data", "text"]


def test_rebuilding_keeps_the_vocabulary_that_checkpoints_need(text):
    before = small_text.prepare(text)
    files = small_text.contents(before.directory)
    needed = before.vocabulary.fingerprint
    with pytest.raises(ValueError, match=f"trained with the vocabulary {needed}"):
        small_text.prepare(
            text, rebuild=True, required_fingerprint=needed, **{"data.vocab_size": 41}
        )
    assert small_text.contents(before.directory) == files
    again = small_text.prepare(text, rebuild=True, required_fingerprint=needed)
    assert again.vocabulary.fingerprint == needed


def test_processes_that_prepare_at_once_end_with_the_same_data(text):
    program = (
        "import pathlib, sys\n"
        "from tests.data import small_text\n"
        "print(small_text.prepare(pathlib.Path(sys.argv[1])).vocabulary.fingerprint)\n"
    )
    command = [sys.executable, "-c", program, str(text)]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE) for _ in range(2)]
    prints = {process.communicate(timeout=120)[0].strip() for process in both}
    assert [process.returncode for process in both] == [0, 0]
    assert prints == {small_text.prepare(text).vocabulary.fingerprint.encode()}


@pytest.mark.parametrize("side", ["en", "de"])
def test_bad_text_is_refused_before_the_work_starts(text, side, monkeypatch):
    monkeypatch.setattr(prepare, "learn_vocabulary", forbidden)
    path = text / f"test.{side}"
    small_text.write_lines(path, small_text.read_lines(path)[:-1])
    with pytest.raises(ValueError, match="same number of lines"):
        small_text.prepare(text)
    assert not text.with_name("data").exists()


@pytest.mark.parametrize("lines", [[], ["", " "]])
@pytest.mark.parametrize("split", ["train", "valid"])
def test_a_split_without_a_pair_of_use_is_refused(text, split, lines):
    for ending in ("en", "de"):
        small_text.write_lines(text / f"{split}.{ending}", lines)
    with pytest.raises(ValueError, match=r"pair|vocabulary"):
        small_text.prepare(text)
    assert not text.with_name("data").exists()


def test_without_test_files_there_is_no_test_split(text):
    prepared = small_text.prepare(
        text, **{"data.test_source": "", "data.test_target": ""}
    )
    assert set(prepared.counts) == {"train", "valid"}


@pytest.mark.parametrize("rebuild", [True, False])
def test_a_directory_of_something_else_is_left_alone(text, rebuild):
    foreign = text.with_name("data")
    foreign.mkdir()
    (foreign / "notes.txt").write_text("mine")
    before = small_text.contents(foreign)
    with pytest.raises(ValueError, match="holds no prepared data"):
        small_text.prepare(text, rebuild=rebuild)
    assert small_text.contents(foreign) == before


def test_an_empty_directory_is_filled(text):
    text.with_name("data").mkdir()
    assert small_text.prepare(text).counts["train"]["kept"] == 115


@pytest.mark.parametrize("name", ["/", "file"])
def test_what_is_no_directory_for_data_is_refused(tmp_path, name, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("mine")
    data = settings.small_settings(**{"data.directory": name}).data
    with pytest.raises(ValueError, match=rf"config\.data\.directory={name} must be"):
        prepared_.data_directory(data, tmp_path)
