"""Score outputs with intervals, and by chrF++ and TER beside BLEU and chrF2.

This takes sacreBLEU seconds or minutes, so validation during training does not do it.
"""

import dataclasses
import logging
from collections.abc import Sequence

from vaswani_jax.core.config import DataConfig
from vaswani_jax.evaluation import bleu, metrics

logger = logging.getLogger(__name__)
# sacreBLEU's bootstrap keeps 100 kB a line in memory.
MAX_LINES = 10_000
# The most words of the references for which TER is computed: more take minutes. Outputs
# do not count, so that all outputs of a text have the same kinds of scores.
MAX_TER_WORDS = 150_000


def score_outputs(
    outputs: Sequence[str], references: Sequence[str], *, data: DataConfig
) -> list[bleu.Score]:
    """Return all scores of outputs, chrF++ and TER among them, with their intervals.

    BLEU, chrF2, chrF++ and TER have intervals, as has `tokenized_bleu`; the other
    scores of multi-bleu have none. Over `MAX_LINES` no score has one.

    Raises:
        ValueError: The numbers of lines differ or are 0.
    """
    scores = {
        score.name: score
        for score in bleu.score_outputs(outputs, references, data=data)
    }
    resamples = metrics.RESAMPLES
    if len(references) > MAX_LINES:
        resamples = 0
        logger.info(f"note: over {MAX_LINES:,} lines, scores have no intervals")
    num_words = sum(len(line.split()) for line in references)
    with_intervals = {}
    for metric in metrics.find_metrics(references, data=data):
        if metric.name == "ter" and num_words > MAX_TER_WORDS:
            logger.info(
                f"note: no TER, as the references have over {MAX_TER_WORDS:,} words "
                f"({num_words:,}); `sacrebleu -m ter` takes minutes"
            )
            continue
        score = metric.score(outputs, references, resamples=resamples)
        validation_score = scores.pop(metric.name, score)
        with_intervals[metric.name] = dataclasses.replace(
            validation_score, interval=score.interval
        )
    return [*with_intervals.values(), *scores.values()]
