"""From text to a vocabulary and token files: what is learned, drawn and refused."""

import itertools

import numpy as np
import pytest

from tests.data import small_text
from vaswani_jax.data import prepare, prepared, vocabulary


@pytest.mark.parametrize(
    ("num_pairs", "sample_size"), [(120, 40), (103, 40), (120, 39), (97, 96), (50, 2)]
)
def test_the_vocabulary_learns_from_lines_spread_over_the_text(
    text, num_pairs, sample_size, monkeypatch
):
    seen = []
    learn = vocabulary.learn_vocabulary

    def spied(lines, data):
        seen.extend(lines)
        return learn(small_text.read_lines(text / "valid.en") + small_text.WORDS, data)

    for ending in ("en", "de"):
        lines = [f"{ending} {number}" for number in range(num_pairs)]
        small_text.write_lines(text / f"train.{ending}", lines)
    monkeypatch.setattr(prepare, "learn_vocabulary", spied)
    small_text.prepare(text, **{"data.sentencepiece_sample_size": sample_size})
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
    learn = vocabulary.learn_vocabulary
    monkeypatch.setattr(
        prepare, "learn_vocabulary", lambda lines, data: learn(spy(lines, seen), data)
    )
    small_text.prepare(text, **{"data.sentencepiece_sample_size": 240})
    sides = [small_text.read_lines(text / f"train.{ending}") for ending in ("en", "de")]
    assert seen == [line for pair in zip(*sides, strict=True) for line in pair]


def spy(lines, seen):
    for line in lines:
        seen.append(line)
        yield line


@pytest.mark.parametrize("chunk", [30, 40, 10_000])
def test_every_segmentation_is_drawn_anew(text, chunk, monkeypatch):
    monkeypatch.setattr(prepare, "CHUNK_LINES", chunk)
    sampled = {"data.subword_dropout": 0.3, "data.subword_samples": 3}
    found = small_text.prepare(text, **sampled, **{"data.max_length": 200})
    for side in found.corpus("train"):
        ids, _ = side.rows(np.arange(len(side)), length=200)
        copies = ids.reshape(3, -1, 200)
        for one, other in itertools.combinations(copies, 2):
            assert (one != other).any(axis=1).mean() > 0.5


def test_a_given_vocabulary_without_merges_takes_no_dropout(text):
    unigram = {"data.subword_model": "unigram", "data.vocab_size": 35}
    given = small_text.prepare(text, **unigram).vocabulary
    wanted = small_text.settings_of(
        text, **{"data.subword_dropout": 0.3, "data.subword_samples": 3}
    )
    with pytest.raises(ValueError, match=r"subword_dropout=0\.3 needs BPE"):
        prepared.open_or_prepare(
            wanted,
            text.with_name("other"),
            rebuild=False,
            initial_vocabulary=given,
        )


@pytest.mark.parametrize("name", ["train.en", "valid.de"])
def test_text_that_changes_meanwhile_is_told(text, name, monkeypatch):
    learn = vocabulary.learn_vocabulary

    def meanwhile(lines, data):
        found = learn(lines, data)
        with open(text / name, "a") as file:
            file.write("ba\n")
        return found

    monkeypatch.setattr(prepare, "learn_vocabulary", meanwhile)
    other = {"en": "de", "de": "en"}[name.partition(".")[2]]
    with pytest.raises(ValueError, match=r"has changed while|lines"):
        small_text.prepare(text)
    assert not text.with_name("data").exists()
    # Lines that stay as many are noticed, too.
    monkeypatch.setattr(prepare, "learn_vocabulary", learn)
    small_text.write_lines(
        text / name, small_text.read_lines(text / f"{name.partition('.')[0]}.{other}")
    )

    def rewritten(lines, data):
        found = learn(lines, data)
        changed = small_text.read_lines(text / name)
        small_text.write_lines(text / name, ["ko", *changed[1:]])
        return found

    monkeypatch.setattr(prepare, "learn_vocabulary", rewritten)
    with pytest.raises(ValueError, match="has changed while it was prepared"):
        small_text.prepare(text)


def test_a_missing_split_is_named_before_another_is_read(text, caplog):
    (text / "test.en").unlink()
    with pytest.raises(FileNotFoundError, match="test_source"):
        small_text.prepare(text)
    assert caplog.messages == []
