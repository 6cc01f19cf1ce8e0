"""A mistyped name is answered with the one that was meant."""

import pathlib

import pytest

from vaswani_jax import load_config
from vaswani_jax.core import suggestions


@pytest.mark.parametrize(
    ("key", "meant"),
    [
        ("beam_size", ["search.beam_size"]),
        ("beam_sice", ["search.beam_size"]),
        ("model.beam_size", ["search.beam_size"]),
        ("serch.beam_size", ["search.beam_size"]),
        ("search.beam", ["search.beam_size"]),
        ("modell", ["model"]),
        ("sead", ["seed"]),
        (
            "source_tokens_per_batch",
            ["data.source_tokens_per_batch", "search.source_tokens_per_batch"],
        ),
    ],
)
def test_an_unknown_setting_is_answered_with_those_of_its_name(
    key: str, meant: list[str]
) -> None:
    question = " or ".join(f"config.{name}" for name in meant)
    assert suggestions.suggest_setting(key) == f"; did you mean {question}?"


def test_a_word_like_no_name_has_no_suggestion() -> None:
    assert suggestions.suggest_setting("optimizer.zzz") == ""
    assert suggestions.suggest("zzz", ["train", "translate"]) == ""


def test_a_missing_directory_is_answered_with_one_beside_it(
    tmp_path: pathlib.Path,
) -> None:
    (tmp_path / "opus").mkdir()
    (tmp_path / "opuss.txt").touch()  # a file
    question = f"; did you mean {tmp_path / 'opus'}?"
    assert suggestions.suggest_directory(tmp_path / "opuss") == question
    assert suggestions.suggest_directory(tmp_path / "zzz") == ""
    assert suggestions.suggest_directory(tmp_path / "nowhere" / "opuss") == ""


def test_load_config_suggests_the_section_of_a_key_without_one() -> None:
    with pytest.raises(ValueError, match=r"did you mean config\.search\.beam_size\?"):
        load_config("demo", {"beam_size": 3})
