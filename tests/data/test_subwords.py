"""Subwords to ids and back, for any text and any ids."""

import hypothesis
import pytest
from hypothesis import strategies

from tests.data import small_vocabularies
from vaswani_jax.core import types
from vaswani_jax.data import subwords, tokenizer
from vaswani_jax.data import vocabulary as vocabularies
from vaswani_jax.data.subwords import Subwords

SPACE_MARK = "\u2581"  # what SentencePiece writes for a space
UNKNOWN = "\u20ac"

either_model = pytest.mark.parametrize("subword_model", ["bpe", "unigram"])
with_or_without_bytes = pytest.mark.parametrize("byte_fallback", [True, False])
# Text with no surrogates, much of it spaces and what looks like a piece.
snippets = strategies.one_of(
    strategies.text(max_size=4),
    strategies.sampled_from(
        [
            *(*" \0\t\r\n\u3000\u2028\x85\ufeff\u20ac\ufb01\u00bd", SPACE_MARK, "  "),
            *("<s>", "</s>", "<pad>", "<unk>", "<0x41>", " \u2047 "),
            *("e\u0301", "\U0001f469\u200d\U0001f52c", *small_vocabularies.SYLLABLES),
        ]
    ),
)
any_text = strategies.lists(snippets, max_size=12).map("".join)


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
    vocabulary = small_vocabularies.trained(subword_model, True)
    [ids] = vocabulary.encode([text], target=True)
    assert all(types.UNK_ID < token < vocabulary.size for token in ids)
    assert vocabulary.decode(ids) == as_sentencepiece_sees_it(text)


@either_model
@with_or_without_bytes
def test_known_text_is_decoded_as_it_was_encoded(subword_model, byte_fallback):
    vocabulary = small_vocabularies.trained(subword_model, byte_fallback)
    lines = small_vocabularies.training_lines(1)
    assert [vocabulary.decode(ids) for ids in vocabulary.encode(lines)] == lines


@either_model
@hypothesis.given(strategies.lists(any_text, max_size=5))
def test_lines_are_encoded_one_by_one(subword_model, lines):
    vocabulary = small_vocabularies.trained(subword_model, True)
    each = [vocabulary.encode([line])[0] for line in lines]
    # Few lines and many are encoded in different ways.
    for repeats in (1, subwords.FEW_TEXTS):
        assert vocabulary.encode(lines * repeats) == each * repeats


@either_model
def test_without_bytes_unknown_characters_are_the_one_unknown_id(subword_model):
    vocabulary = small_vocabularies.trained(subword_model, False)
    prefix, unknown = vocabulary.encode(["bako", f"bako{UNKNOWN}"])
    assert types.UNK_ID not in prefix
    assert unknown == [*prefix, types.UNK_ID]
    [ids] = vocabulary.encode([f"ko \u4e2d ba {UNKNOWN} ko"])
    assert ids.count(types.UNK_ID) == 2
    assert set(ids) - {types.UNK_ID} <= set(range(types.UNK_ID, vocabulary.size))


@either_model
def test_with_bytes_an_unknown_character_is_its_utf8_bytes(subword_model):
    vocabulary = small_vocabularies.trained(subword_model, True)
    prefix, unknown = vocabulary.encode(["bako", f"bako{UNKNOWN}"])
    assert unknown[: len(prefix)] == prefix
    assert len(unknown) == len(prefix) + len(UNKNOWN.encode())


@either_model
@with_or_without_bytes
def test_the_first_ids_are_special_and_say_nothing(subword_model, byte_fallback):
    vocabulary = small_vocabularies.trained(subword_model, byte_fallback)
    special = [types.PAD_ID, types.BOS_ID, types.EOS_ID, types.UNK_ID]
    assert special == [0, 1, 2, 3]
    assert [vocabulary.decode([token]) for token in special[:3]] == ["", "", ""]
    assert vocabulary.decode([types.UNK_ID]).strip() == "\u2047"
    encoded = {
        token
        for ids in vocabulary.encode(small_vocabularies.training_lines(1))
        for token in ids
    }
    assert not encoded & set(special)


@pytest.mark.parametrize("name", ["<pad>", "<s>", "</s>", "<unk>", "<0x41>"])
@either_model
def test_text_that_spells_a_special_piece_stays_text(subword_model, name):
    vocabulary = small_vocabularies.trained(subword_model, True)
    [ids] = vocabulary.encode([f"ba {name} ko"])
    assert min(ids) > types.UNK_ID
    assert vocabulary.decode(ids) == f"ba {name} ko"


@either_model
@with_or_without_bytes
@hypothesis.given(strategies.data())
def test_any_ids_are_decoded_to_one_line(subword_model, byte_fallback, data):
    vocabulary = small_vocabularies.trained(subword_model, byte_fallback)
    tokens = strategies.integers(0, vocabulary.size - 1)
    ids = data.draw(strategies.lists(tokens, max_size=30))
    line = vocabulary.decode(ids)
    assert "\n" not in line
    assert "\r" not in line
    line.encode()  # a lone surrogate could not be written


@either_model
@hypothesis.given(any_text, any_text, strategies.data())
def test_decoding_ends_at_the_end_mark(subword_model, text, suffix, data):
    vocabulary = small_vocabularies.trained(subword_model, True)
    ids, suffix_ids = vocabulary.encode([text, suffix])
    padded = [types.BOS_ID, *ids, types.EOS_ID, *suffix_ids, types.PAD_ID]
    assert vocabulary.decode(padded) == vocabulary.decode(ids)
    spot = data.draw(strategies.integers(0, len(ids)))
    assert vocabulary.decode(
        [*ids[:spot], types.PAD_ID, *ids[spot:]]
    ) == vocabulary.decode(ids)


@either_model
@with_or_without_bytes
@hypothesis.given(any_text)
def test_surfaces_have_the_words_of_the_text(subword_model, byte_fallback, text):
    vocabulary = small_vocabularies.trained(subword_model, byte_fallback)
    [ids] = vocabulary.encode([text])
    joined = "".join(map(vocabulary.source.surface, ids))
    if joined.isascii() or not byte_fallback:
        assert joined.split() == vocabulary.decode(ids).split()
    assert not any(map(vocabulary.source.surface, range(3)))
    assert vocabulary.source.surface(types.UNK_ID) == tokenizer.UNKNOWN


@either_model
def test_words_start_with_the_space_before_them(subword_model):
    vocabulary = small_vocabularies.trained(subword_model, True)
    for line in small_vocabularies.training_lines(1)[:20]:
        [ids] = vocabulary.encode([line])
        assert sum(map(vocabulary.source.starts_word, ids)) == len(line.split(" "))


@either_model
def test_a_saved_vocabulary_is_the_same_when_loaded(subword_model, tmp_path):
    vocabulary = small_vocabularies.trained(subword_model, True)
    vocabulary.save(tmp_path)
    loaded = vocabularies.load(tmp_path)
    assert loaded.fingerprint == vocabulary.fingerprint
    assert loaded.size == vocabulary.size
    lines = [*small_vocabularies.training_lines(1), f"{UNKNOWN} \t x"]
    assert loaded.encode(lines) == vocabulary.encode(lines)


@pytest.mark.parametrize("damage", ["empty", "foreign", "cut"])
def test_a_file_that_is_no_model_is_refused(damage, tmp_path):
    path = tmp_path / "vocabulary.model"
    small_vocabularies.trained("bpe", True).save(tmp_path)
    model = path.read_bytes()
    damaged = {"empty": b"", "foreign": b"no model\n", "cut": model[:-3]}
    path.write_bytes(damaged[damage])
    with pytest.raises(ValueError, match=str(path)):
        Subwords.load(path)


def test_a_missing_model_is_not_found(tmp_path):
    with pytest.raises(FileNotFoundError):
        Subwords.load(tmp_path / "vocabulary.model")


def test_sampled_segmentations_spell_the_text_and_depend_on_the_seed_alone():
    vocabulary = small_vocabularies.trained("bpe", True)
    lines = small_vocabularies.training_lines(1)

    def sampled(*seed):
        return vocabulary.encode(lines, dropout=0.3, seed=seed)

    first = sampled(1)
    assert [vocabulary.decode(ids) for ids in first] == lines
    assert first == sampled(1) != sampled(2)
    assert sampled(1, 0) != sampled(1, 1)
    # Merges are left out, so there are more subwords.
    assert sum(map(len, first)) > sum(map(len, vocabulary.encode(lines)))


@pytest.mark.parametrize("model", ["bpe", "unigram"])
def test_a_vocabulary_knows_whether_it_has_merges(model):
    assert small_vocabularies.trained(model, True).accepts_dropout == (model == "bpe")
