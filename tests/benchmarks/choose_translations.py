"""Score minimum-Bayes-risk decoding beside beam search, and time it.

python -m tests.benchmarks.choose_translations RUN SOURCE REFERENCES

Prints JSON, a row for each way to choose a translation of a line.
"""

import argparse
import json
import pathlib
import time
from typing import Any

import vaswani_jax
from vaswani_jax.evaluation import metrics
from vaswani_jax.inference import minimum_bayes_risk

# How many hypotheses of a line, and the settings that find them.
LISTS: dict[str, tuple[int, dict[str, Any]]] = {
    "beam 4": (1, {"search.beam_size": 4}),
    "10-best": (10, {"search.beam_size": 10}),
    "16 samples": (16, {"search.sampling": True}),
}
LABELS = "BLEU", "chrF2"


def main() -> None:
    """Translate the source in each way, and score the outputs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run")
    parser.add_argument("source", type=pathlib.Path)
    parser.add_argument("references", type=pathlib.Path)
    arguments = parser.parse_args()
    source = arguments.source.read_text().splitlines()
    references = arguments.references.read_text().splitlines()
    for name, (n_best, overrides) in LISTS.items():
        translator = vaswani_jax.load(arguments.run, overrides=overrides)
        data, search = translator.config.data, translator.config.search
        begin = time.perf_counter()
        hypotheses = translator.hypotheses(source, n_best=n_best)
        seconds = time.perf_counter() - begin
        for utility in (None, *minimum_bayes_risk.UTILITIES):
            begin = time.perf_counter()
            chosen = hypotheses
            if utility:
                chosen = minimum_bayes_risk.rank_lines(
                    source, hypotheses, utility=utility, data=data, search=search
                )
            row: dict[str, Any] = {
                "list": name,
                "utility": utility,
                "search_seconds": round(seconds, 1),
                "choice_seconds": round(time.perf_counter() - begin, 1),
            }
            outputs = [n_best[0].text for n_best in chosen]
            for metric in metrics.find_metrics(references, data=data):
                if metric.label in LABELS:
                    score = metric.score(
                        outputs, references, resamples=metrics.RESAMPLES
                    )
                    assert score.interval
                    row[metric.label] = round(score.value, 2)
                    row[f"{metric.label} ±"] = round(score.interval.half_width, 2)
                    row[f"{metric.label} signature"] = score.signature
            row["words"] = sum(len(line.split()) for line in outputs)
            print(json.dumps(row, ensure_ascii=False), flush=True)
            if n_best == 1:
                break


if __name__ == "__main__":
    main()
