"""Section 6.1: real beam-search BLEU of held-out text."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from vaswani_jax.core import config, languages
from vaswani_jax.inference import bleu, translate


def score(
    data: config.DataConfig, outputs: Sequence[str], references: Sequence[str]
) -> list[bleu.Score]:
    """All scores of an output, the form of the text being that of the data."""
    return bleu.score_all(
        outputs,
        references,
        text_form=cast(bleu.TextForm, data.text_form),
        target_language=languages.of(data.target_locale),
        lowercase=data.lowercase_scores,
    )


def bleu_evaluator(
    data: config.DataConfig,
    translator: translate.Translator,
    text: tuple[list[str], list[str]],
    *,
    name: str,
    warn: Callable[[str], None],
) -> Callable[[Any], Mapping[str, float]]:
    """A function from parameters to `name`/bleu.

    It is the first score of `score`: sacreBLEU, or tokenised BLEU for tokenised text.
    No line is left out.
    """
    source, references = text

    def evaluate(params: Any) -> Mapping[str, float]:
        outputs = translator.translate(params, source, warn=warn)
        found = score(data, outputs, references)
        return {f"{name}/bleu": found[0].value}

    return evaluate
