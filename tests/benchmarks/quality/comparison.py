"""Compare each seed of ours with each peer at each time, on both sets."""

import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tests.benchmarks.quality import systems
from tests.benchmarks.quality.tasks import SPLITS
from vaswani_jax.core.config import DataConfig
from vaswani_jax.evaluation import metrics, randomization, significance

# Target tokens of a batch of docs/results/speed.json.
SPEED_TOKENS = 128 * 32


def split_keys(records: Mapping[str, Mapping[str, Any]]) -> tuple[list[str], list[str]]:
    """Return the keys of our runs and those of the peers'."""
    our_keys = [key for key, r in records.items() if r["system"] == systems.VASWANI_JAX]
    return our_keys, [key for key in records if key not in our_keys]


def score_all(
    records: Mapping[str, Mapping[str, Any]],
    outputs: Callable[[str, int, str], Sequence[str]],
    references: Mapping[str, Sequence[str]],
    *,
    data: DataConfig,
) -> list[dict[str, Any]]:
    """Return the score of each run at each time on each set, with its interval."""
    scores = []
    for key, record in records.items():
        for index, evaluation in enumerate(record["evaluations"]):
            for split in SPLITS:
                metric = metrics.find_metrics(references[split], data=data)[0]
                score = metric.score(
                    outputs(key, index, split),
                    references[split],
                    resamples=metrics.RESAMPLES,
                )
                scores.append(
                    {
                        "run": key,
                        "minutes": evaluation["minutes"],
                        "split": split,
                        "score": score.value,
                        "half_width": score.interval.half_width,
                        "signature": score.signature,
                    }
                )
    return scores


def compare_all(
    records: Mapping[str, Mapping[str, Any]],
    outputs: Callable[[str, int, str], Sequence[str]],
    references: Mapping[str, Sequence[str]],
    *,
    data: DataConfig,
) -> list[dict[str, Any]]:
    """Return the paired test of each run of ours against each peer.

    The p-values of one run of ours, at one time on one set, are corrected for the
    number of peers, by Holm's method.
    """
    our_keys, peers = split_keys(records)
    comparisons: list[dict[str, Any]] = []
    for key in our_keys:
        for index, evaluation in enumerate(records[key]["evaluations"]):
            for split in SPLITS:
                metric = metrics.find_metrics(references[split], data=data)[0]
                family = []
                for peer in peers:
                    tested = randomization.compare(
                        [[outputs(run, index, split)] for run in (peer, key)],
                        references[split],
                        metric=metric,
                    )
                    [difference] = tested.differences
                    family.append(
                        {
                            "run": key,
                            "peer": peer,
                            "minutes": evaluation["minutes"],
                            "split": split,
                            "difference": difference.value,
                            "p_value": difference.p_value,
                        }
                    )
                corrected = significance.holm([entry["p_value"] for entry in family])
                for entry, p_value in zip(family, corrected, strict=True):
                    entry["corrected_p_value"] = p_value
                    entry["is_significant"] = p_value < significance.LEVEL
                comparisons += family
    return comparisons


def compute_tokens_per_second(record: Mapping[str, Any]) -> float:
    """Return the median of the logged target tokens a second."""
    return statistics.median(point["tokens_per_second"] for point in record["progress"])


def estimate_tokens_per_second(title: str, speed: Mapping[str, Any]) -> float | None:
    """Return the target tokens a second that docs/results/speed.json implies.

    The faster of the two allocators, on batches without padding; None if it is not
    there.
    """
    rows = {row[0]: row[1:] for row in speed["training"]["seconds"]["rows"]}
    seconds = [value for value in rows.get(title, [])[:2] if value]
    return SPEED_TOKENS / min(seconds) if seconds else None
