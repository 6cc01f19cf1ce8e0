"""Section 5: the training loop. It knows steps, checkpoints and evaluators."""

import contextlib
import math
import pathlib
import time
from collections.abc import Sequence
from typing import Any

import flax.serialization
import jax

from vaswani_jax.core import config, parallel
from vaswani_jax.data import batch_modes, corpus
from vaswani_jax.training import (
    checkpoints,
    history,
    log,
    loss,
    memory,
    optimizer,
    selection,
    step,
    validation,
)


class DivergedError(RuntimeError):
    """The loss or the gradient is not finite."""


class Run:
    """A training run in a work directory."""

    def __init__(
        self,
        settings: config.Config,
        data: corpus.PreparedData,
        workdir: pathlib.Path,
        evaluators: Sequence[validation.Evaluator],
    ) -> None:
        self._settings = settings
        self._vocabulary = data.vocabulary
        self._workdir = workdir
        self._evaluators = evaluators
        self._batches = batch_modes.training_batches(
            settings.data, data.corpus("train"), seed=settings.seed
        )
        keep = settings.training.keep_checkpoints
        self.checkpoints = checkpoints.Checkpoints(workdir / "checkpoints", keep=keep)
        self._best = checkpoints.Checkpoints(workdir / "best", keep=1)
        self._valid_text = data.text_fingerprint("valid")
        self._parts = 1
        self._rate = optimizer.learning_rate(settings)

    def train(self) -> None:
        """Update until `num_steps`, from the newest checkpoint if there is one.

        Raises:
            DivergedError: The loss is not finite; names the step and the last good
                checkpoint.
            checkpoints.CheckpointError: The newest checkpoint cannot be used.
        """
        state, start = self._start()
        num_steps = self._settings.training.num_steps
        self._log = log.Log(
            self._workdir,
            first_step=start,
            num_steps=num_steps,
            active=parallel.is_main_process(),
        )
        with contextlib.closing(self._log):
            self._introduce(state, start)
            if start < num_steps:
                self._update(state, start)
            else:
                self._log.message(
                    f"nothing to train: the run is at step {start:,} and "
                    f"config.training.num_steps is {num_steps:,}"
                )

    def _update(self, state: step.TrainState, start: int) -> None:
        settings = self._settings.training
        plan = memory.plan(
            self._settings,
            state,
            self._batches.empty,
            self._batches.buckets,
            vocab_size=self._vocabulary.size,
            parts_before=self._parts,
        )
        self._log.message(str(plan))
        run, self._parts = plan.run, plan.parts
        parallel.compile_ahead(
            run,
            state,
            [
                parallel.split_rows(self._batches.empty(bucket), multiple=self._parts)
                for bucket in self._batches.buckets
            ],
        )
        pending: list[step.StepMetrics] = []
        begun = time.monotonic()
        for index in range(start, settings.num_steps):
            batch = self._batches.batch_at(index)
            rows = parallel.split_rows(batch, multiple=self._parts)
            state, metrics = run(state, rows)
            pending.append(metrics)
            made = index + 1
            last = made == settings.num_steps
            save = last or made % settings.checkpoint_every_steps == 0
            evaluate = last or made % settings.evaluate_every_steps == 0
            if save or evaluate or made % settings.log_every_steps == 0:
                # Waits for the devices, so that the time is that of the work.
                gathered = parallel.gather(pending)
                self._report(made, gathered, time.monotonic() - begun)
                pending = []
                if evaluate:
                    self._evaluate(made, state.params)
                if save:  # After the evaluation: one that a kill cut is made again.
                    self._save(made, state)
                begun = time.monotonic()

    def _start(self) -> tuple[step.TrainState, int]:
        state = step.create_state(self._settings, vocab_size=self._vocabulary.size)
        steps = self.checkpoints.steps()
        if not steps:
            self._begin(0, [])
            return parallel.replicate(state), 0
        found = self.checkpoints.restore(steps[-1], ["params", "optimizer"])
        selection.check_fits(found, self._settings, self._vocabulary)
        changed = history.changes(found.record["config"], self._settings)
        history.refuse_fixed(
            changed, step=found.step, directory=self.checkpoints.directory
        )
        self._begin(found.step, changed)
        self._parts = found.record.get("parts", 1)
        opt_state = flax.serialization.from_state_dict(
            state.opt_state, found.items["optimizer"]
        )
        restored = step.TrainState(
            step=jax.numpy.asarray(found.step, state.step.dtype),
            params=found.items["params"],
            opt_state=opt_state,
        )
        return parallel.replicate(restored), found.step

    def _begin(self, step: int, changed: list[history.Change]) -> None:
        self._changed = changed
        self._best_score = self._restore_best_score(step)
        if parallel.is_main_process():
            history.record_start(
                self._workdir, self._settings, step=step, found=changed
            )

    def _introduce(self, state: step.TrainState, start: int) -> None:
        count = sum(leaf.size for leaf in jax.tree.leaves(state.params))
        shapes = ", ".join(f"{b.rows}x{b.length}" for b in self._batches.buckets)
        self._log.message(
            f"{parallel.describe()}; {count:,} parameters; vocabulary of "
            f"{self._vocabulary.size:,}\n"
            f"{self._batches.batches_per_epoch:,} batches an epoch in "
            f"{len(self._batches.buckets)} training shapes (rows x tokens): {shapes}; "
            f"{self._batches.padding_share:.1%} padding"
        )
        if start:
            self._log.message(f"resumed at step {start:,}")
        for change in self._changed:
            self._log.message(f"changed since then: {change}")

    def _report(
        self, made: int, gathered: list[step.StepMetrics], seconds: float
    ) -> None:
        total = loss.LossSums.zero()
        for offset, metrics in enumerate(gathered):
            value, norm = float(metrics.sums.loss), float(metrics.gradient_norm)
            if not (math.isfinite(value) and math.isfinite(norm)):
                number = made - len(gathered) + offset + 1
                steps = self.checkpoints.steps()
                good = f"step {steps[-1]:,}" if steps else "none yet"
                raise DivergedError(
                    f"at step {number:,} the loss is {value} and the gradient's norm "
                    f"{norm}; the last good checkpoint in "
                    f"{self.checkpoints.directory}: {good}"
                )
            total = total + metrics.sums
        means = loss.per_token(total)
        values = {
            "train/loss": means["loss"],
            "train/perplexity": means["perplexity"],
            "train/accuracy": means["accuracy"],
            "train/gradient_norm": float(gathered[-1].gradient_norm),
            "train/learning_rate": float(self._rate(made - 1)),
            "time/tokens_per_second": means["tokens"] / seconds,
            "time/seconds_per_step": seconds / len(gathered),
        }
        self._log.metrics(made, values)
        self._log.progress(made, values)

    def _record(self, **more: Any) -> dict[str, Any]:
        return {
            "vocabulary": self._vocabulary.fingerprint,
            "config": config.to_dict(self._settings),
            "parts": self._parts,
            **more,
        }

    def _save(self, made: int, state: step.TrainState) -> None:
        items = {
            "params": parallel.gather(state.params),
            "optimizer": flax.serialization.to_state_dict(
                parallel.gather(state.opt_state)
            ),
        }
        self.checkpoints.save(made, items, self._record())

    def _evaluate(self, made: int, params: Any) -> None:
        begun = time.monotonic()
        values: dict[str, float] = {}
        for evaluator in self._evaluators:
            values.update(evaluator(params))
        values["time/evaluation_seconds"] = time.monotonic() - begun
        self._log.metrics(made, values)
        shown = "  ".join(f"{name} {value:.4g}" for name, value in values.items())
        self._log.message(f"step {made:,}  {shown}")
        score = values.get("valid/bleu", -values.get("valid/loss", 0.0))
        if score > self._best_score:
            self._best_score = score
            items = {"params": parallel.gather(params)}
            more = {"score": score, "metrics": values, "valid_text": self._valid_text}
            # A run that was killed may have left one, which `save` would not replace.
            self._best.delete([step for step in self._best.steps() if step >= made])
            self._best.save(made, items, self._record(**more))

    def _restore_best_score(self, start: int) -> float:
        """That of this run on this validation text, if there is one."""
        steps = self._best.steps()
        if not start:  # What lies there is made again, or is of another run.
            self._best.delete(steps)
        elif steps:
            record = self._best.restore(steps[-1], []).record
            if record.get("valid_text") == self._valid_text:
                return float(record["score"])
        return -math.inf
