"""From text to a vocabulary and token files: what is kept, learned and refused."""

import io
import itertools
import sys

import numpy as np
import pytest
import tqdm

from tests import settings, ugly_text
from tests.data import small_text, small_vocabularies
from vaswani_jax.data import prepare, prepared
from vaswani_jax.data.tree_symbols import TreeSymbols
from vaswani_jax.data.vocabulary import Vocabulary
from vaswani_jax.data.vocabulary_training import learn_subwords
from vaswani_jax.data.word_subwords import WordSubwords


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


@pytest.mark.parametrize(
    ("num_pairs", "sample_size"), [(120, 40), (103, 40), (120, 39), (97, 96), (50, 2)]
)
def test_the_vocabulary_learns_from_lines_spread_over_the_text(
    text, num_pairs, sample_size, monkeypatch
):
    lines_read = []

    def learn_and_note(lines, data, **options):
        lines_read.extend(lines)
        return learn_subwords(
            small_text.read_lines(text / "valid.en") + small_text.WORDS, data
        )

    for ending in ("en", "de"):
        lines = [f"{ending} {number}" for number in range(num_pairs)]
        small_text.write_lines(text / f"train.{ending}", lines)
    monkeypatch.setattr(prepare, "learn_subwords", learn_and_note)
    small_text.prepare(text, **{"data.sentencepiece_sample_size": sample_size})
    numbers = [int(line.split(" ")[1]) for line in lines_read[::2]]
    assert lines_read[::2] == [f"en {number}" for number in numbers]
    assert lines_read[1::2] == [f"de {number}" for number in numbers]
    assert len(numbers) == sample_size // 2
    # As even as whole numbers can be, from the first pair to the end.
    every = num_pairs / len(numbers)
    gaps = [b - a for a, b in zip([*numbers, num_pairs], numbers[1:], strict=False)]
    assert numbers[0] == 0
    assert num_pairs - numbers[-1] <= every + 1
    assert all(every - 1 < gap < every + 1 for gap in gaps)


def test_the_vocabulary_learns_from_all_pairs_that_training_keeps(text, monkeypatch):
    lines_read = []
    monkeypatch.setattr(
        prepare,
        "learn_subwords",
        lambda lines, data, **options: learn_subwords(spy(lines, lines_read), data),
    )
    sides = [small_text.read_lines(text / f"train.{ending}") for ending in ("en", "de")]
    # SentencePiece reads many spaces as one.
    sides[0][0] = f"ba{' ' * 600}ko"
    small_text.write_lines(text / "train.en", sides[0])
    small_text.prepare(text, **{"data.sentencepiece_sample_size": 300})
    # Training leaves out empty sides, and what 29 subwords cannot spell.
    pairs = [
        pair
        for pair in zip(*sides, strict=True)
        if all(line.strip(" \t\0\x0c\u2028\x85") for line in pair)
    ]
    usable = [
        pair
        for pair in pairs
        if max(len(" ".join(line.split())) for line in pair) <= 29 * 16
    ]
    assert usable[0][0] == sides[0][0]
    assert lines_read == [line for pair in usable for line in pair]
    assert len(usable) < len(pairs) < len(sides[0])


def spy(lines, lines_read):
    for line in lines:
        lines_read.append(line)
        yield line


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


@pytest.mark.parametrize(
    ("terminals", "source", "reason"),
    [
        ("word", "treebank", "tree_terminals=word, but .* data.tree_terminals=tag"),
        ("tag", "copy", "for trees with .*, but these settings are for text"),
        ("", "treebank", "is for text, but .* for trees"),
    ],
)
def test_a_given_vocabulary_of_another_kind_is_refused(
    tmp_path, terminals, source, reason
):
    given = small_vocabularies.trained("bpe", False)
    if terminals:
        trees = TreeSymbols.learn(["(S (UH Oh))"], terminals=terminals)
        given = Vocabulary(WordSubwords(given.source.model), trees, is_shared=False)
    changes = {"data.vocabulary_sharing": "separate", "data.source": source}
    if source == "treebank":
        changes |= settings.TREEBANK
    data = settings.small_settings(**changes).data
    with pytest.raises(ValueError, match=reason):
        prepare.prepare(data, tmp_path, seed=1, vocabulary=given)


def test_a_given_vocabulary_without_merges_takes_no_dropout(text):
    unigram = {"data.subword_model": "unigram", "data.vocab_size": 35}
    initial = small_text.prepare(text, **unigram).vocabulary
    sampled = small_text.settings_of(
        text, **{"data.subword_dropout": 0.3, "data.subword_samples": 3}
    )
    with pytest.raises(ValueError, match=r"subword_dropout=0\.3 needs BPE"):
        prepared.open_or_prepare(
            sampled,
            text.with_name("other"),
            rebuild=False,
            initial_vocabulary=initial,
        )


def test_the_given_vocabulary_that_takes_no_dropout_is_named(text, tmp_path):
    unigram = {"data.subword_model": "unigram", "data.vocab_size": 35}
    given = small_text.prepare(text, **unigram).vocabulary
    (tmp_path / "own.model").write_bytes(given.source.model)
    changes = {
        "data.subword_dropout": 0.3,
        "data.subword_samples": 3,
        "data.vocabulary_sharing": "separate",
        "data.target_vocabulary": str(tmp_path / "own.model"),
    }
    data = small_text.settings_of(text, **changes).data
    with pytest.raises(
        ValueError, match=r"of config\.data\.target_vocabulary is of an"
    ):
        prepare.prepare(data, tmp_path / "data", seed=1, vocabulary=None)


@pytest.mark.parametrize("side", ["en", "de"])
def test_bad_text_is_refused_before_the_work_starts(text, side, monkeypatch):
    monkeypatch.setattr(prepare, "learn_subwords", small_text.forbidden)
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

    monkeypatch.setattr(prepare, "learn_subwords", change_and_learn)
    reason = "lines" if change == "longer" else "has changed while it was prepared"
    with pytest.raises(ValueError, match=reason):
        small_text.prepare(text)
    assert not text.with_name("data").exists()


def test_a_missing_split_is_named_before_another_is_read(text, caplog):
    (text / "test.en").unlink()
    with pytest.raises(FileNotFoundError, match="test_source"):
        small_text.prepare(text)
    assert caplog.messages == []


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_terminal_shows_progress_and_the_log_has_lines_of_it(
    text, monkeypatch, caplog
):
    monkeypatch.setattr(prepare, "CHUNK_LINES", 10)
    monkeypatch.setattr(prepare, "CHUNKS_PER_LOG_LINE", 5)
    monkeypatch.setattr(tqdm.tqdm, "monitor_interval", 0)  # no thread that stays
    file, terminal = io.StringIO(), Terminal()
    for stream, rebuild in ((file, False), (terminal, True)):
        monkeypatch.setattr(sys, "stderr", stream)
        small_text.prepare(text, rebuild=rebuild)
    assert "tokenising train: 100%" in terminal.getvalue()
    assert file.getvalue() == ""
    assert caplog.messages.count("tokenised 50 of 120 pairs of train") == 2


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
