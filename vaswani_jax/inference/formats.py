"""How translations and scores are written, a line each."""

import json
import math
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from vaswani_jax.data import vocabulary
from vaswani_jax.inference import scoring, translator

FORMATS = ("text", "tsv", "json")


def translation(
    number: int,
    found: Sequence[translator.Hypothesis],
    tokens: Sequence[Sequence[tuple[str, float]]] | None,
    *,
    form: str,
) -> str:
    """The lines that one input line gives.

    Args:
        number: The input line's, from 1.
        found: Its hypotheses, in order.
        tokens: The subwords of each hypothesis and their log-probabilities.
        form: "text" is the first hypothesis alone; "tsv" a line a hypothesis: number,
            rank, score, text; "json" one object with all.
    """
    if form == "text":
        return found[0].text
    if form == "tsv":
        return "\n".join(
            f"{number}\t{rank}\t{one.score:.6f}\t{one.text.replace(chr(9), ' ')}"
            for rank, one in enumerate(found, start=1)
        )
    hypotheses: list[dict[str, Any]] = [
        {"text": one.text, "score": one.score} for one in found
    ]
    for one, scored in zip(hypotheses, tokens or [], strict=False):
        one["tokens"] = [token for token, _ in scored]
        one["log_probs"] = [log_prob for _, log_prob in scored]
    return json.dumps(
        {"line": number, "hypotheses": hypotheses}, ensure_ascii=False, allow_nan=False
    )


def score(
    number: int, scored: scoring.Scored, tokens: Sequence[str], *, form: str
) -> str:
    """The line that one scored pair gives.

    "text" is log P(Y|X) in nats; "tsv" number, log P, tokens and perplexity; "json"
    the tokens and their log-probabilities, too.
    """
    total = float(np.sum(scored.log_probs, dtype=np.float64))
    if form == "text":
        return f"{total:.6f}"
    per_token = perplexity(total, len(tokens))
    if form == "tsv":
        return f"{number}\t{total:.6f}\t{len(tokens)}\t{per_token:.6f}"
    record = {
        "line": number,
        "log_prob": total,
        "perplexity": per_token,
        "tokens": list(tokens),
        "log_probs": [float(one) for one in scored.log_probs],
    }
    return json.dumps(record, ensure_ascii=False, allow_nan=False)


def perplexity(log_prob: float, tokens: int) -> float:
    """exp(-log P / tokens); what float64 cannot hold is its largest number.

    >>> perplexity(-2.0, 2), perplexity(-1e9, 1) < math.inf
    (2.718281828459045, True)
    """
    try:
        return math.exp(-log_prob / max(1, tokens))
    except OverflowError:
        return sys.float_info.max


def subwords_of(
    subwords: vocabulary.Vocabulary,
    found: Sequence[translator.Hypothesis],
    scored: Sequence[scoring.Scored],
) -> list[list[tuple[str, float]]]:
    """The subwords of each hypothesis and their log-probabilities.

    `scored` has the outputs of all hypotheses, one after the other.
    """
    rest = iter(scored)
    several = []
    for one in found:
        tokens = []
        for output in one.outputs:
            log_probs = next(rest).log_probs
            names = map(subwords.name, output.ids)
            tokens += [
                (name, float(value))
                for name, value in zip(names, log_probs, strict=True)
            ]
        several.append(tokens)
    return several
