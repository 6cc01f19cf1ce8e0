"""Plain text as the tokens of a treebank."""

import sys

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
