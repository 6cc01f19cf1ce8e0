"""Format translations and scores as text, tab-separated values or JSON."""

import json
import math
import sys
from collections.abc import Sequence
from typing import Any

from vaswani_jax.inference.results import Hypothesis, PairScore
from vaswani_jax.inference.scoring import Scored

FORMATS = ("text", "tsv", "json")


def format_translation(
    number: int,
    hypotheses: Sequence[Hypothesis],
    *,
    scored: Sequence[Scored] | None,
    form: str,
) -> str:
    """Return the lines that one input line gives.

    Args:
        number: The input line's, from 1.
        hypotheses: Its translations, in order.
        scored: The scores of the pieces of all hypotheses, one after the other; None
            if no token scores are written.
        form: "text" is the first hypothesis alone; "tsv" a line a hypothesis: number,
            rank, score, text; "json" one object with all. Hypotheses that are trees
            have their symbols there, and whether these were repaired; others have
            `cut` if they reached the limit of tokens. What a reranked list is sorted
            by is the score of "tsv", and `rank_score` of "json".
    """
    if form == "text":
        return hypotheses[0].text
    if form == "tsv":
        return "\n".join(
            f"{number}\t{rank}\t{_sorted_by(hypothesis):.6f}\t"
            f"{hypothesis.text.replace(chr(9), ' ')}"
            for rank, hypothesis in enumerate(hypotheses, start=1)
        )
    pieces = iter(scored or ())
    records: list[dict[str, Any]] = []
    for hypothesis in hypotheses:
        record: dict[str, Any] = {"text": hypothesis.text, "score": hypothesis.score}
        if hypothesis.rank_score is not None:
            record["rank_score"] = hypothesis.rank_score
        if hypothesis.missing_phrases:
            record["missing_phrases"] = hypothesis.missing_phrases
        if hypothesis.symbols is not None:
            record["symbols"] = hypothesis.symbols
            record["repaired"] = hypothesis.is_repaired
        if hypothesis.is_cut:
            record["cut"] = True
        if scored is not None:
            record["tokens"] = hypothesis.tokens
            record["log_probs"] = [
                float(log_prob)
                for _ in hypothesis.outputs
                for log_prob in next(pieces).log_probs
            ]
        records.append(record)
    return json.dumps(
        {"line": number, "hypotheses": records}, ensure_ascii=False, allow_nan=False
    )


def _sorted_by(hypothesis: Hypothesis) -> float:
    rank_score = hypothesis.rank_score
    return hypothesis.score if rank_score is None else rank_score


def format_score(number: int, score: PairScore, *, form: str) -> str:
    """Return the line that one scored pair gives.

    "text" is log P(Y|X) in nats; "tsv" number, log P, tokens and perplexity; "json"
    the tokens and their log-probabilities, too.
    """
    if form == "text":
        return f"{score.log_prob:.6f}"
    per_token = perplexity(score.log_prob, len(score.tokens))
    if form == "tsv":
        return f"{number}\t{score.log_prob:.6f}\t{len(score.tokens)}\t{per_token:.6f}"
    record = {
        "line": number,
        "log_prob": score.log_prob,
        "perplexity": per_token,
        "tokens": score.tokens,
        "log_probs": score.log_probs,
    }
    return json.dumps(record, ensure_ascii=False, allow_nan=False)


def perplexity(log_prob: float, num_tokens: int) -> float:
    """Return exp(-log P / tokens), at most the largest number that float64 holds.

    >>> perplexity(-2.0, 2), perplexity(-1e9, 1) < math.inf
    (2.718281828459045, True)
    """
    try:
        return math.exp(-log_prob / max(1, num_tokens))
    except OverflowError:
        return sys.float_info.max
