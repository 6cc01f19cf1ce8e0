"""The translation of HTML has its tags, and its text alone is translated."""

import time

import hypothesis
import pytest
from hypothesis import strategies

from vaswani_jax.service import markup

PARTS = ["<", ">", "<p>", "</p>", "<!--", "-->", "<code>", "</code>", "&amp;", "&lt"]
PARTS += [
    "a",
    "B c",
    " ",
    "\n",
    "<a href='>'>",
    '<a b="<p>">',
    "<br/>",
    "<!x>",
    "\u2028",
    "é",
    "&#10;",
]


def shout(text):
    pieces = markup.split(text)
    return markup.join(pieces, markup.lines_of(pieces).upper())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('<p class="green">Hello!</p>', '<p class="green">HELLO!</p>'),
        ("a\n  b <i>c</i>\n", "A B <i>C</i>\n"),
        ("a &lt;b&gt; &amp;&nbsp;c", "A &lt;B&gt; &amp; C"),
        ("<code>a<b></code>b<!-- c -->", "<code>a<b></code>B<!-- c -->"),
        ("<SCRIPT>a</script>b<style>c", "<SCRIPT>a</script>B<style>c"),
        ("<a title='b > c' href=\"d>\">e</a>", "<a title='b > c' href=\"d>\">E</a>"),
        ("<a title='b>c</a>", "<a title='b>C</a>"),
        ('<a title="x < y">text</a>', '<a title="x < y">TEXT</a>'),
        (
            "<p data-content=\"<b>Bold</b> text\" title='</p>'>a</p>",
            "<p data-content=\"<b>Bold</b> text\" title='</p>'>A</p>",
        ),
        ('<a title="b>c</a> "d" <br>', '<a title="b>C</a> "D" <br>'),
        ('<a b="c"">D "e" f</a>', '<a b="c"">D "E" F</a>'),
        ("<p title=it's>a 'b' <b>", "<p title=it's>A 'B' <b>"),
        ("1 < 2", "1 &lt; 2"),
        ("<br>&hearts;<hr>", "<br>&hearts;<hr>"),
        ("a&#10;b", "A B"),
        ("a:&nbsp;<b>&#32; b &#xA0;</b>", "A:&nbsp;<b>&#32; B &#xA0;</b>"),
        (
            'a <i translate="no">b <i>c</i> d</i> e',
            'A <i translate="no">b <i>c</i> d</i> E',
        ),
        (
            "<img translate='no'>a<P TRANSLATE=no>b<br>c",
            "<img translate='no'>A<P TRANSLATE=no>b<br>C",
        ),
        ('<i translate="yes">a</i>', '<i translate="yes">A</i>'),
        ("<i title='say translate=no'>a</i>", "<i title='say translate=no'>A</i>"),
        ("<ul><li translate=no>a<li>b</ul>c", "<ul><li translate=no>a<li>B</ul>C"),
        ("<li translate=no>a</ul>b", "<li translate=no>a</ul>B"),
        (
            "a</i translate=no>b<!x translate=no>c",
            "A</i translate=no>B<!x translate=no>C",
        ),
        ("", ""),
        (f"a&#{'9' * 5000};b", "A\ufffdB"),
        (f"a&#x{'f' * 5000}", "A\ufffd"),
        (f"&#{'0' * 5000}98;&#x{'0' * 5000}63; &#0a &#00;", "BC \ufffdA \ufffd"),
    ],
)
def test_tags_stay_and_text_is_translated(text, expected):
    assert shout(text) == expected


@hypothesis.given(strategies.lists(strategies.sampled_from(PARTS)).map("".join))
def test_the_pieces_are_all_of_it(text):
    pieces = markup.split(text)
    assert "".join(piece.text for piece in pieces) == text
    lines = markup.lines_of(pieces).split("\n")
    assert len(lines) == max(1, sum(piece.is_text for piece in pieces))
    assert all(len(line.splitlines()) <= 1 for line in lines)


@pytest.mark.parametrize(
    "begin", ["<a", "</a", "<a ", "<!", "<a/", "&#9", "<!-", '<a "']
)
def test_no_tag_without_an_end_takes_long(begin):
    text = begin + begin[-1] * 100_000
    before = time.process_time()
    assert [piece.text for piece in markup.split(text)] == [text]
    assert time.process_time() - before < 2


@pytest.mark.parametrize(
    "part", ['<a" b="', "<a' b='", '<a b="" c="', "<a b='\" c=\"'"]
)
def test_tags_without_an_end_take_linear_time(part):
    text = part * (200_000 // len(part))
    before = time.process_time()
    assert "".join(piece.text for piece in markup.split(text)) == text
    assert time.process_time() - before < 2


@pytest.mark.parametrize(
    "part",
    [
        *("<a", "<!--", "--><!--", "<code>", "<code", "&", "<", "<a '", "<a \"'"),
        *("<a translate=no>", "<a translate=no></a>", "a&nbsp;", "a  ", "&#32;"),
        *('<a b="', '<a b="" c="', "<a b='\" c=\"'"),
    ],
)
def test_no_markup_takes_long(part):
    begin = time.process_time()
    shout(part * (20_000 // len(part)))
    assert time.process_time() - begin < 5
