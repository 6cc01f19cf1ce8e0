"""Rerank translations by their length and by the scores of other models.

A reverse model scores how well the translation explains the source: Yee et al., 2019,
"Simple and Effective Noisy Channel Modeling for Neural Machine Translation".
"""

import dataclasses
import logging
import math
from collections.abc import Sequence

import numpy as np

from vaswani_jax.core import languages, plurals, types
from vaswani_jax.core.config import Config, DataConfig, SearchConfig
from vaswani_jax.core.locales import describe_direction
from vaswani_jax.data.subwords import Subwords
from vaswani_jax.inference import scoring
from vaswani_jax.inference.loaded_models import LoadedModels
from vaswani_jax.inference.results import Hypothesis

logger = logging.getLogger(__name__)
LARGEST_WEIGHT = 1000


@dataclasses.dataclass(frozen=True, kw_only=True)
class Reranking:
    """The terms that are added to the score of a hypothesis.

    Attributes:
        forward: A model of the same direction, whose score of the translation is
            added; None for none. It may be an ensemble, and of another vocabulary.
        forward_weight: What that score is multiplied by.
        reverse: A model of the other direction, whose score of the source, as a
            translation of the translation, is added; None for none.
        reverse_weight: What that score is multiplied by.
        length_reward: What each subword of a translation adds, in nats.
    """

    forward: LoadedModels | None = None
    forward_weight: float = 1.0
    reverse: LoadedModels | None = None
    reverse_weight: float = 1.0
    length_reward: float = 0.0

    def check(self, translator: LoadedModels) -> None:
        """Refuse weights and models that do not suit the translator's hypotheses.

        Raises:
            ValueError: A weight is no finite number, the translator or a model parses,
                or a model has other languages or tags.
        """
        for name in ("forward_weight", "reverse_weight", "length_reward"):
            check_weight(getattr(self, name), name=name)
        for name in ("forward", "reverse"):
            weight = getattr(self, f"{name}_weight")
            if getattr(self, name) is None and weight != 1.0:
                raise ValueError(f"{name}_weight={weight} needs a {name} model")
        check_translates(translator)
        data = translator.config.data
        for name, model in (("forward", self.forward), ("reverse", self.reverse)):
            if model is None:
                continue
            if model.vocabulary.is_trees:
                raise ValueError(f"the {name} model parses; name a run that translates")
            model_data = model.config.data
            sides = [data.source_locale, data.target_locale]
            if name == "reverse":
                for side in (data, model_data):
                    if languages.locales_by_tag(side):
                        raise ValueError(
                            "a reverse model needs runs of one target language, got "
                            f"{side.target_locale}; rerank without it"
                        )
                sides.reverse()
            pairs = (
                describe_direction(*sides),
                describe_direction(model_data.source_locale, model_data.target_locale),
            )
            if pairs[0] != pairs[1]:
                raise ValueError(
                    f"the {name} model translates {pairs[1]}; name a run that "
                    f"translates {pairs[0]}"
                )
            # Both read the same tagged lines, so regions (pt_BR) must match, too.
            tags, model_tags = (
                sorted(languages.locales_by_tag(side)) for side in (data, model_data)
            )
            if tags != model_tags:
                raise ValueError(
                    f"the {name} model has the tags {', '.join(model_tags)}; name a "
                    f"run that has {', '.join(tags)}"
                )


def check_weight(value: float, *, name: str) -> None:
    """Refuse a weight that is no number, or so large that a sum could overflow.

    Raises:
        ValueError: Has the name and the value.
    """
    if not abs(value) <= LARGEST_WEIGHT:  # False for nan, too.
        raise ValueError(
            f"{name} must be a number from -{LARGEST_WEIGHT} to {LARGEST_WEIGHT}, got "
            f"{value}"
        )


def check_translates(translator: LoadedModels) -> None:
    """Refuse a model that parses: what ranks translations has no meaning for trees.

    Raises:
        ValueError: The outputs are trees.
    """
    if translator.vocabulary.is_trees:
        raise ValueError(
            "minimum Bayes risk and reranking need a run that translates, and this one "
            "parses; leave them out"
        )


def rerank(
    lines: Sequence[str],
    hypotheses: Sequence[Sequence[Hypothesis]],
    *,
    reranking: Reranking,
    settings: Config,
) -> list[list[Hypothesis]]:
    """Return the hypotheses of each line by their score and what is added to it.

    All scores are log P / lp with the length penalty of the search. Ties keep their
    order. A line that is too long for a model stays as it is; a warning counts these.

    Args:
        lines: Source lines, each with its tag if there are several target languages.
        hypotheses: Those of each line.
        reranking: What is added.
        settings: Those by which the hypotheses were found.

    Raises:
        ValueError: The parameters of a model are not finite numbers.
    """
    pairs = [
        (line, hypothesis.text)
        for line, n_best in zip(lines, hypotheses, strict=True)
        for hypothesis in n_best
        if hypothesis.outputs  # A line without a subword has one without an output.
    ]
    search = settings.search
    inputs = {line: line for line in lines}
    if reranking.forward:
        subwords = reranking.forward.vocabulary.source
        for line in lines:
            inputs[line] = _keep_known_tags(line, settings.data, subwords=subwords)
    forward = _score_texts(
        reranking.forward,
        [(inputs[line], text) for line, text in pairs],
        search=search,
    )
    # A tag or the code that names a target language is no part of the text.
    sources = {line: languages.remove_tag(line, settings.data) for line in lines}
    reverse = _score_texts(
        reranking.reverse,
        [(text, sources[line]) for line, text in pairs],
        search=search,
    )
    reranked, num_long = [], 0
    for line, n_best in zip(lines, hypotheses, strict=True):
        scores = []
        for hypothesis in n_best:
            score = hypothesis.score
            score += reranking.length_reward * _num_subwords(hypothesis)
            if reranking.forward and hypothesis.outputs:
                addition = forward[inputs[line], hypothesis.text]
                score += reranking.forward_weight * addition
            if reranking.reverse and hypothesis.outputs:
                addition = reverse[hypothesis.text, sources[line]]
                score += reranking.reverse_weight * addition
            scores.append(score)
        if np.isnan(scores).any():
            num_long += 1
            reranked.append(list(n_best))
            continue
        order = sorted(range(len(n_best)), key=lambda index: -scores[index])
        reranked.append(
            [
                dataclasses.replace(n_best[index], rank_score=scores[index])
                for index in order
            ]
        )
    if num_long:
        subject = plurals.format_count(num_long, "line is", plural="lines are")
        logger.warning(
            f"{subject} too long for a model that reranks: the translations keep the "
            "order of the search"
        )
    return reranked


def _keep_known_tags(line: str, data: DataConfig, *, subwords: Subwords) -> str:
    """Return a source line without the tags that a reranking model lacks.

    These are the language code and the tags of corpora. A tag that chooses one of
    several target languages stays.

    Args:
        line: A source line of the translator.
        data: The translator's settings.
        subwords: The source subwords of the reranking model.
    """

    def is_known(tag: str) -> bool:
        [ids] = subwords.encode([tag], replace_unknown=True)
        return subwords.num_tags(ids) == len(ids)

    text = languages.remove_language_tag(line, data)
    language = line[: len(line) - len(text)]
    if not language:
        code, text = languages.split_code(line)
        language = code if code and is_known(code.strip()) else ""
    tags, text = languages.split_corpus_tags(text, data)
    return language + " ".join([*filter(is_known, tags.split()), text])


def _num_subwords(hypothesis: Hypothesis) -> int:
    """Return the number of subwords without end marks."""
    return sum(
        len(output.ids) - output.ids.count(types.EOS_ID)
        for output in hypothesis.outputs
    )


def _score_texts(
    model: LoadedModels | None,
    pairs: Sequence[tuple[str, str]],
    *,
    search: SearchConfig,
) -> dict[tuple[str, str], float]:
    """Return log P(target|source) / lp(target) by pair; nan if one is too long."""
    if model is None:
        return {}
    distinct = list(dict.fromkeys(pairs))
    sources = [source for source, _ in distinct]
    source_ids = model.vocabulary.encode(sources)
    target_ids = model.vocabulary.encode([pair[1] for pair in distinct], target=True)
    limits = model.config.search
    fitting = {
        pair: (source, [*target, types.EOS_ID])
        for pair, source, target in zip(distinct, source_ids, target_ids, strict=True)
        if len(source) < limits.max_source_tokens
        and len(target) < limits.max_target_tokens
    }
    scores = dict.fromkeys(distinct, math.nan)
    scored = model.score_ids(list(fitting.values()))
    for (pair, (_, target)), score in zip(fitting.items(), scored, strict=True):
        log_prob = float(np.sum(score.log_probs, dtype=np.float64))
        if not math.isfinite(log_prob):
            raise ValueError(
                f"{pair[1]!r} has no probability: the parameters of a model that "
                "reranks are not finite numbers; name another checkpoint"
            )
        penalty = scoring.length_penalty(
            len(target), alpha=search.length_penalty, form=search.length_penalty_form
        )
        scores[pair] = log_prob / penalty
    return scores
