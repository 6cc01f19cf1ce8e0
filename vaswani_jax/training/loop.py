"""The training loop: batch, update, log, evaluate, save (section 5)."""

import contextlib
import dataclasses
import functools
import logging
import math
import time
from collections.abc import Callable, Sequence
from typing import Any

import jax

from vaswani_jax.checkpoints import run_record, store
from vaswani_jax.core import (
    compilation,
    config,
    files,
    languages,
    memory,
    parallel,
    processes,
    types,
)
from vaswani_jax.core.training_config import TrainingConfig
from vaswani_jax.data import batching, prepared, training_batches
from vaswani_jax.training import (
    divergence,
    early_stopping,
    frozen,
    metrics_log,
    microbatching,
    optimizer,
    process_checks,
    resume,
    step,
)
from vaswani_jax.training.preemption import SignalWatch, Stopped
from vaswani_jax.training.step import StepMetrics, TrainState

logger = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True)
class Outcome:
    """The step and the metrics that a run has reached.

    Attributes:
        step: Number of updates made.
        best_step: The step with the best validation score; 0 if there is none.
        metrics: The latest value of each logged metric.
    """

    step: int
    best_step: int
    metrics: dict[str, float]


def train(
    settings: config.Config,
    data: prepared.PreparedData,
    *,
    workdir: files.Directory,
    evaluators: Sequence[types.Evaluator],
    loggers: Sequence[types.MetricsLogger] = (),
    initial_params: Any = None,
    init_from: str = "",
) -> Outcome:
    """Train up to `training.num_steps`, from the newest valid checkpoint if any.

    Args:
        settings: The run's settings.
        data: The prepared data.
        workdir: The run's directory.
        evaluators: Compute metrics of the parameters every `evaluate_every_steps`.
        loggers: Get the metrics that are recorded, in the main process.
        initial_params: Parameters of a new run, as NumPy arrays; random if None.
        init_from: Where `initial_params` come from, for the record.

    Raises:
        divergence.DivergedError: Too many batches gave no finite loss or a spike.
        ValueError: The run cannot resume with these settings or this text; not even
            single rows fit the memory; metrics.jsonl or the data is damaged; or several
            processes have different settings, vocabularies, texts, tokenisers, initial
            parameters or workdirs.
        store.CheckpointError: No checkpoint can be used, or the last one could not be
            written.
        OSError: The workdir or its store cannot be written at the start, or a
            checkpoint is complete but cannot be read. With several processes, also if
            the store cannot be written when they go back to a checkpoint.
        files.SupersededError: Another run has begun on that store since.
        preemption.Stopped: A signal stopped the run; its state is saved.
    """
    run = resume.Run(
        settings,
        workdir,
        data.vocabulary,
        training_text=data.training_text_fingerprint(),
        valid_text=data.text_fingerprint("valid"),
        tokenizer=languages.bleu_tokenizers(*data.text("valid"), settings.data)
        if "valid" in data.counts
        else "",
    )
    process_checks.check_processes_agree(run, initial_params)
    pairs, corpus_sizes = data.token_pairs("train"), data.manifest.corpus_sizes
    batches = training_batches.make_training_batches(
        settings.data, pairs, seed=settings.seed, corpus_sizes=corpus_sizes
    )
    if processes.is_main_process():
        store.clear_unfinished(run.checkpoints)
        store.clear_unfinished(run.best)
    resumed = resume.resume(run, initial_params)
    log = metrics_log.MetricsLog(
        workdir.path,
        first_step=resumed.progress.step,
        num_steps=settings.training.num_steps,
        is_active=processes.is_main_process(),
        loggers=loggers,
    )
    with contextlib.closing(log), SignalWatch() as signals:

        def begin() -> None:
            log.open(resumed.progress.step, is_evaluated=resumed.progress.is_evaluated)
            _record_start(run, resumed, init_from=init_from)

        processes.run_on_main(begin, ValueError, OSError)
        process_checks.check_workdir_is_shared(run)
        # Once: a later checkpoint must not depend on whether this file can be read.
        run = dataclasses.replace(run, identity=run_record.identify_run(workdir.path))
        _log_start(run, batches, resumed=resumed, init_from=init_from)
        for epoch in training_batches.epoch_shares(
            settings.data, pairs, batches, corpus_sizes=corpus_sizes
        ):
            logger.info(epoch.format())
        loop = _Loop(
            run=run,
            batches=batches,
            evaluators=evaluators,
            progress=resumed.progress,
            log=log,
            signals=signals,
            initial_params=initial_params,
        )
        # Free the copy on the host; the devices have theirs.
        state = step.place_on_devices(settings, resumed.state)
        del resumed
        loop.train(state)
        # A signal may come while the last checkpoint is written.
        if signals.signal_number and processes.num_processes() == 1:
            raise Stopped(signals.signal_number, loop.progress.step)
    return loop.outcome()


@dataclasses.dataclass(kw_only=True)
class _Loop:
    """The state and the updates of one start of a run."""

    run: resume.Run
    batches: batching.Batches
    evaluators: Sequence[types.Evaluator]
    progress: resume.Progress
    log: metrics_log.MetricsLog
    signals: SignalWatch
    initial_params: Any = None
    is_memory_short: bool = False

    def outcome(self) -> Outcome:
        best = self.progress.best
        best_step = best.step if best.score > -math.inf else 0
        return Outcome(self.progress.step, best_step, self.log.latest)

    def train(self, state: TrainState) -> None:
        """Make all remaining updates."""
        progress, num_steps = self.progress, self.run.settings.training.num_steps
        self._repeat_cut_evaluation(state)
        if progress.step >= num_steps:
            logger.info(
                f"nothing to train: the run is at step {progress.step:,} and "
                f"config.training.num_steps is {num_steps:,}"
            )
        elif reason := self._stop_reason():
            logger.info(f"nothing to train: {reason}")
        else:
            make_train_step = step.make_train_steps(
                self.run.settings, vocab_size=self.run.vocabulary.size
            )
            plan = self._plan(state, make_train_step)
            train_step = make_train_step(plan.num_microbatches)
            shapes = [
                parallel.split_rows(
                    self.batches.empty(bucket), num_microbatches=plan.num_microbatches
                )
                for bucket in self.batches.buckets
            ]
            with compilation.making_ready(
                train_step,
                state,
                # On a CPU, updates need the cores.
                batches=[] if parallel.on_cpu() else shapes,
            ) as make_ready:
                self._update(
                    state, train_step=train_step, plan=plan, make_ready=make_ready
                )
            # The scoring after training needs memory, too.
            self._make_room(plan)

    def _update(
        self,
        state: TrainState,
        *,
        train_step: Callable[..., tuple[TrainState, StepMetrics]],
        plan: microbatching.Plan,
        make_ready: Callable[[Any], None],
    ) -> None:
        training, step = self.run.settings.training, self.progress.step
        num_microbatches = plan.num_microbatches
        local_rows = functools.partial(
            parallel.local_rows, num_microbatches=num_microbatches
        )
        pending: list[StepMetrics] = []
        start_time = time.monotonic()
        is_last = False
        while not is_last:
            parallel.sync_on_cpu(pending[-1:])
            self._make_room(plan)
            # An accelerator computes earlier updates while the host makes this batch.
            index = divergence.batch_index(step, self.progress.skipped_batches)
            batch = self.batches.batch_at(index, local_rows)
            rows = parallel.split_rows(batch, num_microbatches=num_microbatches)
            make_ready(rows)
            state, metrics = train_step(state, rows)
            pending.append(metrics)
            step += 1
            is_last = step == training.num_steps
            must_stop = self.signals.should_stop()
            is_save_due = is_last or step % training.checkpoint_every_steps == 0
            is_evaluation_due = is_last or step % training.evaluate_every_steps == 0
            is_log_due = step % training.log_every_steps == 0
            if not (is_save_due or must_stop or is_evaluation_due or is_log_due):
                continue
            # Wait for the devices, so that the time covers their work.
            updates = parallel.gather(pending)
            pending = []
            bad_update = divergence.find_bad_update(
                updates,
                step=step,
                recent_losses=self.progress.recent_losses,
                max_loss_rise=training.max_loss_rise,
            )
            if bad_update:
                del state  # The devices need not hold two.
                state = self._go_back(bad_update)
                step, is_last = self.progress.step, False
                start_time = time.monotonic()
                continue
            self.progress.step = step
            self._log_updates(updates, seconds=time.monotonic() - start_time)
            self._make_room(plan)
            # Evaluate before saving, so that a resumed run repeats a killed evaluation.
            is_evaluated = not is_evaluation_due or self._evaluate(
                state.evaluated_params
            )
            if is_evaluated:
                is_last = is_last or bool(self._stop_reason())
            must_stop = must_stop or not is_evaluated
            if must_stop and not (is_save_due or is_last):
                self.progress.irregular_steps.append(step)
            if is_save_due or is_last or must_stop:
                self.progress.is_evaluated = is_evaluated
                self._save(state, must_succeed=is_last or must_stop)
            if must_stop:
                raise Stopped(self.signals.signal_number, step)
            start_time = time.monotonic()
        if step < training.num_steps:
            logger.info(f"training ends: {self._stop_reason()}")

    def _plan(
        self, state: TrainState, make_train_step: Callable[[int], Callable[..., Any]]
    ) -> microbatching.Plan:
        plan = microbatching.plan(
            self.run.settings,
            state=state,
            empty_batch=self.batches.empty,
            buckets=self.batches.buckets,
            vocab_size=self.run.vocabulary.size,
            previous=self.progress.num_microbatches,
            make_train_step=make_train_step,
        )
        self.progress.num_microbatches = plan.num_microbatches
        logger.info(plan)
        if not plan.fits:
            logger.warning(microbatching.HOW_TO_FIT)
        padding = microbatching.describe_padding(
            self.batches.buckets, num_microbatches=plan.num_microbatches
        )
        if padding:
            logger.info(padding)
        return plan

    def _go_back(self, bad_update: divergence.BadUpdate) -> TrainState:
        """Return the last good state, to skip the bad batch from there.

        It is that of the newest checkpoint, or the one that the run began with.
        """
        skipped_batches = self.progress.skipped_batches
        batch = divergence.batch_index(bad_update.step - 1, skipped_batches)
        skipped_batches = divergence.skip_batch(
            bad_update,
            skipped_batches,
            batch=batch,
            pairs=self.batches.pairs_at(batch),
            max_skipped_batches=self.run.settings.training.max_skipped_batches,
            workdir=self.run.workdir.path,
            checkpoint_steps=store.steps(self.run.checkpoints),
        )
        if processes.num_processes() > 1:
            # The others go back to what the store has, which may lack a checkpoint.
            processes.run_on_main(self.run.workdir.push, ValueError, OSError)
        resumed = resume.resume(
            self.run, self.initial_params, previous_best=self.progress.best
        )
        self.progress = dataclasses.replace(
            resumed.progress,
            num_microbatches=self.progress.num_microbatches,
            skipped_batches=skipped_batches,
        )
        logger.info(f"training continues from step {self.progress.step:,}")
        self.log.open(self.progress.step, is_evaluated=self.progress.is_evaluated)
        state = step.place_on_devices(self.run.settings, resumed.state)
        self._repeat_cut_evaluation(state)
        return state

    def _repeat_cut_evaluation(self, state: TrainState) -> None:
        """Evaluate the checkpoint again if a signal interrupted its evaluation."""
        if self.progress.is_evaluated:
            return
        if not self._evaluate(state.evaluated_params):
            raise Stopped(self.signals.signal_number, self.progress.step)
        self.progress.is_evaluated = True
        if processes.is_main_process():
            resume.record_evaluation(self.run, self.progress)

    def _log_updates(self, updates: Sequence[StepMetrics], *, seconds: float) -> None:
        num_updates = self.progress.step
        values = step.means(updates, seconds=seconds)
        learning_rate = optimizer.learning_rate(self.run.settings)
        values["train/learning_rate"] = float(learning_rate(num_updates - 1))
        max_norm = self.run.settings.optimizer.max_gradient_norm
        if max_norm:
            share = step.clipped_share(updates, max_norm=max_norm)
            values["train/clipped_share"] = share
        self.log.metrics(num_updates, values)
        self.log.progress(num_updates, values)

    def _evaluate(self, params: Any) -> bool:
        """Evaluate and save the best parameters; return False if interrupted.

        Without a validation set there are no best ones.
        """
        if not self.evaluators:
            return True
        step = self.progress.step
        start_time = time.monotonic()

        def compute() -> dict[str, float]:
            metrics: dict[str, float] = {}
            for evaluator in self.evaluators:
                values = evaluator(params)
                metrics |= {name: float(value) for name, value in values.items()}
            return metrics

        metrics = self.signals.run_interruptible(compute)
        if metrics is None:
            return False
        metrics[metrics_log.EVALUATION] = time.monotonic() - start_time
        self.log.metrics(step, metrics)
        shown_metrics = "  ".join(
            f"{name} {value:.4g}" for name, value in metrics.items()
        )
        logger.info(f"step {step:,}  {shown_metrics}")
        if not self.run.valid_text:
            return True
        early_stopping.update_best(
            self.progress.best,
            criterion=self.run.criterion,
            directory=self.run.best,
            step=step,
            params=params,
            metrics=metrics,
            make_record=lambda: resume.make_record(self.run, self.progress),
        )
        return True

    def _save(self, state: TrainState, *, must_succeed: bool) -> None:
        try:
            resume.save_checkpoint(self.run, self.progress, state=state)
        except store.NotWrittenError as error:
            if must_succeed:
                raise
            logger.warning(f"{error}; training continues without it")

    def _stop_reason(self) -> str:
        return early_stopping.stop_reason(
            self.progress.best, self.run.settings.training
        )

    def _make_room(self, plan: microbatching.Plan) -> None:
        # The compiler, an evaluation and a checkpoint need memory, too.
        needed_bytes = int(plan.step_bytes / microbatching.USABLE)
        if memory.make_room(needed_bytes) and not self.is_memory_short:
            self.is_memory_short = True
            logger.info(
                "memory is short: freed memory goes back to the system, which slows "
                "each step"
            )


def _record_start(run: resume.Run, resumed: resume.Resumed, *, init_from: str) -> None:
    # A smaller `keep_checkpoints` makes room on a full disk.
    store.prune(
        run.checkpoints,
        keep=run.settings.training.keep_checkpoints,
        irregular_steps=resumed.progress.irregular_steps,
    )
    run_record.record_start(
        run.workdir.path,
        run.settings,
        step=resumed.progress.step,
        changes=resumed.changes,
        init_from=init_from,
    )
    run.workdir.push()


def _log_start(
    run: resume.Run,
    batches: batching.Batches,
    *,
    resumed: resume.Resumed,
    init_from: str,
) -> None:
    num_params = sum(leaf.size for leaf in jax.tree.leaves(resumed.state.params))
    shapes = ", ".join(map(str, batches.buckets))
    notation = batching.shape_notation(batches.buckets)
    logger.info(
        f"{parallel.describe()}; {num_params:,} parameters; "
        f"{run.vocabulary.describe()}\n"
        f"{batches.batches_per_epoch:,} batches an epoch in {len(batches.buckets)} "
        f"training shapes ({notation}): {shapes}; {batches.padding_share:.1%} "
        "padding"
    )
    frozen_parameters = frozen.describe(run.settings, vocab_size=run.vocabulary.size)
    if frozen_parameters:
        logger.info(frozen_parameters)
    if resumed.progress.step:
        logger.info(f"resumed at step {resumed.progress.step:,}")
    elif init_from:
        logger.info(f"parameters from {init_from}")
    for change in resumed.changes:
        logger.info(f"changed since the checkpoint: {change}")
    if warning := warn_of_early_average(run.settings.training):
        logger.warning(warning)


def warn_of_early_average(training: TrainingConfig) -> str:
    """Return a warning if the average has a checkpoint of the run's first half, or "".

    The base model's average has the last 6 % of its run (section 6.1 of the paper).
    """
    num_steps, count = training.num_steps, training.average_checkpoints
    interval = training.checkpoint_every_steps
    steps = [*range(interval, num_steps, interval)[-count:], num_steps][-count:]
    if 2 * steps[0] >= num_steps:
        return ""
    return (
        f"the result is the mean of {len(steps)} checkpoints, from step {steps[0]:,} "
        f"to step {num_steps:,}: early parameters make it worse; lower "
        f"config.training.checkpoint_every_steps, which is {interval:,}"
    )
