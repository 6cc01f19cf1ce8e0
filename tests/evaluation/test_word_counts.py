"""Words are counted in the lines of a file."""

import pathlib

import pytest

from tests import settings
from vaswani_jax.data import prepared
from vaswani_jax.evaluation import word_counts


def test_words_of_a_file_are_counted_up_to_a_limit(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "train.de"
    file.write_text("ein Hund\nein Haus ein\nzu viel\n")
    monkeypatch.setattr(word_counts, "MAX_TRAINING_LINES", 2)
    found = word_counts.count_file(str(file), tokenize=str.split)
    assert found.counts == {"ein": 3, "Hund": 1, "Haus": 1}
    assert found.origin == "the first 2 lines of train.de"


def test_where_words_were_counted_shows_no_folder_of_the_machine(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "text").mkdir()
    (tmp_path / "text/train.tsv").write_text("a dog\tein Hund\n")
    monkeypatch.chdir(tmp_path)
    for name, shown in (
        (f"{tmp_path}/text/train.tsv#2", "train.tsv#2"),
        (f"{tmp_path}/text/*.tsv#2", "*.tsv#2"),
        ("text/train.tsv#2", "text/train.tsv#2"),
    ):
        counted = word_counts.count_file(name, tokenize=str.split)
        assert counted.origin == f"the first 1 lines of {shown}"
        assert counted.counts == {"ein": 1, "Hund": 1}


@pytest.mark.parametrize("sharing", ["shared", "separate"])
def test_words_of_one_of_several_target_languages_are_counted(
    tmp_path: pathlib.Path, sharing: str
) -> None:
    pairs = [("<2de> a b", "b b a"), ("<2fr> a b", "c b"), ("<2de> c", "c")]
    for number, side in enumerate(("source", "target")):
        lines = [pair[number] for pair in pairs]
        (tmp_path / f"train.{side}").write_text("".join(f"{n}\n" for n in lines))
    configured = settings.small_settings(
        **{
            "data.source": "text",
            "data.text_directory": str(tmp_path),
            "data.train_source": "train.source",
            "data.train_target": "train.target",
            **dict.fromkeys(
                (
                    f"data.{s}_{t}"
                    for s in ("valid", "test")
                    for t in ("source", "target")
                ),
                "",
            ),
            "data.target_locale": "de,fr",
            "data.user_symbols": "<2de>,<2fr>",
            "data.vocab_size": 271,
            "data.target_vocab_size": 269 if sharing == "separate" else 0,
            "data.vocabulary_sharing": sharing,
            "data.byte_fallback": True,
        }
    )
    directory = tmp_path / "data"
    data = prepared.open_or_prepare(configured, directory, rebuild=False)
    counted = word_counts.count_prepared(
        data, name="a", tokenize=str.split, settings=configured.data, locale="de"
    )
    assert counted.counts == {"a": 1, "b": 2, "c": 1}
    assert counted.origin == "2 lines in de among 3 of 3 training lines of a"
