"""Find where the sentences of a line begin, to cut lines that are too long."""

from collections.abc import Sequence

from vaswani_jax.core import locales


def sentence_starts(line: str, locale: str) -> list[int]:
    """Return the first character of each sentence but the first.

    >>> sentence_starts("Dr. Li came at 3.15. He left!", "en")
    [21]
    >>> sentence_starts("你好。再见！", "zh_Hans")
    [3]

    Args:
        line: The text.
        locale: Its language decides what ends a sentence, and its abbreviations.
    """
    # It takes a moment, and few lines are too long.
    import sentencex

    # Some other white space makes sentencex 1.0 fail.
    spaced = "".join(" " if character.isspace() else character for character in line)
    sentences = sentencex.segment(locales.language_code(locale), spaced)
    starts, start = [], 0
    for sentence in sentences[:-1]:
        start += len(sentence)
        starts.append(start)
    return starts


def first_subwords(
    starts: Sequence[int], spans: Sequence[tuple[int, int]], line: str
) -> frozenset[int]:
    """Return the indices of the subwords that begin sentences.

    A subword with a part of two sentences begins none.

    >>> spans = [(0, 2), (2, 3), (3, 5), (5, 6)]
    >>> sorted(first_subwords([4], spans, "No. Hi"))
    [2]
    >>> sorted(first_subwords([2], [(0, 1), (1, 4)], "好。再见"))
    []

    Args:
        starts: The first character of each sentence, in order.
        spans: Where each subword lies, as `Vocabulary.find_spans` says.
        line: The text.
    """
    indices, index = set(), 0
    for start in starts:
        while index < len(spans) and spans[index][0] < start >= spans[index][1]:
            index += 1
        first = index
        if first == len(spans) or line[spans[first][0] : start].strip():
            continue
        # The space before a sentence may be a subword of its own.
        while first and line[slice(*spans[first - 1])].isspace():
            first -= 1
        indices.add(first)
    return frozenset(indices)
