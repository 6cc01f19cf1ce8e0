"""Find the text of HTML, and put its translation in its place.

Each text between two tags is translated by itself; tags, comments and the contents of
elements that are `UNTRANSLATED` or have `translate="no"` stay as they are.
"""

import dataclasses
import html
import re
from collections.abc import Iterator, Sequence

UNTRANSLATED = frozenset("code kbd pre samp script style textarea var".split())
# A value between quotes may have a `<` or a `>`. In a tag with a stray quotation mark,
# such as one that is never closed, every `<` begins another tag. `*+` never goes back,
# a name has no quotation mark, and so few unclosed tags overlap: the search takes
# linear time.
QUOTED = r"""=\s*+(?:"[^"]*+"|'[^']*+')"""
QUOTED_WITHOUT_TAGS = r"""=\s*+(?:"[^"<]*+"|'[^'<]*+')"""
TAG = re.compile(
    r"""<!--|<(?P<end>/?)(?P<name>[A-Za-z][^\s<>/"']*+)"""
    rf"""(?:(?:[^<>="']|{QUOTED}|=)*+>|(?:[^<>=]|{QUOTED_WITHOUT_TAGS}|=)*+>)"""
    r"|<[!?][^<>]*+>"
)
# Python reads no number of thousands of digits: entities have no zeros before their
# number, and one beyond all characters is the sign of an unknown character.
ZEROS = re.compile(r"(&#)0+(?=[0-9])|(&#[xX])0+(?=[0-9a-fA-F])")
# White space, also as an entity: a no-break space, or a character by its number.
SPACE = r"(?:\s|&(?:nbsp|#(?:32|160)|#[xX](?:20|[aA]0));)"
FIRST_SPACES = re.compile(f"{SPACE}*+")
LAST_SPACE = re.compile(rf"{SPACE}\Z")
LONGEST_SPACE = len("&nbsp;")
ATTRIBUTE = re.compile(r"""\s([^\s=<>/]+)\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'<>]+))""")
# Elements without contents and end tag.
VOID = frozenset(
    "area base br col embed hr img input link meta source track wbr".split()
)
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
    spaces = FIRST_SPACES.match(old)
    begin, end = spaces.end() if spaces else 0, len(old)
    while space := LAST_SPACE.search(old, max(begin, end - LONGEST_SPACE), end):
        end = space.start()
    return f"{old[:begin]}{html.escape(new, quote=False)}{old[end:]}"


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
        elif (
            name
            and name not in VOID
            and not match["end"]
            and _is_untranslated(match[0])
        ):
            end = _end_of_element(markup, name, end)
        yield Piece(markup[match.start() : end], is_text=False)
        position = end
    yield _text(markup[position:])


def _end_of_element(markup: str, name: str, begin: int) -> int:
    """Return where the end tag of an element begins.

    Without one, the element ends at the next tag of its name, or at the next tag.

    Args:
        markup: The HTML.
        name: The name of the element.
        begin: Where its contents begin.
    """
    depth = 1
    tags = re.compile(rf"<(/?){re.escape(name)}(?=[\s/>])", re.IGNORECASE)
    first = TAG.search(markup, begin)
    end = first.start() if first else len(markup)
    for number, tag in enumerate(tags.finditer(markup, begin)):
        if not number:
            end = tag.start()
        depth += -1 if tag[1] else 1
        if not depth:
            return tag.start()
    return end


def _is_untranslated(tag: str) -> bool:
    """Return True if a start tag has translate="no"."""
    return any(
        name.lower() == "translate" and "".join(values).lower() == "no"
        for name, *values in ATTRIBUTE.findall(tag)
    )


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
