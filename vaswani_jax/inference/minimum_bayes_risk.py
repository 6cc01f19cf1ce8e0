"""Choose the translation that agrees most with the others: minimum Bayes risk.

Kumar and Byrne, 2004, "Minimum Bayes-Risk Decoding for Statistical Machine
Translation"; over samples: Eikema and Aziz, 2020, "Is MAP Decoding All You Need?"
"""

import collections
import dataclasses
import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from vaswani_jax.core import languages, locales
from vaswani_jax.core.config import DataConfig, SearchConfig
from vaswani_jax.inference import scoring
from vaswani_jax.inference.results import Hypothesis

UTILITIES = ("chrf", "bleu")


def check_utility(utility: str) -> None:
    """Refuse an unknown utility.

    Raises:
        ValueError: It is not one of `UTILITIES`.
    """
    if utility not in UTILITIES:
        raise ValueError(f"utility must be {' or '.join(UTILITIES)}, got {utility!r}")


def rank_lines(
    lines: Sequence[str],
    hypotheses: Sequence[Sequence[Hypothesis]],
    *,
    utility: str,
    data: DataConfig,
    search: SearchConfig,
) -> list[list[Hypothesis]]:
    """Return the hypotheses of each line by their expected utility, highest first.

    The expectation is over the hypotheses themselves (Eikema and Aziz, 2020): samples
    count equally, those of a beam search by their probabilities. Ties keep their order.
    A line's order depends on its own hypotheses alone.

    Args:
        lines: Source lines; their tags name the target language.
        hypotheses: The candidates of each line.
        utility: One of `UTILITIES`.
        data: Says how BLEU finds words, and whether case counts.
        search: How the hypotheses were found.

    Raises:
        ValueError: There is no such utility.
    """
    check_utility(utility)
    ranking = []
    for line, candidates in zip(lines, hypotheses, strict=True):
        texts = [candidate.text for candidate in candidates]
        expected = expected_utilities(
            texts,
            candidate_weights(candidates, search),
            utility=utility,
            data=data,
            locale=languages.line_locale(line, data),
        )
        order = np.argsort(-expected, kind="stable")
        ranking.append(
            [
                dataclasses.replace(candidates[i], rank_score=float(expected[i]))
                for i in order
            ]
        )
    return ranking


def candidate_weights(
    candidates: Sequence[Hypothesis], search: SearchConfig
) -> Float[np.ndarray, "K"]:
    """Return how much each of K candidates counts; the sum is 1.

    Samples count equally: likely ones are drawn often. Others count by P(Y|X).
    """
    if search.sampling:
        return np.full(len(candidates), 1 / len(candidates))
    log_probs = np.zeros(len(candidates))
    for index, candidate in enumerate(candidates):
        for output in candidate.outputs:
            log_probs[index] += output.score * scoring.length_penalty(
                len(output.ids),
                alpha=search.length_penalty,
                form=search.length_penalty_form,
            )
    weights = np.exp(log_probs - log_probs.max())
    normalized: Float[np.ndarray, "K"] = weights / weights.sum()
    return normalized


def expected_utilities(
    texts: Sequence[str],
    weights: Float[np.ndarray, "K"],
    *,
    utility: str,
    data: DataConfig,
    locale: str,
) -> Float[np.ndarray, "K"]:
    """Return each text's mean utility if a text drawn by the weights is the reference.

    Args:
        texts: The candidates, which may repeat.
        weights: The probability of each.
        utility: One of `UTILITIES`, from 0 to 100.
        data: As for `rank_lines`.
        locale: The language of the texts.
    """
    distinct = list(dict.fromkeys(texts))
    index = [distinct.index(text) for text in texts]
    probabilities = np.bincount(index, weights=weights, minlength=len(distinct))
    utilities = pairwise_utilities(distinct, utility=utility, data=data, locale=locale)
    expected: Float[np.ndarray, "K"] = (utilities * probabilities).sum(axis=1)[index]
    return expected


def pairwise_utilities(
    texts: Sequence[str], *, utility: str, data: DataConfig, locale: str
) -> Float[np.ndarray, "K K"]:
    """Return sacreBLEU's sentence score of each text (row) for each reference (column).

    The n-grams of a text are counted once, not once for each pair.
    """
    import sacrebleu  # It takes long to import.

    lowercase = data.lowercase_scores
    if utility == "chrf":
        return _pairwise_chrf(texts, sacrebleu.CHRF(lowercase=lowercase))
    tokenizer = "none"
    if data.text_form == "detokenized":
        tokenizer = locales.bleu_tokenizer(locale, texts)
    metric = sacrebleu.BLEU(
        lowercase=lowercase, tokenize=tokenizer, effective_order=True
    )
    return _pairwise_bleu(texts, metric)


def _pairwise_chrf(texts: Sequence[str], metric: Any) -> Float[np.ndarray, "K K"]:
    from sacrebleu.metrics import helpers

    texts = [text.lower() if metric.lowercase else text for text in texts]
    # By text, then by order.
    ngrams = [
        helpers.extract_all_char_ngrams(text, metric.char_order) for text in texts
    ]
    shape = (len(texts), len(texts))
    precision, recall = np.zeros(shape), np.zeros(shape)
    num_orders = np.zeros(shape)
    for counts in zip(*ngrams, strict=True):
        totals = np.array([sum(count.values()) for count in counts])
        # An order counts if both sides have n-grams of it.
        has_order = np.logical_and.outer(totals > 0, totals > 0)
        matches = _count_matches(counts) / np.maximum(totals, 1)[:, None]
        precision += np.where(has_order, matches, 0)
        recall += np.where(has_order, matches.T, 0)
        num_orders += has_order
    precision /= np.maximum(num_orders, 1)
    recall /= np.maximum(num_orders, 1)
    factor = metric.beta**2
    weighted = factor * precision + recall
    product = (1 + factor) * precision * recall
    scores: Float[np.ndarray, "K K"] = 100 * (
        product / np.where(weighted > 0, weighted, 1)
    )
    return scores


def _pairwise_bleu(texts: Sequence[str], metric: Any) -> Float[np.ndarray, "K K"]:
    from sacrebleu.metrics import helpers

    orders = range(1, metric.max_ngram_order + 1)
    lengths, ngrams = [], []
    for text in texts:
        cased = text.lower() if metric.lowercase else text
        counts, length = helpers.extract_all_word_ngrams(
            metric.tokenizer(cased.rstrip()), 1, metric.max_ngram_order
        )
        lengths.append(length)
        ngrams.append(
            [{n: c for n, c in counts.items() if len(n) == order} for order in orders]
        )
    matches = np.stack(
        [_count_matches(counts) for counts in zip(*ngrams, strict=True)], axis=-1
    ).tolist()
    totals = [[sum(count.values()) for count in counts] for counts in ngrams]
    return np.array(
        [
            [
                metric.compute_bleu(
                    correct=matches[output][reference],
                    total=list(totals[output]),
                    sys_len=lengths[output],
                    ref_len=lengths[reference],
                    smooth_method=metric.smooth_method,
                    effective_order=metric.effective_order,
                ).score
                for reference in range(len(texts))
            ]
            for output in range(len(texts))
        ],
        np.float64,
    )


def _count_matches(counts: Sequence[Mapping[Any, int]]) -> Int[np.ndarray, "K K"]:
    """Return how many n-grams each two texts share, given those of each."""
    num_texts = collections.Counter(itertools.chain.from_iterable(counts))
    shared = (ngram for ngram, number in num_texts.items() if number > 1)
    columns = {ngram: column for column, ngram in enumerate(shared)}
    table = np.zeros((len(counts), len(columns)), np.int64)
    for row, count in zip(table, counts, strict=True):
        for ngram, number in count.items():
            if (column := columns.get(ngram)) is not None:
                row[column] = number
    matches = np.stack([np.minimum(row, table).sum(axis=1) for row in table])
    # A text shares all its n-grams with itself, also those that no other text has.
    np.fill_diagonal(matches, [sum(count.values()) for count in counts])
    return matches
