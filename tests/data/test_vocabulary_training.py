"""What SentencePiece learns by each setting, and what it is refused with."""

import pytest
import sentencepiece

from tests import settings
from tests.data import small_vocabularies
from vaswani_jax.core import types
from vaswani_jax.data.subwords import load_configured
from vaswani_jax.data.vocabulary_training import (
    expected_size,
    learn_subwords,
)

either_model = pytest.mark.parametrize("subword_model", ["bpe", "unigram"])
with_or_without_bytes = pytest.mark.parametrize("byte_fallback", [True, False])


def learned(lines, **overrides):
    """Subwords of lines by settings of data, with bytes unless they say otherwise."""
    values = {f"data.{key}": value for key, value in overrides.items()}
    return learn_subwords(
        lines, small_vocabularies.data_settings("bpe", True, **values)
    )


@either_model
def test_fingerprint_depends_on_the_text_alone(subword_model):
    vocabulary = small_vocabularies.trained(subword_model, True)
    relearned = learn_subwords(
        small_vocabularies.training_lines(1),
        small_vocabularies.data_settings(subword_model, True),
    )
    different = small_vocabularies.trained(subword_model, True, seed=2)
    assert len(vocabulary.fingerprint) == 16
    assert vocabulary.fingerprint == relearned.fingerprint
    assert vocabulary.fingerprint != different.fingerprint


@either_model
@pytest.mark.parametrize("size", [10, 60_000])
def test_a_size_the_text_cannot_give_is_refused(subword_model, size):
    data = small_vocabularies.data_settings(
        subword_model, True, **{"data.vocab_size": size}
    )
    with pytest.raises(ValueError) as caught:
        learn_subwords(small_vocabularies.training_lines(1), data)
    assert f"no {subword_model} vocabulary" in str(caught.value)
    assert f"config.data.vocab_size={size} " in str(caught.value)


@pytest.mark.parametrize("lines", [[], ["", "   "]])
def test_text_without_a_word_is_refused(lines):
    with pytest.raises(ValueError, match="no bpe vocabulary"):
        learn_subwords(lines, small_vocabularies.data_settings("bpe", True))


@either_model
@with_or_without_bytes
def test_vocabulary_has_the_wanted_size(subword_model, byte_fallback):
    assert (
        small_vocabularies.trained(subword_model, byte_fallback).size
        == small_vocabularies.SIZES[byte_fallback]
    )


def test_normalization_is_the_one_that_is_named():
    same = small_vocabularies.trained("bpe", True, normalization="identity")
    folded = small_vocabularies.trained("bpe", True, normalization="nfkc")
    line = "ba\ufb01 \u00bd"
    assert same.decode(same.encode([line], target=True)[0]) == line
    assert folded.decode(folded.encode([line], target=True)[0]) == "bafi 1\u20442"


def test_the_smallest_size_is_named_with_the_settings_that_change_it():
    lines = ["".join(map(chr, range(0x4E00, 0x4E00 + 500)))] * 2
    with pytest.raises(ValueError) as caught:
        learned(lines, vocab_size=600, character_coverage=1.0)
    message = str(caught.value)
    assert "its characters and the special subwords are 761 subwords" in message
    assert "raise config.data.vocab_size" in message
    assert "config.data.character_coverage (1.0)" in message
    assert "--" not in message and ".cc" not in message
    assert learned(lines, vocab_size=761, character_coverage=1.0).size == 761
    assert learned(lines, vocab_size=755, character_coverage=0.98).size == 755


@either_model
def test_user_symbols_are_one_subword_wherever_they_stand(subword_model):
    subwords = learned(
        small_vocabularies.training_lines(1),
        subword_model=subword_model,
        user_symbols="<2de>,\u27e6N1\u27e7",
        vocab_size=320,
    )
    texts = [
        "<2de> bako",
        "ba (\u27e6N1\u27e7) ko",
        "ba\u27e6N1\u27e7",
        "<2de> <2de> ba",
    ]
    counts = [["<2de>"], ["\u27e6N1\u27e7"], ["\u27e6N1\u27e7"], ["<2de>", "<2de>"]]
    for text, symbols, ids in zip(texts, counts, subwords.encode(texts), strict=True):
        names = [subwords.subword(i).removeprefix("\u2581") for i in ids]
        assert [name for name in names if name in subwords.user_symbols] == symbols
        assert subwords.decode(ids) == text
    numbers = [subwords.num_tags(ids) for ids in subwords.encode(texts)]
    assert numbers == [1, 0, 0, 2]
    # The space before a tag is no subword of its own.
    assert subwords.subword(subwords.encode(texts)[0][0]) == "\u2581<2de>"


def test_coverage_decides_which_characters_have_subwords():
    lines = ["ba ko"] * 50 + ["\u20ac"]
    subwords = [
        learned(lines, character_coverage=c, vocab_size=267) for c in (0.99, 1.0)
    ]
    assert ["\u20ac" in side.spellings for side in subwords] == [False, True]


def test_split_digits_are_subwords_of_their_own():
    lines = [f"ba {number}" for number in [1999, 20246] * 50]
    names = [
        learned(lines, vocab_size=272, split_digits=split).spellings
        for split in (False, True)
    ]
    long_numbers = [
        [name for name in side if name.strip("\u2581").isdigit() and len(name) > 1]
        for side in names
    ]
    assert long_numbers[0] and not long_numbers[1]


def test_no_learned_subword_is_longer_than_the_setting_says():
    lines = [*small_vocabularies.training_lines(1), *["senmaldo"] * 500]
    for longest in (2, 5):
        names = learned(lines, max_subword_length=longest).spellings
        pieces = [name for name in names if not name.startswith("<")]
        assert max(map(len, pieces)) == longest


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (None, r"config\.data\.vocabulary=.* cannot be read: No such file"),
        (b"", "it is empty"),
        (b"#version: 0.2\nt h\n", "has BPE codes of subword-nmt.*config.data"),
        (b"the\n", "is not a SentencePiece model: it is damaged, a list of words"),
        ("suffix", "puts spaces after words"),
    ],
    ids=["missing", "empty", "BPE codes", "word list", "suffix"],
)
def test_a_given_file_that_is_no_model_is_refused(content, reason, tmp_path):
    path = tmp_path / "given"
    if content == "suffix":
        with open(path, "wb") as file:
            sentencepiece.SentencePieceTrainer.train(
                sentence_iterator=iter(small_vocabularies.training_lines(1)),
                model_writer=file,
                vocab_size=60,
                treat_whitespace_as_suffix=True,
                minloglevel=2,
            )
    elif content is not None:
        path.write_bytes(content)
    with pytest.raises((ValueError, FileNotFoundError), match=reason):
        load_configured(str(path), key="vocabulary")


@pytest.mark.parametrize(
    ("symbols", "reason"),
    [
        ("<2de>,<2de>", "has '<2de>' twice"),
        ("a b", "without white space.*got 'a b'"),
        ("a,,b", "got ''"),
        ("<0x41>", "got '<0x41>'"),
        ("</s>", "got '</s>'"),
    ],
)
def test_symbols_that_cannot_be_kept_are_refused(symbols, reason):
    with pytest.raises(ValueError, match=rf"config\.data\.user_symbols .*{reason}"):
        settings.small_settings(**{"data.user_symbols": symbols})


def test_the_size_before_preparation_is_that_of_given_files(tmp_path):
    path = tmp_path / "given.model"
    path.write_bytes(small_vocabularies.trained("bpe", True).source.model)
    given = {"data.vocabulary": str(path), "data.user_symbols": "<2de>"}
    data = settings.small_settings(**given).data
    assert expected_size(data) == 312  # the symbol after a space, and alone
    separate = {"data.vocabulary_sharing": "separate", "data.target_vocab_size": 99}
    data = settings.small_settings(**given, **separate).data
    assert expected_size(data) == types.VocabSizes(312, 99)
    assert expected_size(settings.small_settings(**separate).data)[1] == 99


def test_the_size_before_trees_are_prepared_says_that_they_are_trees():
    data = settings.small_settings(**settings.TREEBANK).data
    assert expected_size(data) == data.planned_vocab_size
    assert data.planned_vocab_size.trees is not None
