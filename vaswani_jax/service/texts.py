"""Split texts into sentences, and join their translations as the text was laid out."""

import dataclasses
import re
from collections.abc import Iterator, Sequence

from vaswani_jax.inference import sentences

# What ends a paragraph, as `str.splitlines` has it, but for the separators of files
# and records, which no text has between paragraphs.
LINE_END = re.compile("\r\n|[\n\r\v\f\x85\u2028\u2029]")


@dataclasses.dataclass(frozen=True)
class Span:
    """A part of a text.

    Attributes:
        begin: The index of its first character.
        end: The character after its last.
        paragraph: The number of its paragraph, from 0.
    """

    begin: int
    end: int
    paragraph: int = 0


@dataclasses.dataclass(frozen=True)
class JoinedText:
    """A translated text.

    Attributes:
        text: The translation.
        spans: The span of each sentence's translation.
    """

    text: str
    spans: tuple[Span, ...]


def split(text: str, locale: str) -> list[Span]:
    r"""Return the spans of the sentences of a text, without white space at their ends.

    >>> text = "A dog.  It barks.\n\nHello"
    >>> [text[span.begin : span.end] for span in split(text, "en")]
    ['A dog.', 'It barks.', 'Hello']

    Args:
        text: Paragraphs, which line ends divide.
        locale: The language of the text.
    """
    return [
        Span(begin + start, begin + stop, number)
        for number, (begin, end) in enumerate(_paragraphs(text))
        for start, stop in _sentences(text[begin:end], locale)
    ]


def join(
    text: str,
    spans: Sequence[Span],
    translations: Sequence[str],
    *,
    separators: Sequence[str],
) -> JoinedText:
    r"""Return translations with the white space that their paragraphs have in a text.

    >>> spans = split("A dog.  It barks.\n\nHello", "en")
    >>> parts = ["Ein Hund.", "Er bellt.", "Hallo"]
    >>> join("A dog.  It barks.\n\nHello", spans, parts, separators=[" "] * 3).text
    'Ein Hund. Er bellt.\n\nHallo'

    Args:
        text: The source.
        spans: Its sentences, as `split` returns them.
        translations: The translation of each.
        separators: The text between each and the one before it in its paragraph.
    """
    joining = Joining(text)
    target_spans = [
        joining.add(span, translation, separator=separator)
        for span, translation, separator in zip(
            spans, translations, separators, strict=True
        )
    ]
    return JoinedText(joining.end(), tuple(target_spans))


class Joining:
    """The translations of a text's first sentences, as `join` lays them out."""

    def __init__(self, text: str) -> None:
        """Begin without a sentence.

        Args:
            text: The source.
        """
        self._text = text
        self._parts: list[str] = []
        self._length = 0
        self._source_end = 0
        self._paragraph = -1
        self._paragraph_has_text = False

    def add(self, span: Span, translation: str, *, separator: str) -> Span:
        """Add the next sentence's translation, and return its span.

        Args:
            span: The sentence.
            translation: Its translation.
            separator: The text between it and the one before it in its paragraph.
        """
        gap = self._text[self._source_end : span.begin]
        if span.paragraph == self._paragraph:
            is_divided = self._paragraph_has_text and translation
            gap = separator if is_divided else ""
        else:
            self._paragraph_has_text = False
        self._paragraph_has_text |= bool(translation)
        begin = self._length + len(gap)
        self._length = begin + len(translation)
        self._parts += [gap, translation]
        self._source_end, self._paragraph = span.end, span.paragraph
        return Span(begin, self._length, span.paragraph)

    def end(self) -> str:
        """Return the whole translation."""
        return "".join([*self._parts, self._text[self._source_end :]])


def _paragraphs(text: str) -> Iterator[tuple[int, int]]:
    begin = 0
    for match in LINE_END.finditer(text):
        yield begin, match.start()
        begin = match.end()
    yield begin, len(text)


def _sentences(paragraph: str, locale: str) -> Iterator[tuple[int, int]]:
    """Yield where each sentence of a paragraph with text begins and ends."""
    starts = [0]
    if paragraph.strip():
        starts += sentences.sentence_starts(paragraph, locale)
    for begin, end in zip(starts, [*starts[1:], len(paragraph)], strict=True):
        sentence = paragraph[begin:end]
        stripped = sentence.strip()
        if stripped:
            first = begin + len(sentence) - len(sentence.lstrip())
            yield first, first + len(stripped)
