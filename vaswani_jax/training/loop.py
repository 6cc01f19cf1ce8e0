"""Section 5: the training loop. It knows steps, checkpoints and evaluators."""

import contextlib
import dataclasses
import functools
import pathlib
import time
from collections.abc import Iterator, Sequence
from typing import Any

import jax

from vaswani_jax.checkpoints import run_record, store
from vaswani_jax.core import config, memory, parallel, processes, remote, types
from vaswani_jax.data import packing, prepared
from vaswani_jax.training import (
    divergence,
    metrics_log,
    microbatching,
    optimizer,
    persistence,
    preemption,
    resume,
    step,
)


class Run:
    """A training run in a work directory."""

    def __init__(
        self,
        settings: config.Config,
        data: prepared.PreparedData,
        workdir: pathlib.Path,
        evaluators: Sequence[types.Evaluator],
        *,
        initial: Any = None,
        init_from: str = "",
    ) -> None:
        """Prepare to train.

        Args:
            settings: Of the run.
            data: What it learns from.
            workdir: Where it lies.
            evaluators: What is computed of the parameters now and then.
            initial: Parameters to start from, as NumPy arrays; None for random ones.
            init_from: Where these come from, for the record.
        """
        self._settings = settings
        self._vocab_size = data.vocabulary.size
        self._workdir = workdir
        self._init_from = init_from
        self._batches = packing.training_batches(
            settings.data, data.corpus("train"), seed=settings.seed
        )
        self._kept = persistence.Persistence(
            settings,
            data,
            workdir=workdir,
            evaluators=evaluators,
            initial=initial,
            warn=lambda text: self._log.message(text),
        )
        self._rate = optimizer.learning_rate(settings)
        self._short = False

    @property
    def checkpoints(self) -> store.Checkpoints:
        """The newest ones of the run."""
        return self._kept.checkpoints

    def train(self) -> None:
        """Update until `num_steps`, from the newest good checkpoint if there is one.

        Raises:
            divergence.DivergedError: Too many batches gave no finite loss or a spike.
            store.CheckpointError: No checkpoint can be used, or the last one
                could not be written.
            remote.RemoteError: The workdir is on a store that cannot be written at
                the start, or where another run has begun since.
            preemption.Stopped: A signal asked for it; the state is saved.
        """
        notes: list[str] = []
        if processes.is_main_process():
            self._kept.clear_unfinished()
        begun = self._kept.begin(notes.append)
        self._kept.parts = begun.parts
        num_steps = self._settings.training.num_steps
        self._log = metrics_log.Log(
            self._workdir,
            first_step=begun.step,
            num_steps=num_steps,
            active=processes.is_main_process(),
        )
        with contextlib.closing(self._log), preemption.Signals() as self._signals:
            self._introduce(begun, notes)
            # What was read does not stay in memory beside its copy on the devices.
            begun = dataclasses.replace(begun, state=parallel.replicate(begun.state))
            state = begun.state
            if begun.unevaluated and not self._evaluate(begun.step, state.params):
                raise preemption.Stopped(self._signals.number, begun.step)
            if begun.step >= num_steps:
                self._log.message(
                    f"nothing to train: the run is at step {begun.step:,} and "
                    f"config.training.num_steps is {num_steps:,}"
                )
            elif self._kept.validation.is_over(begun.step):
                self._log.message(
                    f"nothing to train: {self._kept.validation.why_over()}"
                )
            else:
                with self._compiled(state) as plan:
                    self._update(plan, state, begun.step)
                # For what comes after training.
                self._make_room(plan)

    def _update(
        self, plan: microbatching.Plan, state: step.TrainState, made: int
    ) -> None:
        settings = self._settings.training
        own = functools.partial(parallel.local_rows, num_microbatches=self._kept.parts)
        pending: list[step.StepMetrics] = []
        begun = time.monotonic()
        over = False
        while not over:
            parallel.sync_on_cpu(pending[-1:])
            self._make_room(plan)
            # An accelerator computes the steps before while this batch is made.
            batch = self._batches.batch_at(self._kept.watch.index_of(made), own)
            rows = parallel.split_rows(batch, num_microbatches=self._kept.parts)
            state, metrics = plan.run(state, rows)
            pending.append(metrics)
            made += 1
            over = made == settings.num_steps
            stop = self._signals.stops_at(made)
            regular = over or made % settings.checkpoint_every_steps == 0
            evaluate = over or made % settings.evaluate_every_steps == 0
            log_now = made % settings.log_every_steps == 0
            if not (regular or stop or evaluate or log_now):
                continue
            # Waits for the devices, so that the time is that of the work.
            gathered = parallel.gather(pending)
            pending = []
            if bad := self._kept.watch.look(made, gathered):
                state, made = self._go_back(bad)
                over, begun = False, time.monotonic()
                continue
            values = step.means(gathered, seconds=time.monotonic() - begun)
            values["train/learning_rate"] = float(self._rate(made - 1))
            self._log.metrics(made, values)
            self._log.progress(made, values)
            self._make_room(plan)
            # Before the checkpoint: an evaluation that a kill cut is made again.
            complete = not evaluate or self._evaluate(made, state.params)
            over = over or self._kept.validation.is_over(made)
            stop = stop or not complete
            if stop and not (regular or over):
                self._kept.checkpoints.extra.append(made)
            if regular or over or stop:
                self._kept.save(
                    made, state, last=over or stop, unevaluated=not complete
                )
            if stop:
                raise preemption.Stopped(self._signals.number, made)
            begun = time.monotonic()
        if made < settings.num_steps:
            self._log.message(f"training ends: {self._kept.validation.why_over()}")

    def _make_room(self, plan: microbatching.Plan) -> None:
        # The compiler, an evaluation and a checkpoint need some, too.
        if memory.make_room(int(plan.step / microbatching.USABLE)) and not self._short:
            self._short = True
            self._log.message(
                "memory is short: what is freed goes back to the system, which costs "
                "some time in each step"
            )

    @contextlib.contextmanager
    def _compiled(self, state: step.TrainState) -> Iterator[microbatching.Plan]:
        plan = microbatching.plan(
            self._settings,
            state,
            self._batches.empty,
            self._batches.buckets,
            vocab_size=self._vocab_size,
            parts_before=self._kept.parts,
        )
        empty = microbatching.empty_rows(self._batches.buckets, parts=plan.parts)
        for told in filter(None, (str(plan), plan.warning(), empty)):
            self._log.message(told)
        self._kept.parts = plan.parts
        shapes = [
            parallel.split_rows(
                self._batches.empty(bucket), num_microbatches=plan.parts
            )
            for bucket in self._batches.buckets
        ]
        with parallel.compiling_ahead(plan.run, state, shapes):
            yield plan

    def _introduce(self, begun: resume.Beginning, notes: list[str]) -> None:
        if processes.is_main_process():
            # A smaller `keep_checkpoints` is how a full disk gets room.
            self._kept.checkpoints.make_room()
            run_record.record_start(
                self._workdir,
                self._settings,
                step=begun.step,
                changes=begun.changed,
                init_from=self._init_from,
            )
            remote.send(self._workdir)
        count = sum(leaf.size for leaf in jax.tree.leaves(begun.state.params))
        shapes = ", ".join(f"{b.rows}x{b.length}" for b in self._batches.buckets)
        self._log.message(
            f"{parallel.describe()}; {count:,} parameters; vocabulary of "
            f"{self._vocab_size:,}\n"
            f"{self._batches.batches_per_epoch:,} batches an epoch in "
            f"{len(self._batches.buckets)} training shapes (rows x tokens): {shapes}; "
            f"{self._batches.padding_share:.1%} padding"
        )
        for text in notes:
            self._log.message(text)
        if begun.step:
            self._log.message(f"resumed at step {begun.step:,}")
        elif self._init_from:
            self._log.message(f"parameters from {self._init_from}")
        for change in begun.changed:
            self._log.message(f"changed since then: {change}")

    def _go_back(self, bad: divergence.BadUpdate) -> tuple[step.TrainState, int]:
        """Leave out a batch, and go on from the last good checkpoint."""
        skipped, told = self._kept.watch.leave_out(
            bad, self._workdir, self._batches.pairs_at, self._kept.checkpoints.steps()
        )
        begun = self._kept.begin(self._log.message)
        self._kept.watch.skipped = skipped
        self._log.message(f"{told}; training goes on from step {begun.step:,}")
        self._log.rewind(begun.step)
        return parallel.replicate(begun.state), begun.step

    def _evaluate(self, made: int, params: Any) -> bool:
        return self._kept.validation.evaluate(
            made,
            params,
            signals=self._signals,
            told=self._log,
            record=self._kept.record,
        )
