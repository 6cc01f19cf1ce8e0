"""Section 6.2 chooses on the development set: the best parameters, and patience."""

import math
import time
from collections.abc import Callable, Sequence
from typing import Any

from vaswani_jax.core import config, parallel, processes
from vaswani_jax.training import checkpoints, log, stopping, validation


class Validation:
    """Evaluates now and then, and keeps the parameters with the best score apart."""

    def __init__(
        self,
        settings: config.TrainingConfig,
        evaluators: Sequence[validation.Evaluator],
        found: checkpoints.Checkpoints,
        *,
        valid_text: str,
    ) -> None:
        """Prepare.

        Args:
            settings: Of the training.
            evaluators: What is computed of the parameters.
            found: Where the best ones are kept.
            valid_text: The fingerprint of the text that scores are of.
        """
        self._settings = settings
        self._evaluators = evaluators
        self._found = found
        self._valid_text = valid_text
        self._score, self._step = -math.inf, 0
        self._score_of = settings.best_metric

    def go_on(self, start: int, *, log: Callable[[str], None]) -> None:
        """Remember what this run has found on this text before a step.

        Args:
            start: The step.
            log: Told if that is lost.
        """
        self._score, self._step = -math.inf, 0
        steps = self._found.steps()
        if not start:  # What lies there is made again, or is of another run.
            if processes.is_main_process():
                self._found.delete(steps)
        elif steps:
            try:
                record = self._found.restore(steps[-1], []).record
            except checkpoints.CheckpointError as error:
                log(f"warning: {error}; the next evaluation counts as the best so far")
                return
            same_text = record.get("valid_text") == self._valid_text
            # There was no other metric before it was recorded.
            if same_text and record.get("score_of", "bleu") == self._score_of:
                self._score, self._step = float(record["score"]), steps[-1]

    def evaluate(
        self,
        made: int,
        params: Any,
        *,
        signals: stopping.Signals,
        told: log.Log,
        record: Callable[[], dict[str, Any]],
    ) -> bool:
        """Evaluate the parameters of a step, and keep them if they are the best.

        Returns:
            Whether it came to its end.
        """
        begun = time.monotonic()

        def compute() -> dict[str, float]:
            found = [evaluator(params) for evaluator in self._evaluators]
            return {name: value for one in found for name, value in one.items()}

        values = signals.cut_short(compute)
        if values is None:
            return False
        values["time/evaluation_seconds"] = time.monotonic() - begun
        told.metrics(made, values)
        shown = "  ".join(f"{name} {value:.4g}" for name, value in values.items())
        told.message(f"step {made:,}  {shown}")
        score = -values.get("valid/loss", 0.0)
        if self._settings.best_metric == "bleu":
            score = values.get("valid/bleu", score)
        if score > self._score:
            more = {
                "score": score,
                "score_of": self._score_of,
                "metrics": values,
                "valid_text": self._valid_text,
            }
            items = {"params": parallel.gather(params)}
            recorded = {**record(), **more}
            try:
                processes.by_main_process(
                    lambda: self._replace(made, items, recorded),
                    checkpoints.NotWrittenError,
                )
                self._score, self._step = score, made
            except checkpoints.NotWrittenError as error:
                told.message(f"warning: {error}; training goes on without it")
        return True

    def _replace(self, made: int, items: Any, record: dict[str, Any]) -> None:
        # A run that was killed may have left one, which stays if it is not deleted.
        self._found.delete([step for step in self._found.steps() if step >= made])
        self._found.save(made, items, record)

    def is_over(self, made: int) -> bool:
        """Whether nothing has been better for so long that training ends."""
        longest = self._settings.patience * self._settings.evaluate_every_steps
        return bool(longest) and made - self._step >= longest

    def why_over(self) -> str:
        """The reason, in words."""
        return (
            f"no better valid/{self._settings.best_metric} than that of step "
            f"{self._step:,} in {self._settings.patience} evaluations "
            "(config.training.patience)"
        )
