"""Section 6.1: what of a run outlasts it: its checkpoints, and what they remember."""

import pathlib
from collections.abc import Callable, Sequence
from typing import Any

import flax.serialization

from vaswani_jax.checkpoints import store
from vaswani_jax.core import config, environment, parallel, processes, remote, types
from vaswani_jax.data import prepared
from vaswani_jax.training import divergence, early_stopping, resume, step


class Persistence:
    """A run's checkpoints, and all that a later start goes on from beside the state.

    Attributes:
        checkpoints: The newest ones.
        parts: Into how many parts a batch is divided now.
        validation: Keeps the best parameters apart.
        watch: Knows the last losses and the batches left out; after `begin`.
    """

    watch: divergence.Watch

    def __init__(
        self,
        settings: config.Config,
        data: prepared.PreparedData,
        *,
        workdir: pathlib.Path,
        evaluators: Sequence[types.Evaluator],
        initial: Any,
        warn: Callable[[str], None],
    ) -> None:
        """Prepare.

        Args:
            settings: Of the run.
            data: What it learns from.
            workdir: Where it lies.
            evaluators: What is computed of the parameters now and then.
            initial: Parameters to start from, as NumPy arrays; None for random ones.
            warn: Told of what could not be kept or deleted.
        """
        self._settings = settings
        self._vocabulary = data.vocabulary
        self._training_text = data.training_text()
        self._workdir = workdir
        self._initial = initial
        self._warn = warn
        self.parts = 1
        self.checkpoints = store.Checkpoints(
            workdir / "checkpoints",
            keep=settings.training.keep_checkpoints,
            warn=warn,
        )
        self._best = store.Checkpoints(workdir / "best", keep=1, warn=warn)
        self.validation = early_stopping.Validation(
            settings,
            evaluators,
            self._best,
            valid_text=data.text_fingerprint("valid"),
        )

    def clear_unfinished(self) -> None:
        """Remove what was being written when a run was killed."""
        self.checkpoints.clear_unfinished()
        self._best.clear_unfinished()

    def begin(self, note: resume.Log) -> resume.Beginning:
        """The state of the newest good checkpoint, or a new one; the rest is as then.

        All but `parts`: a run that goes back keeps its own, and one that starts takes
        those of what is returned.

        Raises:
            store.CheckpointError: No checkpoint can be used.
            ValueError: They are of another run or text.
        """
        if not processes.is_main_process():
            remote.refresh(self._workdir)
        begun = resume.begin(
            self._settings,
            self._vocabulary,
            self.checkpoints,
            training_text=self._training_text,
            initial=self._initial,
            log=note,
        )
        self.watch = divergence.Watch(
            self._settings.training, recent=begun.recent, skipped=begun.skipped
        )
        self.validation.go_on(begun.step, begun.record, log=note)
        there = self.checkpoints.steps()
        extra = begun.record.get("extra", [])
        self.checkpoints.extra = [step for step in extra if step in there]
        return begun

    def record(self, **more: Any) -> dict[str, Any]:
        """What a checkpoint remembers beside parameters and moments."""
        return {
            "vocabulary": self._vocabulary.fingerprint,
            "training_text": self._training_text,
            "config": config.to_dict(self._settings),
            "environment": environment.describe(),
            "parts": self.parts,
            "recent": self.watch.recent,
            "skipped": self.watch.skipped,
            "extra": self.checkpoints.extra,
            "best": self.validation.seen(),
            **more,
        }

    def save(
        self, made: int, state: step.TrainState, *, last: bool, unevaluated: bool
    ) -> None:
        """Write a checkpoint; one that cannot be written is told, not the last one.

        Args:
            made: Updates made.
            state: After them.
            last: Whether no other follows.
            unevaluated: Whether the evaluation of this step was cut short.

        Raises:
            store.NotWrittenError: The last one cannot be written.
            remote.SupersededError: Another run has begun on the store since.
        """
        items = {
            "params": parallel.gather(state.params),
            "optimizer": flax.serialization.to_state_dict(
                parallel.gather(state.opt_state)
            ),
        }
        record = self.record(unevaluated=unevaluated)

        def save() -> None:
            self.checkpoints.save(made, items, record)
            try:
                remote.send(self._workdir)
            except remote.SupersededError:
                raise
            except remote.RemoteError as error:
                raise store.NotWrittenError(str(error)) from error

        try:
            processes.run_on_main(save, store.NotWrittenError)
        except store.NotWrittenError as error:
            if last:
                raise
            self._warn(f"warning: {error}; training goes on without it")
