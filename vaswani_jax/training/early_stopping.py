"""Section 6.2 chooses on the development set: the best parameters, and patience."""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from vaswani_jax.checkpoints import compatibility, store
from vaswani_jax.core import config, parallel, processes, types
from vaswani_jax.training import metrics_log, preemption


class Validation:
    """Evaluates now and then, and keeps the parameters with the best score apart.

    Patience looks at the best score that this run has seen, which its checkpoints
    remember; what is kept apart may be of an evaluation that a kill took back.
    """

    def __init__(
        self,
        settings: config.Config,
        evaluators: Sequence[types.Evaluator],
        found: store.Checkpoints,
        *,
        valid_text: str,
    ) -> None:
        """Prepare.

        Args:
            settings: Of the run.
            evaluators: What is computed of the parameters.
            found: Where the best ones are kept.
            valid_text: The fingerprint of the text that scores are of.
        """
        self._settings, self._training = settings, settings.training
        self._evaluators = evaluators
        self._found = found
        self._valid_text = valid_text
        self._seen, self._step = -math.inf, 0
        self._kept = -math.inf

    def go_on(
        self, start: int, record: Mapping[str, Any], *, log: Callable[[str], None]
    ) -> None:
        """Remember what this run has found on this text before a step.

        Args:
            start: The step.
            record: That of its checkpoint, empty if there is none.
            log: Told if something is lost or of no use any more.
        """
        self._seen, self._step, self._kept = -math.inf, start, -math.inf
        steps = self._found.steps()
        if steps and not start and processes.is_main_process():
            aside = self._found.set_aside(steps, word="old")
            log(f"note: {self._found.directory} had parameters, now in {aside}")
        elif steps and start:
            self._remember_kept(steps[-1], log=log)
        seen = record.get("best")
        if seen and self._is_comparable({**record, **seen}):
            self._seen, self._step = float(seen["score"]), int(seen["step"])
        elif "best" not in record and self._kept > -math.inf and steps[-1] <= start:
            # A checkpoint from before they remembered.
            self._seen, self._step = self._kept, steps[-1]

    def _remember_kept(self, step: int, *, log: Callable[[str], None]) -> None:
        try:
            record = self._found.restore(step, []).record
        except store.CheckpointError as error:
            log(f"warning: {error}; the next evaluation counts as the best so far")
            return
        if self._is_comparable(record):
            self._kept = float(record["score"])
        else:
            log(
                f"note: the score of {self._found.directory / str(step)} is of another "
                "text, metric or search; the next evaluation counts as the best so "
                f"far, and this goes to {self._found.directory.name}.old"
            )

    def _is_comparable(self, record: Mapping[str, Any]) -> bool:
        """Whether a score was made as those of this run are."""
        metric = self._training.best_metric
        changes = compatibility.changes(record.get("config", {}), self._settings)
        scores_changed = any(
            config.SETTINGS[change.key].affects == "scores" for change in changes
        )
        return (
            record.get("valid_text") == self._valid_text
            # There was no other metric before it was recorded.
            and record.get("score_of", "bleu") == metric
            and not (metric == "bleu" and scores_changed)
        )

    def seen(self) -> dict[str, Any] | None:
        """The best score so far, for the record of a checkpoint."""
        if self._seen == -math.inf:
            return None
        return {"score": self._seen, "step": self._step, **self._score_of()}

    def _score_of(self) -> dict[str, str]:
        return {"score_of": self._training.best_metric, "valid_text": self._valid_text}

    def evaluate(
        self,
        made: int,
        params: Any,
        *,
        signals: preemption.Signals,
        told: metrics_log.Log,
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
        if self._training.best_metric == "bleu":
            score = values.get("valid/bleu", score)
        if score > self._seen:
            self._seen, self._step = score, made
        if processes.broadcast_from_main(score > self._kept):
            more = {"score": score, "metrics": values, **self._score_of()}
            items = {"params": parallel.gather(params)}
            recorded = {**record(), **more}
            try:
                processes.run_on_main(
                    lambda: self._replace(made, items, recorded),
                    store.NotWrittenError,
                )
                self._kept = score
            except store.NotWrittenError as error:
                told.message(f"warning: {error}; training goes on without it")
        return True

    def _replace(self, made: int, items: Any, record: dict[str, Any]) -> None:
        steps = self._found.steps()
        try:
            if steps and self._kept == -math.inf:
                # They were the best by another measure, or are damaged.
                self._found.set_aside(steps, word="old")
            # A run that was killed may have left one, which stays if it is not deleted.
            self._found.delete([step for step in self._found.steps() if step >= made])
        except OSError as error:
            raise store.NotWrittenError(
                f"{self._found.directory} cannot be replaced: {error}"
            ) from error
        self._found.save(made, items, record)

    def is_over(self, made: int) -> bool:
        """Whether nothing has been better for so long that training ends."""
        longest = self._training.patience * self._training.evaluate_every_steps
        return bool(longest) and made - self._step >= longest

    def why_over(self) -> str:
        """The reason, in words."""
        return (
            f"no better valid/{self._training.best_metric} than that of step "
            f"{self._step:,} in {self._training.patience} evaluations "
            "(config.training.patience)"
        )
