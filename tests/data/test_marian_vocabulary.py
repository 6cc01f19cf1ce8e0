"""A vocabulary of two SentencePiece models and one list of subwords."""

import functools
import json

import pytest

from tests.data import small_vocabularies
from vaswani_jax.core import types
from vaswani_jax.data import marian_vocabulary

CODE = ">>fra<<"


@functools.lru_cache
def pair():
    sides = [small_vocabularies.trained("unigram", False, seed=seed) for seed in (1, 2)]
    names = {side.subword(i) for side in sides for i in range(4, side.size)}
    special = ["<pad>", "<start>", "</s>", "<unk>", CODE]
    models = sides[0].models[0], sides[1].models[0]
    return marian_vocabulary.MarianVocabulary(models, [*special, *sorted(names)]), sides


def test_each_side_is_segmented_by_its_own_model():
    vocabulary, sides = pair()
    lines = small_vocabularies.training_lines(3)[:40]
    differs = False
    for target, side in enumerate(sides):
        expected = [[side.subword(i) for i in ids] for ids in side.encode(lines)]
        encoded = vocabulary.encode(lines, target=bool(target))
        assert [[vocabulary.subword(i) for i in ids] for ids in encoded] == expected
        assert [vocabulary.decode(ids) for ids in encoded] == lines
        differs |= encoded != vocabulary.encode(lines, target=not target)
    assert differs


def test_a_language_code_is_one_subword_where_a_line_begins():
    vocabulary, _ = pair()
    [plain] = vocabulary.encode(["ba ko"])
    code = vocabulary.subword_id(CODE)
    assert vocabulary.subword(code) == CODE
    assert vocabulary.encode([f"{CODE}ba ko"]) == [[code, *plain]]
    encoded = vocabulary.encode([f"ba {CODE}", ">>deu<<ba", ">>ba"])
    assert not any(code in ids for ids in encoded)
    assert encoded[1] == [types.UNK_ID, *vocabulary.encode(["ba"])[0]]
    assert [
        vocabulary.num_language_codes(ids) for ids in ([code, 9], [9, code], [])
    ] == [
        1,
        0,
        0,
    ]
    without = marian_vocabulary.MarianVocabulary(
        vocabulary.models,
        [vocabulary.subword(i) for i in range(vocabulary.size) if i != code],
    )
    assert len(without.encode([">>deu<<ba"])[0]) > 2


def test_what_spells_a_special_subword_is_none():
    vocabulary, _ = pair()
    for name in ("<pad>", "<start>", "</s>", "<unk>"):
        [ids] = vocabulary.encode([f"ba {name}"])
        assert not {types.PAD_ID, types.BOS_ID, types.EOS_ID} & set(ids)
    assert vocabulary.subword_id("not a subword") == types.UNK_ID
    assert vocabulary.encode(["", " \t"]) == [[], []]


def test_it_is_the_same_when_loaded(tmp_path):
    vocabulary, sides = pair()
    vocabulary.save(tmp_path)
    loaded = marian_vocabulary.load(tmp_path)
    lines = small_vocabularies.training_lines(3)
    assert loaded.encode(lines) == vocabulary.encode(lines)
    assert loaded.fingerprint == vocabulary.fingerprint != sides[0].fingerprint
    assert (loaded.size, loaded.models) == (vocabulary.size, vocabulary.models)


@pytest.mark.parametrize("name", [*marian_vocabulary.FILES, marian_vocabulary.SUBWORDS])
def test_a_damaged_file_is_named(tmp_path, name):
    pair()[0].save(tmp_path)
    (tmp_path / name).write_bytes(b"no model")
    with pytest.raises(ValueError, match=name):
        marian_vocabulary.load(tmp_path)
    (tmp_path / marian_vocabulary.SUBWORDS).write_text(json.dumps({"a": 1}))
    with pytest.raises(ValueError):
        marian_vocabulary.load(tmp_path)


def test_a_directory_without_one_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"vocabulary\.model"):
        marian_vocabulary.load(tmp_path)
    pair()[0].save(tmp_path)
    (tmp_path / "target.spm").unlink()
    with pytest.raises(FileNotFoundError, match=r"target\.spm"):
        marian_vocabulary.load(tmp_path)


def test_merges_that_it_lacks_cannot_be_left_out():
    assert not pair()[0].is_bpe
    with pytest.raises(AssertionError):
        pair()[0].encode(["ba"], dropout=0.1)
