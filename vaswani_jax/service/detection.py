"""Find the language of a text, among those that the models know."""

import dataclasses
import math
from collections.abc import Sequence

from vaswani_jax.core import locales
from vaswani_jax.service import language_names, texts
from vaswani_jax.service.models import Direction, Models, ServedModel

# A longer text is judged by its beginning.
MAX_CHARACTERS = 200


@dataclasses.dataclass(frozen=True)
class Detection:
    """A language that a text may be in.

    Attributes:
        language: Its code.
        confidence: 100 times its share of the probability of all candidates.
    """

    language: str
    confidence: float


async def detect(text: str, models: Models, *, deadline: float) -> Sequence[Detection]:
    """Return the languages that models translate from, the likeliest for a text first.

    A decoder is a language model of what it translates to: a text is likely in a
    language if a model into that language gives it a high probability as its own
    translation. A language that no model translates to has the mean of the others.
    A single language needs no score.

    Args:
        text: The text.
        models: The models.
        deadline: When it is too late, in seconds of `time.monotonic()`.

    Raises:
        OverloadedError, TooLateError, ValueError: As `Engine.score`; or there are
            several languages, and models translate to fewer than two of them.
    """
    languages = list(models.targets_by_source())
    log_probs: dict[str, float] = {}
    judges = [_judge(language, models) for language in languages]
    judged = [name for name, judge in zip(languages, judges, strict=True) if judge]
    if len(languages) > 1 and len(judged) < 2:
        raise ValueError(
            f"no model can distinguish {', '.join(languages)}, since models translate "
            f"to {f'{judged[0]} alone' if judged else 'none of them'}: name the "
            "language of the text"
        )
    spans = texts.split(text[:MAX_CHARACTERS], "en")
    if len(languages) > 1 and spans:
        line = " ".join(text[span.begin : span.end] for span in spans)
        while len(line) > 1 and not all(
            _can_score(judge, line) for judge in judges if judge
        ):
            line = line[: len(line) // 2]
        for language, judge in zip(languages, judges, strict=True):
            if judge is not None:
                served, direction = judge
                [score] = await served.engine.score(
                    [direction.tag + line], [line], deadline=deadline
                )
                # Vocabularies differ, so that log-probabilities count per character.
                log_probs[language] = score.log_prob / len(line)
    mean = sum(log_probs.values()) / max(1, len(log_probs))
    weights = {
        language: math.exp(log_probs.get(language, mean)) for language in languages
    }
    total = sum(weights.values())
    return [
        Detection(language, round(100 * weights[language] / total, 1))
        for language in sorted(weights, key=lambda language: -weights[language])
    ]


def _can_score(judge: tuple[ServedModel, Direction], line: str) -> bool:
    """Return whether a text is short enough for a model, on both sides."""
    served, direction = judge
    vocabulary, search = served.engine.translator.vocabulary, served.settings.search
    [source] = vocabulary.encode([direction.tag + line])
    [target] = vocabulary.encode([line], target=True)
    # The end mark is a subword, too.
    return (
        len(source) < search.max_source_tokens
        and len(target) < search.max_target_tokens
    )


def _judge(language: str, models: Models) -> tuple[ServedModel, Direction] | None:
    """Return a model into a language, into the same variant if there is one.

    A model into another script, too, distinguishes the language from others.
    """
    code = locales.language_code(language)
    judges = [
        (served, direction)
        for served in models.all
        for direction in served.directions
        if locales.language_code(direction.target) == code
    ]
    return max(
        judges,
        key=lambda judge: language_names.rank(judge[1].target, language),
        default=None,
    )
