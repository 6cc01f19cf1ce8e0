"""From text to a vocabulary and token files: what is kept and refused."""

import itertools

import numpy as np
import pytest

from tests import ugly_text
from tests.data import small_text
from vaswani_jax.data import prepare, run_vocabulary
from vaswani_jax.data.vocabulary_training import learn_subwords


def test_tokens_are_the_pairs_that_fit_in_their_order(text):
    data = small_text.prepare(text)
    for split in small_text.SIZES:
        sides = [
            small_text.read_lines(text / f"{split}.{ending}") for ending in ("en", "de")
        ]
        encoded = [
            data.vocabulary.encode(lines, target=bool(side), verbatim=True)
            for side, lines in enumerate(sides)
        ]
        pairs = list(zip(*encoded, strict=True))
        fitting = [pair for pair in pairs if all(0 < len(side) < 30 for side in pair)]
        token_pairs = data.token_pairs(split)
        assert small_text.sentences(token_pairs.source) == [pair[0] for pair in fitting]
        assert small_text.sentences(token_pairs.target) == [pair[1] for pair in fitting]


def test_pairs_that_are_left_out_are_counted_and_logged(text, caplog):
    data = small_text.prepare(text)
    # An empty line on either side and one of spaces on both; a long one on either.
    assert data.counts["train"] == {"kept": 115, "empty": 3, "too_long": 2}
    [line] = [line for line in caplog.messages if line.startswith("tokenised train")]
    assert "115 pairs kept" in line
    assert "2 over 30 tokens" in line
    assert "3 with an empty side" in line


def test_a_source_that_is_only_a_tag_is_empty(text):
    changes = {"data.target_locale": "de,fr", "data.user_symbols": "<2de>,<2fr>"}
    for split in small_text.SIZES:
        path = text / f"{split}.en"
        lines = small_text.read_lines(path)
        path.write_text("".join(f"<2de> {line}\n" for line in lines))
    data = small_text.prepare(text, **changes)
    # As many as without tags.
    assert data.counts["train"]["empty"] == 3
    corpus = {"name": "a", "source": "train.en", "target": "train.de", "tag": "<c>"}
    changes |= {"data.user_symbols": "<2de>,<2fr>,<c>", "data.corpora": [corpus]}
    changes |= {"data.train_source": "", "data.train_target": ""}
    tagged = small_text.prepare(text, rebuild=True, **changes)
    assert tagged.counts["train"]["empty"] == 3


def test_unknown_characters_are_counted_in_one_copy(text, caplog):
    for side in ("en", "de"):
        with (text / f"train.{side}").open("a") as file:
            file.write("⚠\n")
    corpus = {"source": "train.en", "target": "train.de", "noise_punctuation": 0.01}
    small_text.prepare(
        text,
        **{"data.corpora": [{**corpus, "name": "a", "noise_copies": 3}]},
        **{"data.train_source": "", "data.train_target": ""},
        **{"data.character_coverage": 0.99, "data.byte_fallback": False},
    )
    [message] = [m for m in caplog.messages if m.startswith("source of train")]
    assert message.startswith("source of train: 1 line has")


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
    data = small_text.prepare(text)
    for split in ("valid", "test"):
        source, target = data.text(split)
        assert source == small_text.read_lines(text / f"{split}.en")
        assert target == small_text.read_lines(text / f"{split}.de")


def test_without_test_files_there_is_no_test_split(text):
    data = small_text.prepare(text, **{"data.test_source": "", "data.test_target": ""})
    assert set(data.counts) == {"train", "valid"}


@pytest.mark.parametrize("chunk", [30, 40, 10_000])
def test_every_segmentation_is_drawn_anew(text, chunk, monkeypatch):
    monkeypatch.setattr(prepare, "CHUNK_LINES", chunk)
    sampled = {"data.subword_dropout": 0.3, "data.subword_samples": 3}
    data = small_text.prepare(text, **sampled, **{"data.max_length": 200})
    for side in data.token_pairs("train"):
        ids, _ = side.rows(np.arange(len(side)), length=200)
        copies = ids.reshape(3, -1, 200)
        for first, second in itertools.combinations(copies, 2):
            assert (first != second).any(axis=1).mean() > 0.5


@pytest.mark.parametrize("side", ["en", "de"])
def test_bad_text_is_refused_before_the_work_starts(text, side, monkeypatch):
    monkeypatch.setattr(run_vocabulary, "learn_subwords", small_text.forbidden)
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


@pytest.mark.parametrize("name", ["train.en", "valid.de"])
@pytest.mark.parametrize("change", ["longer", "same number of lines"])
def test_text_that_changes_meanwhile_is_refused(text, name, change, monkeypatch):
    def change_and_learn(lines, data, **options):
        vocabulary = learn_subwords(lines, data)
        old = small_text.read_lines(text / name)
        new = [*old, "ba"] if change == "longer" else ["ko", *old[1:]]
        small_text.write_lines(text / name, new)
        return vocabulary

    monkeypatch.setattr(run_vocabulary, "learn_subwords", change_and_learn)
    reason = "lines" if change == "longer" else "has changed while it was prepared"
    with pytest.raises(ValueError, match=reason):
        small_text.prepare(text)
    assert not text.with_name("data").exists()


def test_a_missing_split_is_named_before_another_is_read(text, caplog):
    (text / "test.en").unlink()
    with pytest.raises(FileNotFoundError, match="test_source"):
        small_text.prepare(text)
    assert caplog.messages == []


def test_the_log_has_lines_of_progress(text, monkeypatch, caplog):
    monkeypatch.setattr(prepare, "CHUNK_LINES", 10)
    monkeypatch.setattr(prepare, "CHUNKS_PER_LOG_LINE", 5)
    small_text.prepare(text)
    assert caplog.messages.count("tokenised 50 of 120 pairs of train") == 1


def test_ugly_text_is_prepared_without_loss(tmp_path):
    lines = [*ugly_text.LINES]
    # Each line is once a source and once a target; one side is blank in two pairs.
    sides = {"en": lines, "de": [*lines[7:], *lines[:7]]}
    (tmp_path / "text").mkdir()
    for split in small_text.SIZES:
        for ending, side in sides.items():
            small_text.write_lines(tmp_path / "text" / f"{split}.{ending}", side)
    # Rare characters are spelt in bytes.
    changes = {"data.vocab_size": 700, "data.byte_fallback": True}
    data = small_text.prepare(tmp_path / "text", **changes, **{"data.max_length": 400})
    assert data.counts["train"] == {"kept": 48, "empty": 2, "too_long": 0}
    assert [*map(list, data.text("valid"))] == [*sides.values()]
    kept = [
        pair for pair in zip(*sides.values(), strict=True) if all(map(str.strip, pair))
    ]
    pairs = data.token_pairs("train")
    for (_, target), ids in zip(kept, small_text.sentences(pairs.target), strict=True):
        decoded = data.vocabulary.decode(ids)
        assert (
            decoded.split() == target.replace("\0", " ").replace("\u2581", " ").split()
        )
    sources = [source for source, _ in kept]
    # What a model learns from stays as it is; only what it translates is read.
    verbatim = data.vocabulary.encode(sources, verbatim=True)
    assert small_text.sentences(pairs.source) == verbatim
    encoded = data.vocabulary.encode(sources)
    assert encoded != verbatim
    # A source has each of its words, but for those that are read as nothing.
    for source, ids in zip(sources, encoded, strict=True):
        assert (
            len(data.vocabulary.find_spans(source))
            == len(ids)
            >= len(source.split()) - 1
        )


def test_a_source_that_is_only_a_language_code_is_empty(text):
    lines = small_text.read_lines(text / "train.en")
    lines[20:22] = [">>fra<<", ">>fra<< ba"]
    small_text.write_lines(text / "train.en", lines)
    assert small_text.prepare(text).counts["train"]["empty"] == 4
