"""Score the outputs of each target language apart.

A tokeniser of words is that of one language, and BLEU over several languages is
comparable with nothing. One figure for all of them is the mean of their scores.
"""

import collections
import dataclasses
import logging
import statistics
from collections.abc import Mapping, Sequence
from typing import Protocol, runtime_checkable

from vaswani_jax.core import config, languages
from vaswani_jax.evaluation import bleu, tree_scores
from vaswani_jax.evaluation.bleu import Score

logger = logging.getLogger(__name__)


@runtime_checkable
class Scorer(Protocol):
    """Scores outputs of one language: `bleu.score_outputs` and its like."""

    def __call__(
        self,
        outputs: Sequence[str],
        references: Sequence[str],
        *,
        data: config.DataConfig,
    ) -> list[Score]:
        """Return the scores, the main one first."""


def scores_by_locale(
    source: Sequence[str],
    outputs: Sequence[str],
    references: Sequence[str],
    *,
    data: config.DataConfig,
    scorer: Scorer = bleu.score_outputs,
) -> dict[str, list[Score]]:
    """Return the scores of the lines of each target locale; F1 of trees.

    Args:
        source: The source lines, each with its tag if there are several locales.
        outputs: A translation of each.
        references: A reference for each.
        data: The target locales, and the form of the text.
        scorer: Scores the lines of a locale; `intervals.score_outputs` takes longer.

    Returns:
        The scores of each locale that has lines, in the order of the settings.

    Raises:
        ValueError: The numbers of lines differ or are 0, or a line has no tag.
    """
    if data.source == "treebank":
        return {data.target_locale: tree_scores.score_trees(outputs, references)}
    locales = languages.locales_by_tag(data)
    if not locales:
        scores = scorer(outputs, references, data=data)
        return {data.target_locale: scores}
    languages.check_tags(source, data, first_line=1)
    lines: dict[str, list[tuple[str, str]]] = collections.defaultdict(list)
    for line, output, reference in zip(source, outputs, references, strict=True):
        if tag := languages.find_tag(line, data):
            lines[locales[tag]].append((output, reference))
    return {
        locale: scorer(
            *zip(*lines[locale], strict=True),
            data=dataclasses.replace(data, target_locale=locale),
        )
        for locale in locales.values()
        if lines[locale]
    }


def explain_tokens(
    source: Sequence[str], references: Sequence[str], *, data: config.DataConfig
) -> None:
    """Log what scores count in the references; see `bleu.explain_tokens`."""
    if data.source == "treebank":
        return
    if languages.locales_by_tag(data):
        num = sum(not line.strip() for line in source)
        if num:
            logger.info(f"note: empty lines, without a tag, are in no score: {num:,}")
    by_locale = languages.references_by_locale(source, references, data)
    for locale, lines in by_locale.items():
        of_locale = dataclasses.replace(data, target_locale=locale)
        bleu.explain_tokens(lines, data=of_locale)


def mean_score(scores: Mapping[str, Sequence[Score]]) -> float:
    """Return the mean of the locales' first scores; every locale counts the same."""
    return statistics.fmean(first.value for first, *_ in scores.values())


def score_outputs(
    source: Sequence[str],
    outputs: Sequence[str],
    references: Sequence[str],
    *,
    data: config.DataConfig,
    scorer: Scorer = bleu.score_outputs,
) -> list[Score]:
    """Return all scores, the main one first.

    With several target locales this is `mean`, of the first score of each. Theirs
    follow, with the locale in their names, as `sacrebleu[de]`.

    The arguments and the errors are those of `scores_by_locale`.
    """
    by_locale = scores_by_locale(source, outputs, references, data=data, scorer=scorer)
    if not languages.locales_by_tag(data):
        return by_locale[data.target_locale]
    renamed_scores = {
        locale: [
            dataclasses.replace(score, name=f"{score.name}[{locale}]")
            for score in scores
        ]
        for locale, scores in by_locale.items()
    }
    parts = ",".join(first.name for first, *_ in renamed_scores.values())
    mean = Score("mean", mean_score(by_locale), f"mean|of:{parts}")
    return [mean, *(score for scores in renamed_scores.values() for score in scores)]
