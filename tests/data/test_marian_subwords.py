"""A vocabulary of two SentencePiece models and one list of subwords."""

import functools
import json

import pytest

from tests.data import small_vocabularies
from vaswani_jax.core import types
from vaswani_jax.data import vocabulary as vocabularies
from vaswani_jax.data.marian_subwords import MarianSubwords
from vaswani_jax.data.vocabulary import Vocabulary

CODE = ">>fra<<"
FILES = ["source.spm", "target.spm", "vocabulary.json"]


@functools.lru_cache
def pair():
    sides = [small_vocabularies.trained("unigram", False, seed=seed) for seed in (1, 2)]
    names = {name for side in sides for name in side.source.spellings[4:]}
    special = ["<pad>", "<start>", "</s>", "<unk>", CODE]
    spellings = [*special, *sorted(names)]
    source, target = (MarianSubwords(side.source.model, spellings) for side in sides)
    return Vocabulary(source, target, is_shared=True), sides


def test_each_side_is_segmented_by_its_own_model():
    vocabulary, sides = pair()
    lines = small_vocabularies.training_lines(3)[:40]
    differs = False
    for target, side in enumerate(sides):
        expected = [[side.source.subword(i) for i in ids] for ids in side.encode(lines)]
        encoded = vocabulary.encode(lines, target=bool(target))
        assert [
            [vocabulary.source.subword(i) for i in ids] for ids in encoded
        ] == expected
        assert [vocabulary.decode(ids) for ids in encoded] == lines
        differs |= encoded != vocabulary.encode(lines, target=not target)
    assert differs


def test_a_language_code_is_one_subword_where_a_line_begins():
    vocabulary, _ = pair()
    [plain] = vocabulary.encode(["ba ko"])
    code = vocabulary.source.subword_id(CODE)
    assert vocabulary.source.subword(code) == CODE
    for before in ("", " ", "\t", "\ufeff", "\u200b "):
        assert vocabulary.encode([f"{before}{CODE}ba ko"]) == [[code, *plain]]
    encoded = vocabulary.encode([f"ba {CODE}", ">>deu<<ba", ">>ba"])
    assert not any(code in ids for ids in encoded)
    assert encoded[1] == [types.UNK_ID, *vocabulary.encode(["ba"])[0]]
    assert [vocabulary.source.num_tags(ids) for ids in ([code, 9], [9, code], [])] == [
        1,
        0,
        0,
    ]
    without = MarianSubwords(
        vocabulary.source.model,
        [vocabulary.source.subword(i) for i in range(vocabulary.size) if i != code],
    )
    assert len(without.encode([">>deu<<ba"])[0]) > 2


def test_what_spells_a_special_subword_is_none():
    vocabulary, _ = pair()
    for name in ("<pad>", "<start>", "</s>", "<unk>"):
        [ids] = vocabulary.encode([f"ba {name}"])
        assert not {types.PAD_ID, types.BOS_ID, types.EOS_ID} & set(ids)
    assert vocabulary.source.subword_id("not a subword") == types.UNK_ID
    assert vocabulary.encode(["", " \t"]) == [[], []]


def test_it_is_the_same_when_loaded(tmp_path):
    vocabulary, sides = pair()
    vocabulary.save(tmp_path)
    loaded = vocabularies.load(tmp_path)
    lines = small_vocabularies.training_lines(3)
    assert loaded.encode(lines) == vocabulary.encode(lines)
    assert loaded.fingerprint == vocabulary.fingerprint != sides[0].fingerprint
    assert loaded.size == vocabulary.size
    assert loaded.source.model == vocabulary.source.model
    assert loaded.target.model == vocabulary.target.model


@pytest.mark.parametrize("name", FILES)
def test_a_damaged_file_is_named(tmp_path, name):
    pair()[0].save(tmp_path)
    (tmp_path / name).write_bytes(b"no model")
    with pytest.raises(ValueError, match=name):
        vocabularies.load(tmp_path)
    (tmp_path / "vocabulary.json").write_text(json.dumps({"a": 1}))
    with pytest.raises(ValueError):
        vocabularies.load(tmp_path)


def test_a_directory_without_one_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"vocabulary\.model"):
        vocabularies.load(tmp_path)
    pair()[0].save(tmp_path)
    (tmp_path / "target.spm").unlink()
    with pytest.raises(FileNotFoundError, match=r"target\.spm"):
        vocabularies.load(tmp_path)


def test_merges_that_it_lacks_cannot_be_left_out():
    assert not pair()[0].accepts_dropout
    with pytest.raises(AssertionError):
        pair()[0].encode(["ba"], dropout=0.1)
