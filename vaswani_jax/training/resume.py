"""Section 5: where a run begins: at its newest good checkpoint, or anew."""

import dataclasses
from collections.abc import Callable
from typing import Any

import flax.serialization
import jax
import jax.numpy as jnp
import numpy as np

from vaswani_jax.checkpoints import compatibility, store
from vaswani_jax.checkpoints.average import restored
from vaswani_jax.checkpoints.store import Checkpoint, CheckpointError, Checkpoints
from vaswani_jax.core import config, environment, processes
from vaswani_jax.data import vocabulary
from vaswani_jax.training import optimizer
from vaswani_jax.training import step as step_

Log = Callable[[str], None]


@dataclasses.dataclass(frozen=True)
class Beginning:
    """The state after `step` updates, and what is remembered of them."""

    step: int
    state: step_.TrainState
    changed: list[compatibility.Change]
    parts: int
    recent: list[float]  # losses of the last updates
    skipped: list[int]  # batches that were left out
    unevaluated: bool  # whether the evaluation of this step was cut short
    record: dict[str, Any]  # of the checkpoint; empty if there is none


def newest_good(found: Checkpoints, *, log: Log) -> Checkpoint | None:
    """The newest checkpoint that can be read; damaged ones after it are set aside.

    Raises:
        CheckpointError: There are some, and all are damaged; they stay where they are.
    """
    damaged: dict[int, str] = {}
    good = None
    for number in reversed(found.steps()):
        try:
            good = restored(found, number, ["params", "optimizer"])
            break
        except CheckpointError as error:
            damaged[number] = str(error)
    _agree(good, damaged)
    if damaged and good is None:
        raise CheckpointError(
            f"all {len(damaged)} checkpoints in {found.directory} are damaged, and "
            f"nothing was deleted: {'; '.join(damaged.values())}. Restore one, or "
            "name another --workdir"
        )
    if damaged and good is not None:
        if processes.is_main_process():
            found.set_aside(list(damaged), word="damaged")
        for reason in damaged.values():
            log(f"warning: {reason}; it is set aside, step {good.step:,} is used")
    if good is not None and processes.is_main_process():
        path = found.directory / str(good.step)
        if not store.is_sealed(path):
            store.seal(path)
    return good


def _agree(good: Checkpoint | None, damaged: dict[int, str]) -> None:
    """Refuse that processes go on from different checkpoints.

    Raises:
        CheckpointError: They do, in all of them.
    """
    if processes.num_processes() == 1:
        return
    step, digest = (-1 if damaged else 0), 0
    if good is not None:
        step, digest = good.step, int(good.record["digests"]["params"][:7], 16)
    everyone = processes.gather_from_all(np.array([step, digest], np.int32))
    if (everyone != everyone[0]).any():
        raise CheckpointError(
            f"the processes would begin at the steps {everyone[:, 0].tolist()} (-1: "
            "damaged) or with other parameters: they must see the same files, a shared "
            "file system or one object store"
        )


def begin(
    settings: config.Config,
    subwords: vocabulary.Vocabulary,
    found: Checkpoints,
    *,
    training_text: str,
    initial: Any,
    log: Log,
) -> Beginning:
    """The state that a run goes on from.

    Args:
        settings: Of the run.
        subwords: Its vocabulary.
        found: Its checkpoints.
        training_text: The fingerprint of what it learns from.
        initial: Parameters to start from if there is none; None for random ones.
        log: Told of what was not expected.

    Raises:
        CheckpointError: All checkpoints are damaged, or the newest is of another
            vocabulary or model.
        ValueError: The settings are those of another run, or the text is another.
    """
    good = newest_good(found, log=log)
    if good is None:
        if settings.seed >= 2**32:  # More is lost in JAX's keys.
            raise ValueError(
                f"config.seed must be at most {2**32 - 1}, got {settings.seed}"
            )
        fresh = step_.create_state(settings, vocab_size=subwords.size)
        if initial is not None:
            fresh = fresh.replace(params=jax.tree.map(jnp.asarray, initial))
        return Beginning(0, fresh, [], 1, [], [], False, {})
    record = good.record
    changed = compatibility.changes(record["config"], settings)
    compatibility.refuse_fixed(changed, step=good.step, directory=found.directory)
    compatibility.check_fits(good, settings, subwords)
    if record.get("training_text", training_text) != training_text:
        raise ValueError(
            f"{found.directory} has a run at step {good.step:,} that was trained on "
            f"the text {record['training_text']}, but the data has {training_text}: "
            "restore it, or name another --workdir (with --init_from it starts from "
            "this one's parameters)"
        )
    for text in environment.describe_changes(record.get("environment", {})):
        log(f"warning: {text}: the digits may differ from here on")
    params, moments = good.items["params"], good.items["optimizer"]
    structure = jax.eval_shape(optimizer.adam(settings).init, params)
    state = step_.TrainState(
        step=jnp.asarray(good.step, jnp.int32),
        params=params,
        opt_state=flax.serialization.from_state_dict(structure, moments),
    )
    return Beginning(
        good.step,
        state,
        changed,
        parts=record.get("parts", 1),
        recent=record.get("recent", []),
        skipped=record.get("skipped", []),
        unevaluated=record.get("unevaluated", False),
        record=record,
    )
