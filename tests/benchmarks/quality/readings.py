"""Read a system at a time of its run: average, choose a length penalty, translate.

The same procedure for everyone. On the validation set, with the beam of the task: first
the number of newest checkpoints to average, with a penalty of 1, then the penalty. The
test set is translated once, with both. No time of the run goes into it.
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

PENALTIES = (0.0, 0.5, 1.0, 1.5, 2.0)
FIRST_PENALTY = 1.0
BATCH_SENTENCES = 32
CURVE_POINTS = 16
LOG_EVERY = 25
# Beside the longest reference of both sets; no one is cut by it.
MORE_PIECES = 50


@dataclasses.dataclass(frozen=True)
class Reader:
    """Translates with a system's checkpoints, and scores.

    Attributes:
        system: The system.
        text: The prepared text.
        directory: Of the run.
        beam: Of the searches.
        job: What all jobs of the run have.
        run: Runs a job, with the name of its log.
    """

    system: System
    text: Text
    directory: pathlib.Path
    beam: int
    job: Mapping[str, Any]
    run: Callable[[Mapping[str, Any], str], None]

    def curve(
        self, checkpoints: Sequence[Checkpoint], *, minutes: float
    ) -> list[dict[str, float]]:
        """Return loss and greedy BLEU of single checkpoints over the run."""
        times = [minutes * n / CURVE_POINTS for n in range(1, CURVE_POINTS + 1)]
        chosen: dict[int, Checkpoint] = {}
        for time in times:
            if any(c.elapsed <= 60 * time for c in checkpoints):
                [newest] = clock.choose(checkpoints, until_seconds=60 * time, count=1)
                chosen[newest.step] = newest
        names = {step: f"curve.{step}" for step in chosen}
        self._translate(
            "curve",
            [
                self._model(
                    [checkpoint],
                    searches=[self._search(names[step], "valid", beam=1, penalty=0.0)],
                    score=names[step],
                )
                for step, checkpoint in chosen.items()
            ],
        )
        return [
            {
                "minutes": checkpoint.elapsed / 60,
                "step": step,
                "loss": self._loss(names[step])["loss"],
                "bleu": self._score(names[step], "valid"),
            }
            for step, checkpoint in sorted(chosen.items())
        ]

    def read(
        self, checkpoints: Sequence[Checkpoint], *, minutes: float
    ) -> dict[str, Any]:
        """Return the scores of a system at a time, and how they were reached."""
        seconds = 60 * minutes
        available = sum(c.elapsed <= seconds for c in checkpoints)
        counts = [count for count in self.system.counts if count <= available]
        if not counts:
            raise ValueError(
                f"{self.system.title} has no checkpoint within {minutes:g} minutes"
            )
        chosen = {
            count: clock.choose(checkpoints, until_seconds=seconds, count=count)
            for count in counts
        }
        at = f"{minutes:g}"
        by_count = self._try(
            f"{at}.count",
            {count: (newest, FIRST_PENALTY) for count, newest in chosen.items()},
        )
        count = best(by_count)
        by_penalty = {FIRST_PENALTY: by_count[count]} | self._try(
            f"{at}.penalty",
            {
                penalty: (chosen[count], penalty)
                for penalty in PENALTIES
                if penalty != FIRST_PENALTY
            },
        )
        penalty = best(by_penalty)
        valid = (
            f"{at}.count.{count:g}"
            if penalty == FIRST_PENALTY
            else f"{at}.penalty.{penalty:g}"
        )
        test = f"{at}.test"
        search = self._search(test, "test", beam=self.beam, penalty=penalty)
        self._translate(
            test, [self._model(chosen[count], searches=[search], score=f"{at}.loss")]
        )
        return {
            "minutes": minutes,
            "count": count,
            "penalty": penalty,
            "steps": [checkpoint.step for checkpoint in chosen[count]],
            "by_count": [[n, value] for n, value in by_count.items()],
            "by_penalty": [[p, by_penalty[p]] for p in sorted(by_penalty)],
            "loss": self._loss(f"{at}.loss")["loss"],
            "parameters": self._loss(f"{at}.loss")["parameters"],
            "valid": self._score(valid, "valid"),
            "test": self._score(test, "test"),
            "outputs": {"valid": f"{valid}.txt", "test": f"{test}.txt"},
        }

    def _try(
        self, name: str, variants: Mapping[float, tuple[list[Checkpoint], float]]
    ) -> dict[float, float]:
        """Return the validation score of each variant."""
        self._translate(
            name,
            [
                self._model(
                    checkpoints,
                    searches=[
                        self._search(
                            f"{name}.{key:g}", "valid", beam=self.beam, penalty=penalty
                        )
                    ],
                )
                for key, (checkpoints, penalty) in variants.items()
            ],
        )
        return {key: self._score(f"{name}.{key:g}", "valid") for key in variants}

    def _translate(self, name: str, models: list[dict[str, Any]]) -> None:
        merged: list[dict[str, Any]] = []
        for model in models:
            previous = merged[-1] if merged else None
            if previous and previous["checkpoints"] == model["checkpoints"]:
                previous["searches"] += model["searches"]
            else:
                merged.append(model)
        self.run({**self.job, "action": "translate", "models": merged}, name)

    def _model(
        self,
        checkpoints: Sequence[Checkpoint],
        *,
        searches: list[dict[str, Any]],
        score: str = "",
    ) -> dict[str, Any]:
        scored = {
            **{side: str(self.text.path("valid", side)) for side in text.SIDES},
            "words": str(self.text.words("valid", "source")),
            "references": str(self.text.words("valid", "target")),
            "output": str(self.directory / f"{score}.json"),
        }
        return {
            "checkpoints": [checkpoint.path for checkpoint in checkpoints],
            "searches": searches,
            "score": scored if score else None,
        }

    def _search(
        self, name: str, split: str, *, beam: int, penalty: float
    ) -> dict[str, Any]:
        return {
            "source": str(self.text.path(split, "source")),
            "words": str(self.text.words(split, "source")),
            "output": str(self.directory / f"{name}.pieces"),
            "beam": beam,
            "penalty": penalty,
        }

    def _loss(self, name: str) -> dict[str, float]:
        """Return the cross entropy and the size that a worker has measured."""
        return json.loads((self.directory / f"{name}.json").read_text())

    def _score(self, name: str, split: str) -> float:
        """Join the pieces of outputs into words, keep these, and return their BLEU."""
        lines = text.read_lines(self.directory / f"{name}.pieces")
        outputs = text.join(self.text.vocabulary, lines)
        references = self.text.references[split]
        if len(outputs) != len(references):
            raise ValueError(
                f"{self.system.title} wrote {len(outputs)} lines of {len(references)}: "
                f"{self.directory / name}.pieces"
            )
        text.write_lines(self.directory / f"{name}.txt", outputs)
        metric = metrics.find_metrics(references, data=self.text.data)[0]
        return metric.score(outputs, references, resamples=0).value


def best(scores: Mapping[float, float]) -> float:
    """Return the variant with the highest score; of equal ones the first.

    >>> best({1: 30.0, 4: 31.5, 8: 31.5})
    4
    """
    return max(scores, key=lambda variant: scores[variant])


def longest_output(prepared: Text) -> int:
    """Return how many pieces an output may have."""
    lengths = [
        len(line.split(" "))
        for split in text.SPLITS
        for line in text.read_lines(prepared.path(split, "target"))
    ]
    return max(lengths) + MORE_PIECES


def job_of(
    system: System,
    prepared: Text,
    directory: pathlib.Path,
    *,
    settings: str,
    seed: int,
    checkpoint_every: int,
    flags: Sequence[str],
) -> dict[str, Any]:
    """Return what all jobs of a run have."""
    return {
        "text": str(prepared.directory),
        "output": str(directory),
        "flags": list(flags),
        "settings": settings,
        "seed": seed,
        "threads": systems.THREADS,
        "checkpoint_every": checkpoint_every,
        "log_every": math.gcd(checkpoint_every, LOG_EVERY),
        "batch_tokens": systems.BATCH_TOKENS,
        "batch": BATCH_SENTENCES,
        "longest": longest_output(prepared),
    }
