"""Evaluate a system at a time of its run: average, choose a length penalty, translate.

The procedure is the same for all systems. On the validation set it chooses how many of
the newest checkpoints to average, by greedy searches, since some peers take minutes
for each larger one. Then it chooses the penalty with the task's beam, and translates
the test set once. Evaluation time is not training time.
"""

import dataclasses
import json
import math
import pathlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tests.benchmarks.quality import clock, systems, text
from tests.benchmarks.quality.clock import Checkpoint
from tests.benchmarks.quality.systems import System
from tests.benchmarks.quality.text import Text
from vaswani_jax.evaluation import metrics

# Few, because a search on the validation set takes the slowest peer minutes.
PENALTIES = (0.0, 1.0, 2.0)
BATCH_SENTENCES = 32
UNKNOWN = "<unk>"  # of all systems
CURVE_POINTS = 16
LOG_EVERY = 25
# Added to the longest reference of both sets, so no output is cut.
EXTRA_SUBWORDS = 50


@dataclasses.dataclass(frozen=True)
class Evaluator:
    """An evaluator that translates with a system's checkpoints, and scores the outputs.

    Attributes:
        system: The system.
        text: The prepared text.
        directory: The directory of the run.
        beam: The beam size of all searches.
        job: The values that all jobs of the run share.
        run: A function that runs a job; its second argument names the log.
    """

    system: System
    text: Text
    directory: pathlib.Path
    beam: int
    job: Mapping[str, Any]
    run: Callable[[Mapping[str, Any], str], None]

    def measure_curve(
        self,
        checkpoints: Sequence[Checkpoint],
        *,
        minutes: float,
        num_points: int = CURVE_POINTS,
    ) -> list[dict[str, float]]:
        """Return the loss and the greedy BLEU of single checkpoints over the run."""
        times = [minutes * n / num_points for n in range(1, num_points + 1)]
        by_step: dict[int, Checkpoint] = {}
        for time in times:
            if any(c.elapsed_seconds <= 60 * time for c in checkpoints):
                [newest] = clock.choose_checkpoints(
                    checkpoints, until_seconds=60 * time, count=1
                )
                by_step[newest.step] = newest
        names = {step: f"curve.{step}" for step in by_step}
        self._translate(
            "curve",
            [
                self._make_model(
                    [checkpoint],
                    searches=[
                        self._make_search(names[step], "valid", beam=1, penalty=0.0)
                    ],
                    loss_name=names[step],
                )
                for step, checkpoint in by_step.items()
            ],
        )
        return [
            {
                "minutes": checkpoint.elapsed_seconds / 60,
                "step": step,
                "loss": self._read_loss(names[step])["loss"],
                "bleu": self._score_outputs(names[step], "valid"),
            }
            for step, checkpoint in sorted(by_step.items())
        ]

    def evaluate(
        self, checkpoints: Sequence[Checkpoint], *, minutes: float
    ) -> dict[str, Any]:
        """Return the scores of a system at a time, and the choices behind them.

        Raises:
            ValueError: No checkpoint is in time, or the outputs lack lines.
        """
        seconds = 60 * minutes
        available = sum(c.elapsed_seconds <= seconds for c in checkpoints)
        counts = [count for count in self.system.counts if count <= available]
        if not counts:
            raise ValueError(
                f"{self.system.title} has no checkpoint within {minutes:g} minutes"
            )
        newest_by_count = {
            count: clock.choose_checkpoints(
                checkpoints, until_seconds=seconds, count=count
            )
            for count in counts
        }
        prefix = f"{minutes:g}"
        by_count = self._score_variants(
            f"{prefix}.count",
            {count: (newest, 0.0) for count, newest in newest_by_count.items()},
            beam=1,
        )
        count = choose_best(by_count)
        by_penalty = self._score_variants(
            f"{prefix}.penalty",
            {penalty: (newest_by_count[count], penalty) for penalty in PENALTIES},
            beam=self.beam,
        )
        penalty = choose_best(by_penalty)
        valid = f"{prefix}.penalty.{penalty:g}"
        test = f"{prefix}.test"
        search = self._make_search(test, "test", beam=self.beam, penalty=penalty)
        self._translate(
            test,
            [
                self._make_model(
                    newest_by_count[count],
                    searches=[search],
                    loss_name=f"{prefix}.loss",
                )
            ],
        )
        return {
            "minutes": minutes,
            "count": count,
            "penalty": penalty,
            "steps": [checkpoint.step for checkpoint in newest_by_count[count]],
            "newest_minutes": newest_by_count[count][-1].elapsed_seconds / 60,
            "by_count": [[n, value] for n, value in by_count.items()],
            "by_penalty": [[p, value] for p, value in by_penalty.items()],
            "loss": self._read_loss(f"{prefix}.loss")["loss"],
            "parameters": self._read_loss(f"{prefix}.loss")["parameters"],
            "valid": self._score_outputs(valid, "valid"),
            "test": self._score_outputs(test, "test"),
            "outputs": {"valid": f"{valid}.txt", "test": f"{test}.txt"},
        }

    def _score_variants(
        self,
        name: str,
        variants: Mapping[float, tuple[list[Checkpoint], float]],
        *,
        beam: int,
    ) -> dict[float, float]:
        """Return the validation score of each variant."""
        self._translate(
            name,
            [
                self._make_model(
                    checkpoints,
                    searches=[
                        self._make_search(
                            f"{name}.{key:g}", "valid", beam=beam, penalty=penalty
                        )
                    ],
                )
                for key, (checkpoints, penalty) in variants.items()
            ],
        )
        return {
            key: self._score_outputs(f"{name}.{key:g}", "valid") for key in variants
        }

    def _translate(self, name: str, models: list[dict[str, Any]]) -> None:
        merged: list[dict[str, Any]] = []
        for model in models:
            previous = merged[-1] if merged else None
            if previous and previous["checkpoints"] == model["checkpoints"]:
                previous["searches"] += model["searches"]
            else:
                merged.append(model)
        self.run({**self.job, "action": "translate", "models": merged}, name)

    def _make_model(
        self,
        checkpoints: Sequence[Checkpoint],
        *,
        searches: list[dict[str, Any]],
        loss_name: str = "",
    ) -> dict[str, Any]:
        loss_files = {
            **{side: str(self.text.path("valid", side)) for side in text.SIDES},
            "words": str(self.text.words("valid", "source")),
            "references": str(self.text.words("valid", "target")),
            "output": str(self.directory / f"{loss_name}.json"),
        }
        return {
            "checkpoints": [checkpoint.path for checkpoint in checkpoints],
            "searches": searches,
            "measure_loss": loss_files if loss_name else None,
        }

    def _make_search(
        self, name: str, split: str, *, beam: int, penalty: float
    ) -> dict[str, Any]:
        return {
            "source": str(self.text.path(split, "source")),
            "words": str(self.text.words(split, "source")),
            "output": str(self.directory / f"{name}.subwords"),
            "beam": beam,
            "penalty": penalty,
        }

    def _read_loss(self, name: str) -> dict[str, float]:
        """Return the cross entropy and the size that a worker has measured."""
        return json.loads((self.directory / f"{name}.json").read_text())

    def _score_outputs(self, name: str, split: str) -> float:
        """Join the subwords of outputs, keep the words, and return their BLEU."""
        lines = text.read_lines(self.directory / f"{name}.subwords")
        outputs = text.join(self.text.vocabulary, lines)
        references = self.text.references[split]
        if len(outputs) != len(references):
            raise ValueError(
                f"{self.system.title} wrote {len(outputs)} lines of {len(references)}: "
                f"{self.directory / name}.subwords"
            )
        num_unknown = sum(line.split().count(UNKNOWN) for line in lines)
        if 2 * num_unknown > sum(len(line.split()) for line in lines):
            raise ValueError(
                f"{self.system.title} wrote little but {UNKNOWN}: its search has other "
                f"parameters than its training; see {self.directory / name}.subwords"
            )
        text.write_lines(self.directory / f"{name}.txt", outputs)
        metric = metrics.find_metrics(references, data=self.text.data)[0]
        return metric.score(outputs, references, resamples=0).value


def choose_best(scores: Mapping[float, float]) -> float:
    """Return the variant with the highest score, the first of equal scores.

    >>> choose_best({1: 30.0, 4: 31.5, 8: 31.5})
    4
    """
    return max(scores, key=lambda variant: scores[variant])


def measure_longest_output(prepared: Text) -> int:
    """Return the number of subwords that an output may have."""
    lengths = [
        len(line.split(" "))
        for split in text.SPLITS
        for line in text.read_lines(prepared.path(split, "target"))
    ]
    return max(lengths) + EXTRA_SUBWORDS


def make_job(
    system: System,
    prepared: Text,
    directory: pathlib.Path,
    *,
    settings_name: str,
    seed: int,
    checkpoint_every: int,
    flags: Sequence[str],
) -> dict[str, Any]:
    """Return the values that all jobs of a run share."""
    return {
        "text": str(prepared.directory),
        "output": str(directory),
        "flags": list(flags),
        "settings_name": settings_name,
        "seed": seed,
        "threads": systems.THREADS,
        "checkpoint_every": checkpoint_every,
        "log_every": math.gcd(checkpoint_every, LOG_EVERY),
        "batch_tokens": systems.BATCH_TOKENS,
        "batch": BATCH_SENTENCES,
        "longest": measure_longest_output(prepared),
    }
