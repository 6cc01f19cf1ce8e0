"""A vocabulary for both sides or one for each, and models with ids of their own."""

import io

import pytest
import sentencepiece

from tests.data import small_text, small_vocabularies
from vaswani_jax.core import types
from vaswani_jax.data import prepared, run_vocabulary
from vaswani_jax.data import vocabulary as vocabularies
from vaswani_jax.data.subwords import Subwords
from vaswani_jax.data.tokenizer import UNKNOWN
from vaswani_jax.data.vocabulary import Vocabulary

# Ids of padding, begin, end and the unknown subword as other tools choose them.
IDS = {
    "SentencePiece's": {},
    "T5's": {"pad_id": 0, "eos_id": 1, "unk_id": 2, "bos_id": -1},
    "BART's": {"bos_id": 0, "pad_id": 1, "eos_id": 2, "unk_id": 3},
    "no marks": {"pad_id": -1, "bos_id": -1, "eos_id": -1, "unk_id": 0},
    "BERT's": {
        **{"pad_id": 0, "unk_id": 1, "bos_id": 2, "eos_id": 3, "pad_piece": "[PAD]"},
        **{"unk_piece": "[UNK]", "bos_piece": "[CLS]", "eos_piece": "[SEP]"},
    },
}


def foreign_model(**ids):
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(small_vocabularies.training_lines(1)),
        model_writer=model,
        vocab_size=60,
        minloglevel=2,
        **ids,
    )
    return model.getvalue()


@pytest.mark.parametrize("ids", IDS.values(), ids=IDS)
def test_a_model_with_any_ids_gives_its_own_subwords_under_ours(ids):
    model = foreign_model(**ids)
    processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    subwords = Subwords(model)
    lines = [*small_vocabularies.training_lines(1), "ba \u20ac"]
    encoded = subwords.encode(lines)
    for line, names, tokens in zip(
        lines, processor.encode(lines, out_type=str), encoded, strict=True
    ):
        # SentencePiece spells what is unknown; the rest has its names.
        unknown = processor.unk_id()
        expected = [
            "<unk>" if processor.piece_to_id(name) == unknown else name
            for name in names
        ]
        assert [subwords.subword(token) for token in tokens] == expected
        assert subwords.decode(tokens) == processor.decode(processor.encode(line))
    assert min(map(min, encoded)) == types.UNK_ID
    assert types.UNK_ID not in encoded[0]
    assert len(set(subwords.spellings)) == subwords.size
    # Engines that look subwords up expect these names.
    assert subwords.spellings[:4] == ["<pad>", "<s>", "</s>", "<unk>"]
    assert [subwords.surface(i) for i in range(4)] == ["", "", "", UNKNOWN]
    names = [subwords.subword_id(name) for name in subwords.spellings]
    assert names == list(range(subwords.size))


def test_a_special_token_of_a_model_is_no_symbol_to_add():
    subwords = Subwords(foreign_model(**IDS["BERT's"]))
    with pytest.raises(ValueError, match=r"user_symbols must have no special.*SEP"):
        subwords.extend(["[SEP]"])


def two_sides():
    sides = [small_vocabularies.trained("bpe", True, seed=seed) for seed in (1, 2)]
    return Vocabulary(sides[0].source, Subwords(foreign_model()), is_shared=False)


def test_each_side_has_its_own_ids_and_size():
    vocabulary = two_sides()
    lines = small_vocabularies.training_lines(1)[:9]
    source, target = vocabulary.source, vocabulary.target
    assert vocabulary.size == types.VocabSizes(source.size, target.size)
    assert vocabulary.encode(lines) == source.encode(lines)
    assert vocabulary.encode(lines, target=True) == target.encode(lines)
    encoded = vocabulary.encode(lines, target=True)
    assert [vocabulary.decode(ids) for ids in encoded] == lines


def test_separate_vocabularies_are_the_same_when_loaded(tmp_path):
    vocabulary = two_sides()
    vocabulary.save(tmp_path)
    loaded = vocabularies.load(tmp_path)
    assert loaded.fingerprint == vocabulary.fingerprint
    assert not loaded.is_shared
    assert loaded.target.spellings == vocabulary.target.spellings
    swapped = Vocabulary(vocabulary.target, vocabulary.source, is_shared=False)
    assert swapped.fingerprint != vocabulary.fingerprint
    (tmp_path / "target.model").unlink()
    with pytest.raises(FileNotFoundError, match=r"target\.model is missing"):
        vocabularies.load(tmp_path)


def test_an_extended_vocabulary_keeps_its_ids_and_adds_symbols_at_the_end():
    vocabulary = small_vocabularies.trained("bpe", True)
    lines = small_vocabularies.training_lines(1)
    extended = vocabulary.extend(["<2de>"])
    assert extended.encode(lines) == vocabulary.encode(lines)
    names = vocabulary.source.spellings
    assert extended.source.spellings == [*names, "\u2581<2de>", "<2de>"]
    [ids] = extended.encode(["<2de> bako"])
    assert ids == [len(names), *vocabulary.encode(["bako"])[0]]
    assert extended.extend(["<2de>"]).fingerprint == extended.fingerprint
    assert vocabulary.extend([]).fingerprint == vocabulary.fingerprint


def test_given_files_are_the_vocabularies_of_the_data(text, tmp_path, monkeypatch):
    monkeypatch.setattr(run_vocabulary, "learn_subwords", small_text.forbidden)
    files = {}
    for key, ids in (("vocabulary", IDS["T5's"]), ("target_vocabulary", {})):
        path = tmp_path / key
        path.write_bytes(foreign_model(**ids))
        files[f"data.{key}"] = str(path)
    separate = {**files, "data.vocabulary_sharing": "separate"}
    data = small_text.prepare(text, **separate)
    assert data.vocabulary.source.model == (tmp_path / "vocabulary").read_bytes()
    assert data.vocabulary.target.model == (tmp_path / "target_vocabulary").read_bytes()
    # A run that starts from it may add symbols, though the settings name the files.
    more = small_text.settings_of(text, **separate, **{"data.user_symbols": "<b>"})
    extended = prepared.open_or_prepare(
        more,
        text.with_name("extended"),
        rebuild=False,
        initial_vocabulary=data.vocabulary.extend(["<a>", "<b>"]),
    )
    assert extended.vocabulary.source.size == data.vocabulary.source.size + 4
    # What was prepared serves without the files, and not with others.
    (tmp_path / "target_vocabulary").unlink()
    assert small_text.prepare(text, **separate).vocabulary.size == data.vocabulary.size
    (tmp_path / "vocabulary").write_bytes(foreign_model())
    with pytest.raises(ValueError, match=r"config\.data\.vocabulary=.*fingerprint"):
        small_text.prepare(text, **separate)


def test_each_side_learns_from_its_own_lines_to_its_own_size(text):
    data = small_text.prepare(
        text,
        **{
            "data.vocabulary_sharing": "separate",
            "data.target_vocab_size": 38,
        },
    )
    assert data.vocabulary.size == types.VocabSizes(40, 38)
    opened = prepared.open_prepared(data.directory)
    assert opened.vocabulary.fingerprint == data.vocabulary.fingerprint
