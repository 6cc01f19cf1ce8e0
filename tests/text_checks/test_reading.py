"""Where the texts of settings come from."""

import pathlib

import pytest

from tests import settings
from vaswani_jax.text_checks import reading


def test_generated_text_is_read_as_training_reads_it(tmp_path: pathlib.Path) -> None:
    texts = reading.find(settings.small_settings(), tmp_path)
    assert [text.name for text in texts.all] == ["train", "valid", "test"]
    assert texts.vocabulary is None and texts.findings == []
    for text, size in zip(texts.all, (48, 8, 8), strict=True):
        # As often as asked.
        assert list(text.read()) == list(text.read())
        assert len(list(text.read())) == size
        assert text.origin == "copy"


def test_a_vocabulary_that_settings_name_is_used(tmp_path: pathlib.Path) -> None:
    model = tmp_path / "letters.model"
    model.write_bytes(settings.letters_vocabulary().source.model)
    named = settings.small_settings(
        **{"data.vocabulary": str(model), "data.byte_fallback": True}
    )
    texts = reading.find(named, tmp_path)
    assert texts.vocabulary is not None
    assert texts.vocabulary.size == settings.letters_vocabulary().size
    missing = settings.small_settings(**{"data.vocabulary": str(tmp_path / "no.model")})
    with pytest.raises(FileNotFoundError, match=r"no\.model"):
        reading.find(missing, tmp_path)


def test_trees_are_read_once_each(tmp_path: pathlib.Path) -> None:
    (tmp_path / "trees").write_text("(S (VP (VB go)))\n(S (VP (VB run)))\n")
    values = {"data.text_directory": str(tmp_path), "data.gold_repeats": 3}
    trees = settings.small_settings(**(settings.TREEBANK | values))
    [text] = reading.find(trees, tmp_path).all
    assert [source for source, _ in text.read()] == ["go", "run"]
    assert str(tmp_path) in text.origin
