"""Where the texts of settings come from."""

import pathlib

import pytest

import vaswani_jax
from tests import settings
from vaswani_jax.core import types
from vaswani_jax.data import prepared
from vaswani_jax.data.training_text import TrainingText
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


def test_without_a_workdir_no_prepared_data_is_looked_for(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "manifest.json").write_text("another program's")
    monkeypatch.chdir(tmp_path)
    texts = reading.find(settings.small_settings(), None)
    assert texts.vocabulary is None and texts.findings == []


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


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"source": "none.en"}, r"source: no file .*none\.en"),
        ({"target": "q.tsv#3"}, r"q\.tsv, line 1: no column 3"),
        ({"target": "news.de"}, r"the two sides must have the same number of lines"),
    ],
)
def test_errors_name_the_corpus_as_those_of_prepare_do(
    fields: dict[str, str], message: str, tmp_path: pathlib.Path
) -> None:
    (tmp_path / "news.en").write_text("a b\n")
    (tmp_path / "news.de").write_text("c d\n")
    (tmp_path / "q.tsv").write_text("e\tf\ng\th\n")
    corpora = [
        {"name": "news", "source": "news.en", "target": "news.de"},
        {"name": "q", "source": "q.tsv#1", "target": "q.tsv#2"} | fields,
    ]
    held_out = [f"data.{s}_{side}" for s in ("valid", "test") for side in types.SIDES]
    values = {"data.source_locale": "en", "data.target_locale": "de"}
    values |= {"data.text_directory": str(tmp_path)} | dict.fromkeys(held_out, "")
    own = vaswani_jax.load_config("own_text", values | {"data.corpora": corpora})
    errors = (ValueError, FileNotFoundError)
    with pytest.raises(errors, match=rf"corpora, corpus 'q': .*{message}") as checked:
        vaswani_jax.check_data(own)
    with pytest.raises(errors) as prepared:
        TrainingText(own.data, seed=0).count()
    assert str(checked.value) == str(prepared.value)


def test_trees_that_are_gone_are_read_from_the_prepared_data(
    tmp_path: pathlib.Path,
) -> None:
    trees = ["(S (NP (PRP I)) (VP (VBP go)))", "(S (VP (VB run)))"]
    for name in ("trees", "valid"):
        (tmp_path / name).write_text("".join(f"{tree}\n" for tree in trees))
    values = settings.TREEBANK | {
        "data.text_directory": str(tmp_path),
        "data.valid_trees": "valid",
        "data.vocab_size": 20,
    }
    configured = settings.small_settings(**values)
    workdir = tmp_path / "run"
    prepared.open_or_prepare(configured, workdir / "data", rebuild=False)
    (tmp_path / "trees").unlink()
    texts = reading.find(configured, workdir)
    [text] = [text for text in texts.all if text.split == "train"]
    assert "prepared" in " ".join(texts.notes)
    assert list(text.read()) == [("I go", trees[0]), ("run", trees[1])]


def test_the_place_of_a_text_on_a_store_is_its_url(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VASWANI_JAX_MIRRORS", str(tmp_path / "mirrors"))
    (tmp_path / "text").mkdir()
    for name in ("train.source", "train.target"):
        (tmp_path / "text" / name).write_text("a b\n")
    url = f"file://{tmp_path}/text"
    values = {"data.text_directory": url, "data.source_locale": "en"}
    values |= {"data.target_locale": "de"} | dict.fromkeys(
        (f"data.{s}_{side}" for s in ("valid", "test") for side in types.SIDES), ""
    )
    own = vaswani_jax.load_config("own_text", values)
    [text] = reading.find(own, None).all
    assert text.origin == f"{url}/train.source and {url}/train.target"
