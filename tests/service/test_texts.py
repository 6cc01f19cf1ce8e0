"""A text is its sentences and the white space around them."""

import hypothesis
import pytest
from hypothesis import strategies

from vaswani_jax.service import texts

# Line ends, spaces, ends of sentences, and other characters that break things.
PIECES = ["\r\n", "\n", "\r", "\u2028", "\x85", "\v", "\f", " ", "\u3000", "\t"]
PIECES += ["\x00"]
PIECES += [
    ". ",
    "! ",
    "。",
    "Dr. ",
    "a",
    "Ab",
    "é",
    "\u0301",
    "\U0001f469\u200d",
    "3.1",
]
TEXTS = strategies.lists(strategies.sampled_from(PIECES)).map("".join)


@hypothesis.given(
    TEXTS | strategies.text(), strategies.sampled_from(["en", "zh", "th"])
)
@hypothesis.settings(max_examples=60)
def test_all_but_the_space_between_sentences_of_a_paragraph_stays(text, locale):
    spans = texts.split(text, locale)
    parts = [text[span.begin : span.end] for span in spans]
    assert all(part and part == part.strip() for part in parts)
    joined = texts.join(text, spans, parts, separators=[" "] * len(spans))
    assert "".join(joined.text.split()) == "".join(text.split())
    ends = texts.LINE_END.findall
    assert ends(joined.text) == ends(text)
    for span, part in zip(joined.spans, parts, strict=True):
        assert joined.text[span.begin : span.end] == part
    lines, originals = (texts.LINE_END.split(each) for each in (joined.text, text))
    for line, original in zip(lines, originals, strict=True):
        indentation = len(original) - len(original.lstrip())
        assert line[:indentation] == original[:indentation]
        assert line.strip() or line == original


@pytest.mark.parametrize(
    ("translations", "joined"),
    [(["A.", "B."], "A. B."), (["", "B."], "B."), (["A.", ""], "A."), (["", ""], "")],
)
def test_an_empty_translation_has_no_separator(translations, joined):
    text = "One here.   Two there."
    spans = texts.split(text, "en")
    separators = [" "] * len(spans)
    assert texts.join(text, spans, translations, separators=separators).text == joined


def test_a_language_without_spaces_has_nothing_between_sentences():
    text = "你好。再见！"
    spans = texts.split(text, "zh")
    assert texts.join(text, spans, ["a", "b"], separators=["", ""]).text == "ab"


def test_each_translation_has_the_separator_of_its_language():
    text = "One. Two. Three."
    spans = texts.split(text, "en")
    joined = texts.join(text, spans, ["A.", "一。", "B."], separators=[" ", "", " "])
    assert joined.text == "A.一。 B."
