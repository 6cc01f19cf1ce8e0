"""Plain text as the tokens of a treebank."""

import dataclasses
import sys
from collections.abc import Sequence

import pytest

from tests import settings
from vaswani_jax.inference import plain_text
from vaswani_jax.inference.translator import Translator


def test_lines_become_the_tokens_of_a_treebank() -> None:
    pytest.importorskip("nltk", reason="nltk is not installed: .[parsing]")
    lines = [
        'He ("Mr. Li") can\'t pay $3.50 -- today...',
        "",
        " \u3000 ",
        "“It’s late,” she said.",
        "a\x00b\u2028c",
    ]
    assert plain_text.tokenize(lines) == [
        "He -LRB- `` Mr. Li '' -RRB- ca n't pay $ 3.50 -- today ...",
        "",
        "",
        "`` It 's late , '' she said .",
        "a\x00b c",
    ]


PLAIN = "I can't go.", "the man, old", "It’s me", "yet)", "(yet", "Yes!", "WE'RE"
TOKENS = "I ca n't go .", "Mr. Li 's U.S.", "1,000 ' 60s o'clock", "-LRB- a )", "a.", ""


def describe(lines: Sequence[str], *, source: str = "treebank") -> str:
    data = dataclasses.replace(settings.small_settings().data, source=source)
    plain = plain_text.PlainTextLines(data)
    plain.count(lines)
    return plain.describe()


@pytest.mark.parametrize("line", PLAIN)
def test_plain_text_for_a_parser_is_noticed(line: str) -> None:
    assert describe([line]).startswith("1 line looks like plain text, with words such")
    assert describe([line], source="text") == ""
    assert describe([line, *["a b ."] * 50]) == ""


def test_tokens_are_no_plain_text() -> None:
    for line in TOKENS:
        assert describe([line]) == "", line


def test_without_nltk_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "nltk", None)
    with pytest.raises(ImportError, match=r"pip install 'vaswani-jax\[parsing\]'"):
        plain_text.require_nltk()


def test_a_run_of_translation_has_no_tokens_of_a_treebank() -> None:
    small, vocabulary = settings.small_settings(), settings.letters_vocabulary()
    translator = Translator(small, vocabulary, members=[])
    with pytest.raises(
        ValueError, match=r"tokenize needs.*source='copy': leave it out"
    ):
        translator.tokenize(["a"])
