"""The target languages of a run, and the tags of its source lines."""

import dataclasses
import string

import pytest

from tests import settings
from vaswani_jax.core import languages

SEVERAL = {
    "data.source": "cldr",
    "data.target_locale": "de,pt_BR",
    "data.user_symbols": "<2de>,<2pt_BR>",
}
JAPANESE = {"data.target_locale": "de,ja", "data.user_symbols": "<2de>,<2ja>"}


def test_a_run_with_one_target_locale_has_no_tags() -> None:
    data = settings.small_settings(**{"data.target_locale": "pt_BR"}).data
    assert languages.target_locales(data) == ("pt_BR",)
    assert languages.locales_by_tag(data) == {}
    assert languages.find_tag("<2pt_BR> Hello", data) is None


def test_each_of_several_target_locales_has_a_tag() -> None:
    data = settings.small_settings(**SEVERAL).data
    assert languages.target_locales(data) == ("de", "pt_BR")
    assert languages.locales_by_tag(data) == {"<2de>": "de", "<2pt_BR>": "pt_BR"}


@pytest.mark.parametrize(
    ("line", "tag"),
    [
        ("<2de> Hello", "<2de>"),
        ("  <2pt_BR>\tHello <2de>", "<2pt_BR>"),
        ("<2de>", "<2de>"),
        ("<2de>Hello", "<2de>"),
        ("<2fr> Hello", None),
        ("Hello <2de>", None),
        ("", None),
    ],
)
def test_a_tag_begins_a_line(line: str, tag: str | None) -> None:
    data = settings.small_settings(**SEVERAL).data
    assert languages.find_tag(line, data) == tag


@pytest.mark.parametrize("num_locales", [3, 150])
def test_a_tag_is_found_among_any_number(num_locales: int) -> None:
    codes = (f"{a}{b}" for a in "pqrstu" for b in string.ascii_lowercase)
    names = ["pt", "pt_BR", *(code for code in codes if code != "pt")][:num_locales]
    data = settings.small_settings().data
    data = dataclasses.replace(data, target_locale=",".join(names))
    tags = {f"<2{name}>": name for name in names}
    lines = [
        *(f"{tag} Hello" for tag in tags),
        *(f" \u200b{tag}> <2pt>" for tag in tags),
        *("<2xx> Hello", "<2pt", "<2pt <2pt_BR>", "<2>", ">", "<", "", "Hello <2pt>"),
    ]
    for line in lines:
        expected = None
        for tag in tags:
            if line.lstrip(" \u200b").startswith(tag):
                expected = tag
        assert languages.find_tag(line, data) == expected, line
        locale = tags[expected] if expected else "pt"
        assert languages.line_locale(line, data) == locale, line
    by_tag = languages.locales_by_tag(data)
    assert by_tag == tags
    # Made once, as every line of a text needs it.
    assert languages.locales_by_tag(dataclasses.replace(data)) is by_tag


def test_the_first_line_without_a_tag_is_refused_with_its_number() -> None:
    data = settings.small_settings(**SEVERAL).data
    languages.check_tags(["<2de> Hello", "", " ", "<2pt_BR> 3"], data, first_line=1)
    with pytest.raises(ValueError) as error:
        lines = ["<2de> Hello", "", "<2fr> Hello", "Hello"]
        languages.check_tags(lines, data, first_line=11)
    assert str(error.value) == (
        "line 13 must begin with a tag that names the target language, <2de> or "
        "<2pt_BR>, got '<2fr> Hello'"
    )


def test_a_run_with_one_target_locale_takes_any_line() -> None:
    languages.check_tags(["Hello"], settings.small_settings().data, first_line=1)


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (">>fra<< Hello", ">>fra<< "),
        (" >>zho_Hans<<Hello", " >>zho_Hans<<"),
        (">>Nein<<, sagte er.", ""),
        (">>home<< page", ""),
        ("Hello >>fra<<", ""),
    ],
)
def test_only_known_languages_have_codes(line: str, code: str) -> None:
    data = settings.small_settings(**{"data.target_locale": "de"}).data
    assert languages.split_code(line) == (code, line.removeprefix(code))
    assert languages.remove_tag(line, data) == line.removeprefix(code)
    assert (languages.line_locale(line, data) == "de") == (not code)


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("<x> Hello", "Hello"),
        (">>fra<< <x> Hello", "Hello"),
        ("<x>\t<x>", ""),
        ("<xy> Hello", "<xy> Hello"),
        ("Hello <x>", "Hello <x>"),
    ],
)
def test_the_tags_of_corpora_are_no_text(line: str, text: str) -> None:
    data = settings.small_settings(**settings.TAGGED).data
    assert languages.remove_tag(line, data) == text
    assert languages.is_empty(line, data) == (not text)
    assert "".join(languages.split_corpus_tags(line, data)) == line
    without_tags = languages.remove_corpus_tags(line, data)
    assert languages.remove_tag(without_tags, data) == text
    assert languages.find_tag(without_tags, data) == languages.find_tag(line, data)


def test_the_tag_of_a_corpus_follows_that_of_the_language() -> None:
    data = settings.small_settings(**SEVERAL).data
    for line, expected in (
        ("<2de> Hello", "<2de> <BT> Hello"),
        (">>fra<< Hello", ">>fra<< <BT> Hello"),
        ("\ufeff>>fra<< Hello", ">>fra<< <BT> Hello"),
        (">>Nein<<, sagte er.", "<BT> >>Nein<<, sagte er."),
    ):
        assert languages.add_tag(line, "<BT>", data) == expected


@pytest.mark.parametrize(
    ("line", "changes", "separator"),
    [
        ("Hello", {"data.target_locale": "de"}, " "),
        ("Hello", {"data.target_locale": "zh_Hans"}, ""),
        ("Hello", {"data.target_locale": "th", "data.text_form": "tokenized"}, " "),
        ("<2de> Hello", SEVERAL, " "),
        ("<2ja> Hello", SEVERAL | JAPANESE, ""),
        (">>jpn<< Hello", {"data.target_locale": "mul"}, ""),
        (">>fra<< Hello", {"data.target_locale": "mul"}, " "),
    ],
)
def test_pieces_are_joined_as_the_target_language_writes(
    line: str, changes: dict[str, str], separator: str
) -> None:
    data = settings.small_settings(**changes).data
    assert languages.piece_separator(line, data) == separator
