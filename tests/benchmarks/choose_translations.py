"""Compare ways to choose among candidate translations with the beam search's first.

    python -m tests.benchmarks.choose_translations RUN --valid SOURCE REFERENCES \\
        --test SOURCE REFERENCES [--forward=RUN,RUN] [--reverse=RUN]

Weights are those with the highest BLEU on the validation set, on which nothing else is
measured. Prints JSON, a row for each way: the scores of the test set with the intervals
of sacreBLEU's bootstrap, and the difference of BLEU from the search's first, with its
interval and p-value by approximate randomisation.
"""

import argparse
import dataclasses
import itertools
import json
import pathlib
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import vaswani_jax
from vaswani_jax.evaluation import metrics, randomization
from vaswani_jax.evaluation.metrics import Metric
from vaswani_jax.inference import minimum_bayes_risk
from vaswani_jax.inference.results import Hypothesis
from vaswani_jax.inference.translator import Translator

SAMPLES = (16,)
LABELS = "BLEU", "chrF2"
# A weight of 0 is the order of the search.
WEIGHTS = {
    "forward_weight": (0.0, 0.25, 0.5, 1.0, 2.0, 4.0),
    "reverse_weight": (0.0, 0.25, 0.5, 1.0, 2.0),
    "length_reward": (-0.1, -0.05, -0.02, 0.0, 0.02, 0.05, 0.1),
}
NBestLists = list[list[Hypothesis]]


def main() -> None:
    """Translate the test set in each way, and score the outputs."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("run")
    for split in ("valid", "test"):
        parser.add_argument(f"--{split}", nargs=2, type=pathlib.Path, required=True)
    parser.add_argument("--forward", default="", help="other runs of the direction")
    parser.add_argument("--reverse", help="a run of the other direction")
    arguments = parser.parse_args()
    texts = {
        split: [path.read_text("utf-8").splitlines() for path in paths]
        for split, paths in (("valid", arguments.valid), ("test", arguments.test))
    }
    translator = vaswani_jax.load(arguments.run)
    models = {}
    if arguments.forward:
        first, *others = arguments.forward.split(",")
        models["forward"] = vaswani_jax.load(first, ensemble=others)
    if arguments.reverse:
        models["reverse"] = vaswani_jax.load(arguments.reverse)
    _, references = texts["test"]
    all_metrics = metrics.find_metrics(references, data=translator.config.data)
    chosen_metrics = [metric for metric in all_metrics if metric.label in LABELS]
    baseline: list[str] = []
    for row, chosen in _choose(translator, models, texts, bleu=all_metrics[0]):
        outputs = [candidates[0].text for candidates in chosen]
        baseline = baseline or outputs
        row |= _score(outputs, baseline, references, chosen_metrics)
        print(json.dumps(row, ensure_ascii=False), flush=True)


def _choose(
    translator: Translator,
    models: Mapping[str, Translator],
    texts: Mapping[str, Sequence[list[str]]],
    *,
    bleu: Metric,
) -> Iterator[tuple[dict[str, Any], NBestLists]]:
    """Yield each way and its ranked candidates, beginning with the search's order."""
    size = translator.config.search.beam_size
    source, _ = texts["test"]
    n_best = {
        split: translator.hypotheses(lines, n_best=size)
        for split, (lines, _) in texts.items()
    }
    name = f"{size}-best"
    yield {"candidates": name, "choice": "the search's first"}, n_best["test"]
    for number in (0, *SAMPLES):
        settings = {"sampling": True, "beam_size": number} if number else {}
        candidates = n_best["test"]
        if number:
            name = f"{number} samples"
            candidates = translator.hypotheses(source, n_best=number, **settings)
        for utility in minimum_bayes_risk.UTILITIES:
            begin = time.perf_counter()
            chosen = minimum_bayes_risk.rank_lines(
                source,
                candidates,
                utility=utility,
                data=translator.config.data,
                search=dataclasses.replace(translator.config.search, **settings),
            )
            seconds = round(time.perf_counter() - begin, 1)
            row = {"candidates": name, "choice": f"expected {utility}"}
            yield {**row, "seconds": seconds}, chosen
    subsets = [
        names
        for count in range(len(models) + 1)
        for names in itertools.combinations(models, count)
    ]
    for names in subsets:
        chosen_models = {name: models[name] for name in names}
        weights = choose_weights(
            translator, chosen_models, n_best["valid"], texts["valid"], bleu=bleu
        )
        reranked = translator.rerank(source, n_best["test"], **chosen_models, **weights)
        row = {"candidates": f"{size}-best", "choice": "reranking", **weights}
        yield row, reranked


def choose_weights(
    translator: Translator,
    models: Mapping[str, Translator],
    n_best: NBestLists,
    valid: Sequence[list[str]],
    *,
    bleu: Metric,
) -> dict[str, float]:
    """Return the weights of the models, and the length reward, that score highest.

    Each model scores the candidates once; all weights use these scores.
    """
    source, references = valid
    terms: dict[str, Any] = {f"{name}_weight": {name: models[name]} for name in models}
    terms["length_reward"] = {"length_reward": 1.0}
    by_term: dict[str, list[dict[str, float]]] = {}
    for name, options in terms.items():
        ranked = translator.rerank(source, n_best, **options)
        by_term[name] = [
            {h.text: h.rank_score - h.score for h in candidates}
            for candidates in ranked
        ]
    best: tuple[float, dict[str, float]] = (-1.0, {})
    for values in itertools.product(*(WEIGHTS[name] for name in by_term)):
        weights = dict(zip(by_term, values, strict=True))
        outputs = [
            max(
                candidates,
                key=lambda h, line=line: (
                    h.score
                    + sum(
                        w * by_term[name][line][h.text] for name, w in weights.items()
                    )
                ),
            ).text
            for line, candidates in enumerate(n_best)
        ]
        score = bleu.score(outputs, references, resamples=0).value
        best = max(best, (score, weights), key=lambda pair: pair[0])
    return best[1]


def _score(
    outputs: list[str],
    baseline: list[str],
    references: list[str],
    chosen_metrics: Sequence[Metric],
) -> dict[str, Any]:
    """Return the scores with their intervals, and the difference from a baseline."""
    row: dict[str, Any] = {}
    for metric in chosen_metrics:
        score = metric.score(outputs, references, resamples=metrics.RESAMPLES)
        assert score.interval
        row[metric.label] = round(score.value, 2)
        row[f"{metric.label} ±"] = round(score.interval.half_width, 2)
        row[f"{metric.label} signature"] = score.signature
    comparison = randomization.compare(
        [[baseline], [outputs]], references, metric=chosen_metrics[0]
    )
    [difference] = comparison.differences
    row["difference"] = round(difference.value, 2)
    assert difference.interval
    row["difference from"], row["difference to"] = (
        round(end, 2) for end in difference.interval
    )
    row["p"] = round(difference.p_value, 3)
    row["words"] = sum(len(line.split()) for line in outputs)
    return row


if __name__ == "__main__":
    main()
