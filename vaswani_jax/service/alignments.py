"""Align the words of a sentence and its translation: offsets of their characters."""

import asyncio
import dataclasses
import re
from collections.abc import Sequence

import numpy as np
from jaxtyping import Int

from vaswani_jax.core import config, languages
from vaswani_jax.data.vocabulary import Vocabulary
from vaswani_jax.inference import alignment
from vaswani_jax.inference.results import AttendedPair, Hypothesis
from vaswani_jax.service.engine import Admission
from vaswani_jax.service.models import ServedModel

# The beginnings and ends of a source word and of the target word aligned with it.
Pairs = list[tuple[int, int, int, int]]
Spans = list[tuple[int, int]]


@dataclasses.dataclass(frozen=True)
class Line:
    """A sentence and the tags before it.

    Attributes:
        tags: The tag of the direction, and the code and tags of earlier sentences that
            hold for this one; or "".
        sentence: The sentence.
    """

    tags: str
    sentence: str

    @property
    def text(self) -> str:
        """The text that the model translates."""
        return self.tags + self.sentence


async def align(
    served: ServedModel,
    lines: Sequence[Line],
    translations: Sequence[Hypothesis],
    *,
    deadline: float,
    admission: Admission,
    turn: int = 0,
) -> list[Pairs | None]:
    """Return the aligned words of each line and its translation.

    Offsets count from where the sentence begins, without what was put before it. A line
    that was translated in pieces has None, and so has every line of a parser.

    Args:
        served: The model.
        lines: What was translated.
        translations: The translation of each line.
        deadline: When it is too late, in seconds of `time.monotonic()`.
        admission: The room that the client's call has.
        turn: How many lines of the client's call stand before these.

    Raises:
        OverloadedError, TooLateError: As `Engine.attend`.
    """
    return list(
        await asyncio.gather(
            *(
                _align_line(
                    served,
                    line,
                    best,
                    deadline=deadline,
                    admission=admission,
                    turn=number,
                )
                for number, (line, best) in enumerate(
                    zip(lines, translations, strict=True), start=turn
                )
            )
        )
    )


async def _align_line(
    served: ServedModel,
    line: Line,
    best: Hypothesis,
    *,
    deadline: float,
    admission: Admission,
    turn: int,
) -> Pairs | None:
    if served.engine.translator.vocabulary.is_trees or len(best.outputs) > 1:
        return None
    if not best.outputs or not best.text:
        return []
    try:
        [pair] = await served.engine.attend(
            [line.text],
            [best.text],
            deadline=deadline,
            admission=admission,
            turn=turn,
        )
    except ValueError:  # Encoded again, the translation may have too many subwords.
        return None
    return pairs_of(
        line.text,
        pair,
        vocabulary=served.engine.translator.vocabulary,
        data=served.settings.data,
        num_tag_characters=len(line.tags),
    )


def pairs_of(
    line: str,
    pair: AttendedPair,
    *,
    vocabulary: Vocabulary,
    data: config.DataConfig,
    num_tag_characters: int = 0,
) -> Pairs:
    """Return the aligned words of one line.

    Words are what white space divides; in a language without spaces they are subwords.

    Args:
        line: The source line.
        pair: Its translation, with the attention between them.
        vocabulary: The subwords of both.
        data: The languages.
        num_tag_characters: The length of the tag before the text of the line.
    """
    layer = alignment.default_layer(len(pair.attention.memory))
    source_words, source_spans = _source_words(
        line, pair.source, vocabulary=vocabulary, locale=data.source_locale, data=data
    )
    target_words, target_spans = _target_words(
        pair.text,
        pair.ids,
        vocabulary=vocabulary,
        locale=languages.line_locale(line, data),
        data=data,
    )
    tags_end = len(line) - len(languages.remove_tag(line, data))
    text_begin = max(num_tag_characters, tags_end)
    for index, (begin, end) in enumerate(vocabulary.find_spans(line)):
        # All bytes of a character but the last have an empty span, where it begins.
        if begin < text_begin and end <= text_begin:
            source_words[index] = -1
    return [
        (
            source_spans[source][0] - num_tag_characters,
            source_spans[source][1] - num_tag_characters,
            *target_spans[target],
        )
        for source, target in alignment.pharaoh(
            pair.attention.memory[layer],
            source_words=source_words,
            target_words=target_words,
        )
        if source_spans[source][0] >= text_begin and target < len(target_spans)
    ]


def shift(pairs: Pairs | None, source: int, target: int) -> Pairs | None:
    """Return the aligned words of a sentence, counted from where its text begins.

    >>> shift([(0, 1, 2, 3)], 10, 20), shift(None, 10, 20)
    ([(10, 11, 22, 23)], None)

    Args:
        pairs: The words.
        source: Where the sentence begins in its text.
        target: Where its translation begins in that of the text.
    """
    if pairs is None:
        return None
    return [
        (source + begin, source + end, target + target_begin, target + target_end)
        for begin, end, target_begin, target_end in pairs
    ]


def _source_words(
    line: str,
    ids: Sequence[int],
    *,
    vocabulary: Vocabulary,
    locale: str,
    data: config.DataConfig,
) -> tuple[Int[np.ndarray, "S"], Spans]:
    """Return the word of each subword and of the end mark, and where each word lies."""
    if languages.has_spaces(locale, data):
        [numbers] = alignment.source_words(line, [ids], vocabulary=vocabulary)
        return numbers, _words(line)
    spans = []
    for token, (begin, end) in zip(ids, vocabulary.find_spans(line), strict=True):
        # All bytes of a character but the last have an empty span, where it begins.
        is_byte = vocabulary.source.is_byte(token)
        spans.append(_stripped(line, begin, begin + 1 if is_byte else end))
    return _numbered(spans, num_ends=1)


def _target_words(
    text: str,
    ids: Sequence[int],
    *,
    vocabulary: Vocabulary,
    locale: str,
    data: config.DataConfig,
) -> tuple[Int[np.ndarray, "T"], Spans]:
    """Return the word of each subword, end mark included, and where each word lies."""
    if languages.has_spaces(locale, data):
        [numbers] = alignment.target_words([ids], vocabulary.target, separator=" ")
        return numbers, _words(text)
    parts = alignment.subword_texts(vocabulary.target, ids)
    spans: Spans = []
    end = remaining_bytes = 0
    for token, part in zip(ids, map(str.strip, parts), strict=True):
        if remaining_bytes and vocabulary.target.is_byte(token):
            remaining_bytes -= 1
            spans.append(spans[-1])
            continue
        begin = end + len(text[end:]) - len(text[end:].lstrip())
        end = begin + len(part) if text.startswith(part, begin) else begin
        spans.append((begin, end))
        is_byte = vocabulary.target.is_byte(token)
        remaining_bytes = len(part.encode(errors="replace")) - 1 if is_byte else 0
    return _numbered(spans, num_ends=0)


def _numbered(spans: Spans, *, num_ends: int) -> tuple[Int[np.ndarray, "_"], Spans]:
    """Return the word of each subword that has characters, and where these lie.

    Subwords with the same characters, as the bytes of one, are one word.
    """
    numbers: list[int] = []
    words: Spans = []
    for begin, end in spans:
        if begin < end:
            if words[-1:] != [(begin, end)]:
                words.append((begin, end))
            numbers.append(len(words) - 1)
        else:
            numbers.append(-1)
    return np.array([*numbers, *[-1] * num_ends], int), words


def _words(text: str) -> Spans:
    return [match.span() for match in re.finditer(r"\S+", text)]


def _stripped(line: str, begin: int, end: int) -> tuple[int, int]:
    """Return a span without the white space at its ends."""
    part = line[begin:end]
    first = begin + len(part) - len(part.lstrip())
    return first, first + len(part.strip())
