"""Warnings of unusual lines: long and cut ones, trees, phrases, odd characters."""

import collections
import logging
from collections.abc import Iterable, Sequence

from vaswani_jax.core import config, plurals
from vaswani_jax.data.unknown_characters import UnknownCharacters
from vaswani_jax.data.vocabulary import Vocabulary
from vaswani_jax.inference.plain_text import PlainTextLines
from vaswani_jax.inference.results import Hypothesis

logger = logging.getLogger(__name__)
CUT = "cut"
MISSING_PHRASES = "phrases"


class LineWarnings:
    """The unusual lines of a job, counted over its blocks.

    Attributes:
        counts: How many lines `count_unusual_lines` found, by setting.
        unknown: The characters that the vocabulary lacks.
        plain_text: The lines for a parser that look like plain text.
    """

    def __init__(self, vocabulary: Vocabulary, settings: config.Config) -> None:
        """Start with no line."""
        self._settings = settings
        self.counts: collections.Counter[str] = collections.Counter()
        self.unknown = UnknownCharacters(vocabulary)
        self.plain_text = PlainTextLines(settings.data)

    def count(self, lines: Sequence[str], *, targets: Iterable[str] = ()) -> None:
        """Count unusual texts.

        Args:
            lines: Source lines.
            targets: Texts of the target's side, however many.
        """
        self.unknown.count(lines)
        self.unknown.count(targets, target=True)
        self.plain_text.count(lines)

    def count_hypotheses(self, hypotheses: Sequence[Sequence[Hypothesis]]) -> None:
        """Count the lines that `count_unusual_lines` finds by their translations."""
        self.counts += count_unusual_lines(hypotheses, self._settings)

    def log(self) -> None:
        """Log a warning for each kind of unusual line."""
        warn_of_unusual_lines(self.counts, self._settings)
        for description in (self.unknown.describe(), self.plain_text.describe()):
            if description:
                logger.warning(description)


def count_unusual_lines(
    hypotheses: Sequence[Sequence[Hypothesis]], settings: config.Config
) -> collections.Counter[str]:
    """Return, for each setting, how many lines exceed it or needed a repaired tree.

    Lines whose translation is cut or lacks a phrase are counted, too.
    """
    lengths = [
        [len(output.source) + 1 for output in n_best[0].outputs]
        for n_best in hypotheses
    ]
    longest = settings.data.max_length
    return collections.Counter(
        {
            "data.max_length": sum(max(n, default=0) > longest for n in lengths),
            "search.max_source_tokens": sum(len(n) > 1 for n in lengths),
            "search.legal_trees": sum(n_best[0].is_repaired for n_best in hypotheses),
            CUT: sum(n_best[0].is_cut for n_best in hypotheses),
            MISSING_PHRASES: sum(
                bool(n_best[0].missing_phrases) for n_best in hypotheses
            ),
        }
    )


def warn_of_unusual_lines(
    counts: collections.Counter[str], settings: config.Config
) -> None:
    """Log a warning for each count of `count_unusual_lines`."""
    data, search = settings.data, settings.search
    if count := counts["data.max_length"]:
        logger.warning(
            f"{plurals.format_count(count, 'line')} over config.data.max_length="
            f"{data.max_length} tokens: longer than any in training"
        )
    if count := counts["search.max_source_tokens"]:
        logger.warning(
            f"{plurals.format_count(count, 'line')} over "
            f"config.search.max_source_tokens={search.max_source_tokens} tokens: "
            "translated in pieces"
        )
    if count := counts["search.legal_trees"]:
        advice = (
            f"increase config.search.max_extra_tokens={search.max_extra_tokens}"
            if search.legal_trees
            else "set config.search.legal_trees=True"
        )
        logger.warning(
            f"{plurals.format_count(count, 'line')} got a repaired tree, because the "
            f"output was not a tree over the words: {advice}"
        )
    if count := counts[CUT]:
        limits = f"config.search.max_extra_tokens={search.max_extra_tokens}"
        if search.max_tokens:
            limits += f" or config.search.max_tokens={search.max_tokens}"
        logger.warning(
            f"{plurals.format_count(count, 'line')} got a translation without an end, "
            f"cut at the limit of tokens: increase {limits}"
        )
    if count := counts[MISSING_PHRASES]:
        logger.warning(
            plurals.format_count(
                count, "line lacks a phrase", plural="lines lack a phrase"
            )
        )


def warn_of_missing_phrases(
    hypotheses: Sequence[Sequence[Hypothesis]], *, first_line: int
) -> None:
    """Log a warning for each line whose best translation lacks phrases."""
    for number, (best, *_) in enumerate(hypotheses, start=first_line):
        if best.missing_phrases:
            phrases = ", ".join(map(repr, best.missing_phrases))
            logger.warning(f"line {number:,}: the translation lacks {phrases}")
