"""Find the text of HTML, and put its translation in its place.

Each text between two tags is translated by itself; tags, comments and the contents of
`UNTRANSLATED` elements stay as they are.
"""

import dataclasses
import html
import re
from collections.abc import Iterator, Sequence

UNTRANSLATED = frozenset("code kbd pre samp script style textarea var".split())
# No tag has a `<` inside, so that a search for its end stops at the next one; a `>`
# may stand in a value between quotes. What is read is not read again (`*+`): a tag
# without an end takes no longer than another one.
TAG = re.compile(
    r"<!--|<(?P<end>/?)(?P<name>[A-Za-z][^\s<>/]*+)"
    r"""(?:[^<>=]|=\s*+(?:"[^"<]*+"|'[^'<]*+')|=)*+>|<[!?][^<>]*+>"""
)
# Python reads no number of thousands of digits: entities have no zeros before their
# number, and one beyond all characters is the sign of an unknown character.
ZEROS = re.compile(r"(&#)0+(?=[0-9])|(&#[xX])0+(?=[0-9a-fA-F])")
NO_CHARACTER = re.compile(r"&#(?:[1-9][0-9]{7,}|[xX][1-9a-fA-F][0-9a-fA-F]{6,});?")


@dataclasses.dataclass(frozen=True)
class Piece:
    """A part of HTML.

    Attributes:
        text: Its characters.
        is_text: Whether it is translated: it has a letter or a digit, and no tag.
    """

    text: str
    is_text: bool


def split(markup: str) -> list[Piece]:
    """Return the pieces of HTML, which together are all of it.

    >>> [piece.text for piece in split("<p>A &amp; <b>b</b>!</p>") if piece.is_text]
    ['A &amp; ', 'b']
    """
    return [piece for piece in _pieces(markup) if piece.text]


def lines_of(pieces: Sequence[Piece]) -> str:
    """Return the texts among pieces, one a line, without entities.

    >>> lines_of(split("<p>A &amp;&#32;<b>b"))
    'A &\\nb'
    """
    texts = (_unescape(piece.text) for piece in pieces if piece.is_text)
    return "\n".join(" ".join(text.split()) for text in texts)


def join(pieces: Sequence[Piece], lines: str) -> str:
    """Return HTML with other texts between its tags.

    >>> join(split("<p>A &amp; <b>b"), "X <\\nY")
    '<p>X &lt; <b>Y'

    Args:
        pieces: What `split` returns.
        lines: The texts, one a line.
    """
    translations = iter(lines.split("\n"))
    return "".join(
        _replace(piece.text, next(translations)) if piece.is_text else piece.text
        for piece in pieces
    )


def _replace(old: str, new: str) -> str:
    """Return a text, escaped, with the white space around another one."""
    begin = old[: len(old) - len(old.lstrip())]
    end = old[len(old.rstrip()) :]
    return f"{begin}{html.escape(new, quote=False)}{end}"


def _pieces(markup: str) -> Iterator[Piece]:
    position = 0
    while match := TAG.search(markup, position):
        yield _text(markup[position : match.start()])
        end = match.end()
        name = (match["name"] or "").lower()
        if match[0] == "<!--":
            end = _end(markup, "-->", end)
        elif name in UNTRANSLATED and not match["end"]:
            closing = re.compile(rf"</{name}\b", re.IGNORECASE).search(markup, end)
            end = closing.start() if closing else len(markup)
        yield Piece(markup[match.start() : end], is_text=False)
        position = end
    yield _text(markup[position:])


def _text(text: str) -> Piece:
    return Piece(text, is_text=any(map(str.isalnum, _unescape(text))))


def _unescape(text: str) -> str:
    """Return a text whose entities are characters."""
    text = ZEROS.sub(lambda match: match[1] or match[2], text)
    return html.unescape(NO_CHARACTER.sub("\ufffd", text))


def _end(markup: str, mark: str, begin: int) -> int:
    """Return where a mark ends; the end of the text if there is none."""
    position = markup.find(mark, begin)
    return len(markup) if position < 0 else position + len(mark)
