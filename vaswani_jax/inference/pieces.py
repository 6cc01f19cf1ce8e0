"""Cut long lines into pieces that the search takes, between sentences if possible."""

import bisect
from collections.abc import Sequence
from typing import NamedTuple

from vaswani_jax.core import config, languages
from vaswani_jax.data.vocabulary import Vocabulary
from vaswani_jax.inference import arguments, sentences
from vaswani_jax.inference.phrases import Phrase


class Piece(NamedTuple):
    """A line, or a part of one that is longer than `max_source_tokens`.

    Attributes:
        line: The index of its line.
        part: Its place among the pieces of its line.
        ids: Its subwords, without an end mark.
        prefix: The ids that its translations begin with.
        phrases: The phrases that its translations must have.
    """

    line: int
    part: int
    ids: list[int]
    prefix: list[int]
    phrases: tuple[Phrase, ...] = ()

    @property
    def has_phrases(self) -> bool:
        """True if the search looks for phrases."""
        return any(phrase.ids for phrase in self.phrases)


def cut_lines(
    lines: Sequence[str],
    prefixes: Sequence[str] | None,
    *,
    vocabulary: Vocabulary,
    settings: config.Config,
    first_line: int,
    phrases: Sequence[tuple[Phrase, ...]] | None = None,
) -> list[Piece]:
    """Return the pieces of all lines, in order.

    Args:
        lines: Source lines. One without a subword has no piece.
        prefixes: What each line's translations begin with; "" for anything.
        vocabulary: Of the model.
        settings: Their search limits the tokens of a piece.
        first_line: The number of the first line in error messages.
        phrases: What each line's translations must have; those of a line of several
            pieces are not searched.

    Raises:
        ValueError: As `arguments.encode_prefixes`; or the tags of a line leave no room
            for a subword.
    """
    prefix_ids: list[list[int]] = [[] for _ in lines]
    if prefixes is not None:
        prefix_ids = arguments.encode_prefixes(
            prefixes,
            vocabulary=vocabulary,
            search=settings.search,
            first_line=first_line,
        )
    pieces = []
    for line, ids in enumerate(vocabulary.encode(lines)):
        parts = _cut(
            lines[line],
            ids,
            vocabulary=vocabulary,
            settings=settings,
            number=first_line + line,
        )
        for part, piece_ids in enumerate(parts):
            piece = Piece(line, part, piece_ids, [] if part else prefix_ids[line])
            if phrases is not None and len(parts) == 1:
                piece = piece._replace(phrases=phrases[line])
            pieces.append(piece)
    return pieces


def _cut(
    line: str,
    ids: list[int],
    *,
    vocabulary: Vocabulary,
    settings: config.Config,
    number: int,
) -> list[list[int]]:
    """Return parts of at most `max_source_tokens`, each with the line's tags."""
    num_tags = vocabulary.source.num_tags(ids)
    if ids and num_tags == len(ids):
        text = languages.remove_tag(line, settings.data)
        if any(symbol in text for symbol in vocabulary.source.user_symbols):
            num_tags = 0  # The line has only placeholders: they are its text.
    tags = ids[:num_tags]
    longest = settings.search.max_source_tokens - num_tags - 1  # end mark
    if len(ids) > num_tags and longest < 1:
        raise ValueError(
            f"line {number}: config.search.max_source_tokens must be at least "
            f"{num_tags + 2} for a line with {num_tags} tags or language codes, got "
            f"{settings.search.max_source_tokens}"
        )
    parts, begin = [], num_tags
    if len(ids) - begin > longest:
        ends = _good_ends(line, ids, vocabulary=vocabulary, settings=settings)
        while len(ids) - begin > longest:
            # The last end of the best kind that fits.
            last = begin + longest
            fitting = (kind[bisect.bisect(kind, last) - 1] for kind in ends)
            end = next((end for end in fitting if begin < end <= last), last)
            parts.append(ids[begin:end])
            begin = end
    if begin < len(ids):
        parts.append(ids[begin:])
    return [[*tags, *part] for part in parts]


def _good_ends(
    line: str, ids: Sequence[int], *, vocabulary: Vocabulary, settings: config.Config
) -> list[Sequence[int]]:
    """Return where parts may end, best first: by sentence, word and character."""
    starts = sentences.sentence_starts(line, settings.data.source_locale)
    sentence_ends = sentences.first_subwords(starts, vocabulary.find_spans(line), line)
    subwords = vocabulary.source
    kinds = (
        sorted(sentence_ends),
        [end for end, token in enumerate(ids) if subwords.starts_word(token)],
        [end for end, token in enumerate(ids) if subwords.starts_character(token)],
    )
    return [kind for kind in kinds if kind]
