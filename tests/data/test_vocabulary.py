"""Subwords to ids and back, for any text and any ids."""

import functools
import random

import hypothesis
import pytest
from hypothesis import strategies

from tests import settings
from vaswani_jax.core import types
from vaswani_jax.data import vocabulary

SYLLABLES = "ba ko ri tu sen mal do fi gra lo pe zu ä ßt".split()
SPACE_MARK = "\u2581"  # what SentencePiece writes for a space
UNKNOWN = "\u20ac"
# With 256 bytes, 4 special ids and the letters, or without the bytes.
SIZES = {True: 310, False: 50}

either_model = pytest.mark.parametrize("subword_model", ["bpe", "unigram"])
with_or_without_bytes = pytest.mark.parametrize("byte_fallback", [True, False])
# Text with no surrogates, much of it spaces and what looks like a piece.
snippets = strategies.one_of(
    strategies.text(max_size=4),
    strategies.sampled_from(
        [
            *(*" \0\t\r\n\u3000\u2028\x85\ufeff\u20ac\ufb01\u00bd", SPACE_MARK, "  "),
            *("<s>", "</s>", "<pad>", "<unk>", "<0x41>", " \u2047 "),
            *("e\u0301", "\U0001f469\u200d\U0001f52c", *SYLLABLES),
        ]
    ),
)
any_text = strategies.lists(snippets, max_size=12).map("".join)


@functools.cache
def training_lines(seed):
    generator = random.Random(seed)
    words = ["".join(generator.choices(SYLLABLES, k=k)) for k in (1, 2, 3) * 25]
    return [" ".join(generator.choices(words, k=6)) for _ in range(150)]


def data_settings(subword_model, byte_fallback, **overrides):
    values = {
        "data.subword_model": subword_model,
        "data.byte_fallback": byte_fallback,
        "data.vocab_size": SIZES[byte_fallback],
        "data.normalization": "identity",
    }
    return settings.small_settings(**(values | overrides)).data


@functools.cache
def trained(subword_model, byte_fallback, normalization="identity", seed=1):
    data = data_settings(
        subword_model, byte_fallback, **{"data.normalization": normalization}
    )
    return vocabulary.learn_vocabulary(training_lines(seed), data)


def as_sentencepiece_sees_it(text):
    """All that encoding may lose: NUL, spaces at the ends or repeated, line ends."""
    words = [word for word in text.replace("\0", " ").split(" ") if word]
    # The mark of a space is a space, but none that is taken for repeated.
    if not text.replace("\0", " ").strip():
        return ""  # white space alone is an empty line
    spaced = " ".join(words).replace(SPACE_MARK, " ").strip(" ")
    return spaced.replace("\r", " ").replace("\n", " ")


@either_model
@hypothesis.given(any_text)
def test_with_bytes_any_text_is_decoded_as_it_was_encoded(subword_model, text):
    vocab = trained(subword_model, True)
    [ids] = vocab.encode([text])
    assert all(types.UNK_ID < token < vocab.size for token in ids)
    assert vocab.decode(ids) == as_sentencepiece_sees_it(text)


@either_model
@with_or_without_bytes
def test_known_text_is_decoded_as_it_was_encoded(subword_model, byte_fallback):
    vocab = trained(subword_model, byte_fallback)
    lines = training_lines(1)
    assert [vocab.decode(ids) for ids in vocab.encode(lines)] == lines


@either_model
@hypothesis.given(strategies.lists(any_text, max_size=5))
def test_lines_are_encoded_one_by_one(subword_model, lines):
    vocab = trained(subword_model, True)
    assert vocab.encode(lines) == [vocab.encode([line])[0] for line in lines]


@either_model
def test_without_bytes_unknown_characters_are_the_one_unknown_id(subword_model):
    vocab = trained(subword_model, False)
    known, unknown = vocab.encode(["bako", f"bako{UNKNOWN}"])
    assert types.UNK_ID not in known
    assert unknown == [*known, types.UNK_ID]
    [ids] = vocab.encode([f"ko \u4e2d ba {UNKNOWN} ko"])
    assert ids.count(types.UNK_ID) == 2
    assert set(ids) - {types.UNK_ID} <= set(range(types.UNK_ID, vocab.size))


@either_model
def test_with_bytes_an_unknown_character_is_its_utf8_bytes(subword_model):
    vocab = trained(subword_model, True)
    known, unknown = vocab.encode(["bako", f"bako{UNKNOWN}"])
    assert unknown[: len(known)] == known
    assert len(unknown) == len(known) + len(UNKNOWN.encode())


@either_model
@with_or_without_bytes
def test_vocabulary_has_the_wanted_size(subword_model, byte_fallback):
    assert trained(subword_model, byte_fallback).size == SIZES[byte_fallback]


@either_model
@with_or_without_bytes
def test_the_first_ids_are_special_and_say_nothing(subword_model, byte_fallback):
    vocab = trained(subword_model, byte_fallback)
    special = [types.PAD_ID, types.BOS_ID, types.EOS_ID, types.UNK_ID]
    assert special == [0, 1, 2, 3]
    assert [vocab.decode([token]) for token in special[:3]] == ["", "", ""]
    assert vocab.decode([types.UNK_ID]).strip() == "\u2047"
    encoded = {token for ids in vocab.encode(training_lines(1)) for token in ids}
    assert not encoded & set(special)


@pytest.mark.parametrize("name", ["<pad>", "<s>", "</s>", "<unk>", "<0x41>"])
@either_model
def test_text_that_spells_a_special_piece_stays_text(subword_model, name):
    vocab = trained(subword_model, True)
    [ids] = vocab.encode([f"ba {name} ko"])
    assert min(ids) > types.UNK_ID
    assert vocab.decode(ids) == f"ba {name} ko"


@either_model
@with_or_without_bytes
@hypothesis.given(strategies.data())
def test_any_ids_are_decoded_to_one_line(subword_model, byte_fallback, data):
    vocab = trained(subword_model, byte_fallback)
    tokens = strategies.integers(0, vocab.size - 1)
    ids = data.draw(strategies.lists(tokens, max_size=30))
    line = vocab.decode(ids)
    assert "\n" not in line
    assert "\r" not in line
    line.encode()  # a lone surrogate could not be written


@either_model
@hypothesis.given(any_text, any_text, strategies.data())
def test_decoding_ends_at_the_end_mark(subword_model, text, rest, data):
    vocab = trained(subword_model, True)
    ids, after = vocab.encode([text, rest])
    padded = [types.BOS_ID, *ids, types.EOS_ID, *after, types.PAD_ID]
    assert vocab.decode(padded) == vocab.decode(ids)
    spot = data.draw(strategies.integers(0, len(ids)))
    assert vocab.decode([*ids[:spot], types.PAD_ID, *ids[spot:]]) == vocab.decode(ids)


@either_model
@with_or_without_bytes
@hypothesis.given(any_text)
def test_surfaces_have_the_words_of_the_text(subword_model, byte_fallback, text):
    vocab = trained(subword_model, byte_fallback)
    [ids] = vocab.encode([text])
    joined = "".join(vocab.surface(i, written=True) for i in ids)
    if joined.isascii() or not byte_fallback:
        assert joined.split() == vocab.decode(ids).split()
    assert not any(vocab.surface(i, written=True) for i in range(3))
    assert vocab.surface(types.UNK_ID, written=False) == "\ufffd"


@either_model
def test_words_start_with_the_space_before_them(subword_model):
    vocab = trained(subword_model, True)
    for line in training_lines(1)[:20]:
        [ids] = vocab.encode([line])
        assert sum(map(vocab.starts_word, ids)) == len(line.split(" "))


def test_normalization_is_the_one_that_is_named():
    same = trained("bpe", True, "identity")
    folded = trained("bpe", True, "nfkc")
    line = "ba\ufb01 \u00bd"
    assert same.decode(same.encode([line])[0]) == line
    assert folded.decode(folded.encode([line])[0]) == "bafi 1\u20442"


@either_model
def test_a_saved_vocabulary_is_the_same_when_loaded(subword_model, tmp_path):
    vocab = trained(subword_model, True)
    vocab.save(tmp_path)
    loaded = vocabulary.Vocabulary.load(tmp_path / "vocabulary.model")
    assert loaded.fingerprint == vocab.fingerprint
    assert loaded.size == vocab.size
    lines = [*training_lines(1), f"{UNKNOWN} \t x"]
    assert loaded.encode(lines) == vocab.encode(lines)


@either_model
def test_fingerprint_depends_on_the_text_alone(subword_model):
    vocab = trained(subword_model, True)
    again = vocabulary.learn_vocabulary(
        training_lines(1), data_settings(subword_model, True)
    )
    other = trained(subword_model, True, seed=2)
    assert len(vocab.fingerprint) == 16
    assert vocab.fingerprint == again.fingerprint
    assert vocab.fingerprint != other.fingerprint


@either_model
@pytest.mark.parametrize("size", [10, 60_000])
def test_a_size_the_text_cannot_give_is_refused(subword_model, size):
    data = data_settings(subword_model, True, **{"data.vocab_size": size})
    with pytest.raises(ValueError) as caught:
        vocabulary.learn_vocabulary(training_lines(1), data)
    assert f"no {subword_model} vocabulary" in str(caught.value)
    assert f"config.data.vocab_size={size} " in str(caught.value)


@pytest.mark.parametrize("lines", [[], ["", "   "]])
def test_text_without_a_word_is_refused(lines):
    with pytest.raises(ValueError, match="no bpe vocabulary"):
        vocabulary.learn_vocabulary(lines, data_settings("bpe", True))


@pytest.mark.parametrize("damage", ["empty", "foreign", "cut"])
def test_a_file_that_is_no_model_is_refused(damage, tmp_path):
    path = tmp_path / "vocabulary.model"
    trained("bpe", True).save(tmp_path)
    model = path.read_bytes()
    damaged = {"empty": b"", "foreign": b"no model\n", "cut": model[:-3]}
    path.write_bytes(damaged[damage])
    with pytest.raises(ValueError, match=str(path)):
        vocabulary.Vocabulary.load(path)


def test_a_missing_model_is_not_found(tmp_path):
    with pytest.raises(FileNotFoundError):
        vocabulary.Vocabulary.load(tmp_path / "vocabulary.model")


def test_sampled_segmentations_spell_the_text_and_depend_on_the_seed_alone():
    vocab = trained("bpe", True)
    lines = training_lines(1)

    def sampled(*seed):
        return vocab.encode(lines, dropout=0.3, seed=seed)

    first = sampled(1)
    assert [vocab.decode(ids) for ids in first] == lines
    assert first == sampled(1) != sampled(2)
    assert sampled(1, 0) != sampled(1, 1)
    # Merges are left out, so there are more subwords.
    assert sum(map(len, first)) > sum(map(len, vocab.encode(lines)))


@pytest.mark.parametrize("model", ["bpe", "unigram"])
def test_a_vocabulary_knows_whether_it_has_merges(model):
    assert trained(model, True).is_bpe == (model == "bpe")
