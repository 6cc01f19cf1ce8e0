"""Sections 5.2 to 5.4: one update of the parameters."""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import flax.struct
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, Int

from vaswani_jax.core import compilation, config, kept_programs, parallel, shards, types
from vaswani_jax.model import transformer
from vaswani_jax.training import frozen, loss, optimizer

Params = Any
INIT_STREAM, DROPOUT_STREAM = 0, 1


class TrainState(flax.struct.PyTreeNode):
    """All that training continues from.

    Attributes:
        step: The number of updates.
        params: The parameters.
        opt_state: Adam's moments.
        average: The moving average of the parameters; None without
            `training.ema_decay`.
    """

    step: Int[Array | np.ndarray, ""] | Any  # Any: jax lowers with placeholders
    params: Params
    opt_state: optax.OptState
    average: Params = None

    @property
    def evaluated_params(self) -> Params:
        """The parameters that are evaluated: their moving average, if there is one."""
        return self.params if self.average is None else self.average


class StepMetrics(flax.struct.PyTreeNode):
    """Sums of the whole batch and the gradient's norm, as one update reports them."""

    sums: loss.LossSums
    gradient_norm: Float[Array | np.ndarray, ""]


def means(updates: Sequence[StepMetrics], *, seconds: float) -> dict[str, float]:
    """Return means over the tokens of several updates, by the log's names.

    Args:
        updates: Their metrics, oldest first; the norm is that of the last.
        seconds: What they took together.
    """
    sums = [metrics.sums for metrics in updates]
    total = jax.tree.map(lambda *leaves: np.asarray(np.sum(leaves)), *sums)
    tokens = loss.per_token(total)
    return {
        "train/loss": tokens["loss"],
        "train/perplexity": tokens["perplexity"],
        "train/accuracy": tokens["accuracy"],
        "train/gradient_norm": float(updates[-1].gradient_norm),
        "time/tokens_per_second": tokens["tokens"] / seconds,
        "time/seconds_per_step": seconds / len(updates),
    }


def clipped_share(updates: Sequence[StepMetrics], *, max_norm: float) -> float:
    """Return the share of updates whose gradient was scaled down to `max_norm`."""
    return float(np.mean([metrics.gradient_norm >= max_norm for metrics in updates]))


def create_state(settings: config.Config, *, vocab_size: types.VocabSize) -> TrainState:
    """Return the state before the first update, a function of the seed alone."""
    model = transformer.Transformer(settings.model, vocab_size)
    has_average = settings.training.ema_decay > 0
    is_sharded = settings.training.shard_optimizer

    def init_moments(params: Params) -> optax.OptState:
        return optimizer.make_optimizer(settings).init(params)

    def state_without_params(params: Params) -> TrainState:
        # A device may have room for no more than its part of divided moments.
        opt_state = None if is_sharded else init_moments(params)
        average = jax.tree.map(jnp.copy, params) if has_average else None
        return TrainState(jnp.zeros((), jnp.int32), None, opt_state, average)

    def init(key: Array) -> tuple[Params, list[Array]]:
        # Created here: `placed_shapes` makes an outer array a tracer, not exportable.
        tokens = jnp.ones((1, 2), jnp.int32)
        params = model.init(key, tokens, tokens, deterministic=True)["params"]
        # A kept program returns no classes: the leaves become a state outside of it.
        return params, jax.tree.leaves(state_without_params(params))

    identity = kept_programs.Identity("init", (settings, vocab_size))
    run = compilation.on_one_device(init, identity=identity)
    params, leaves = run(_stream(settings, INIT_STREAM))
    structure = jax.tree.structure(jax.eval_shape(state_without_params, params))
    state: TrainState = jax.tree.unflatten(structure, leaves)
    if is_sharded:
        # Adam begins with zeros, which stay on the host until they are divided.
        shapes = jax.eval_shape(init_moments, params)
        moments = jax.tree.map(lambda leaf: np.zeros(leaf.shape, leaf.dtype), shapes)
        state = state.replace(opt_state=moments)
    return state.replace(params=params)


def place_on_devices(settings: config.Config, state: TrainState) -> TrainState:
    """Copy a state to the devices, its moments in parts if the settings say so."""
    if not settings.training.shard_optimizer:
        return parallel.replicate(state)
    replicated = parallel.replicate(state.replace(opt_state=None))
    return replicated.replace(opt_state=shards.divide(state.opt_state))


def placed_shapes(
    settings: config.Config, *, vocab_size: types.VocabSize
) -> TrainState:
    """Return the shapes of a state that `place_on_devices` returns."""
    shapes = jax.eval_shape(lambda: create_state(settings, vocab_size=vocab_size))
    if not settings.training.shard_optimizer:
        return shapes
    return shapes.replace(opt_state=shards.divided_shapes(shapes.opt_state))


def check_settings(settings: config.Config) -> None:
    """Refuse settings that the devices cannot compute, or that the model cannot have.

    Raises:
        ValueError: The configured attention needs another device, or `optimizer.frozen`
            has no pattern, one that matches no parameter, or freezes all.
    """
    frozen.check(settings)
    if settings.model.attention == "cudnn" and not parallel.on_gpu():
        raise ValueError(
            f"config.model.attention=cudnn needs a GPU; JAX sees {parallel.describe()}"
        )


def train_step(
    settings: config.Config, *, vocab_size: types.VocabSize, num_microbatches: int
) -> Callable[[TrainState, types.Batch], tuple[TrainState, StepMetrics]]:
    """Return the update that `parallel.over_devices` runs on each device's rows.

    Loss and gradients are sums over tokens. They are added over microbatches and
    devices, then divided once by the number of target tokens in the whole batch: but
    for the masks of dropout, the update does not depend on how the batch is divided.
    With `training.shard_optimizer` a device updates its part of the parameters alone.
    With `training.r_drop` each row is computed twice with different masks; the metrics
    are those of the first.

    Args:
        settings: The run's.
        vocab_size: V.
        num_microbatches: How many parts of the batch are computed in turn.

    Raises:
        ValueError: As `check_settings`.
    """
    check_settings(settings)
    model = transformer.Transformer(settings.model, vocab_size)
    transformation = optimizer.make_optimizer(settings)
    max_norm = settings.optimizer.max_gradient_norm
    r_drop = settings.training.r_drop
    is_sharded = settings.training.shard_optimizer

    def forward(params: Params, batch: types.Batch, *, key: Array) -> tuple[Any, Any]:
        return _logits_and_sums(
            settings,
            model=model,
            params=frozen.stop_gradients(settings, params),
            batch=batch,
            key=key,
            # Deviation: accelerators keep the largest array of a step in the model's
            # type; in bfloat16 it is read in half the time.
            dtype=None if parallel.on_cpu() else settings.model.dtype,
        )

    def loss_sum(params: Params, batch: types.Batch, *, key: Array) -> tuple[Any, Any]:
        logits, sums = forward(params, batch, key=key)
        if not r_drop:
            return sums.loss, sums
        logits_2, sums_2 = forward(params, batch, key=jax.random.fold_in(key, 1))
        kl = loss.symmetric_kl(logits, logits_2, target_out=batch.target_out)
        # Half of Liang et al.'s equation 4, so that learning rates stay comparable.
        return (sums.loss + sums_2.loss) / 2 + r_drop / 2 * kl, sums

    grads_and_sums = jax.grad(loss_sum, has_aux=True)

    def accumulated(
        params: Params, batch: types.Batch, *, key: Array
    ) -> tuple[Any, Any]:
        if num_microbatches == 1:
            return grads_and_sums(params, batch, key=key)
        split = jax.tree.map(
            lambda x: x.reshape(num_microbatches, -1, *x.shape[1:]), batch
        )

        def add(total: Any, part: tuple[Array, types.Batch]) -> tuple[Any, None]:
            index, rows = part
            terms = grads_and_sums(params, rows, key=jax.random.fold_in(key, index))
            return jax.tree.map(jnp.add, total, terms), None

        zero = (jax.tree.map(jnp.zeros_like, params), loss.LossSums.zero())
        total, _ = jax.lax.scan(add, zero, (jnp.arange(num_microbatches), split))
        return total

    def step(state: TrainState, batch: types.Batch) -> tuple[TrainState, StepMetrics]:
        key = jax.random.fold_in(_stream(settings, DROPOUT_STREAM), state.step)
        key = jax.random.fold_in(key, parallel.device_index())
        local_sums = accumulated(state.params, batch, key=key)
        params, opt_state = state.params, state.opt_state
        if is_sharded:
            gradients, norm = shards.sum_to_shards(local_sums[0])
            sums = parallel.sum_over_devices(local_sums[1])
            params, opt_state = shards.take_shards(params), opt_state.unpack()
        elif parallel.on_gpu():
            gradients, norm = parallel.sum_in_buckets(local_sums[0])
            sums = parallel.sum_over_devices(local_sums[1])
        else:
            gradients, sums = parallel.sum_over_devices(local_sums)
            norm = optax.tree.norm(gradients)
        tokens = jnp.maximum(sums.tokens, 1)
        # Divided after the norm: a division before it would change the last digit.
        norm = norm / tokens
        gradients = jax.tree.map(lambda g: g / tokens, gradients)
        if max_norm:
            gradients = optimizer.clip(gradients, norm=norm, max_norm=max_norm)
        updates, opt_state = transformation.update(gradients, opt_state, params)
        params = optax.apply_updates(params, updates)
        if is_sharded:
            params = shards.join_shards(params)
            opt_state = shards.Divided.pack(opt_state)
        average = state.average
        if average is not None:
            average = optimizer.update_average(
                settings, average, params, step=state.step + 1
            )
        metrics = StepMetrics(sums, norm)
        return TrainState(state.step + 1, params, opt_state, average), metrics

    return step


def make_train_steps(
    settings: config.Config, *, vocab_size: types.VocabSize
) -> Callable[[int], Callable[..., tuple[TrainState, StepMetrics]]]:
    """Return a function from the number of microbatches to the step on all devices.

    It returns the same step for the same number, so that it is compiled once: to
    measure its memory, and to train.
    """

    @functools.lru_cache(maxsize=1)
    def make_train_step(num_microbatches: int) -> Callable[..., Any]:
        update = train_step(
            settings, vocab_size=vocab_size, num_microbatches=num_microbatches
        )
        axes = None
        if settings.training.shard_optimizer:
            opt_state = placed_shapes(settings, vocab_size=vocab_size).opt_state
            axes = TrainState(None, None, opt_state.axes)
        zero = StepMetrics(loss.LossSums.zero(), np.zeros((), np.float32))
        identity = kept_programs.Identity(
            "update",
            (settings, vocab_size, num_microbatches),
            outputs=lambda state, batch: (state, zero),
        )
        return parallel.over_devices(
            update, donate_state=True, state_axes=axes, identity=identity
        )

    return make_train_step


def loss_step(
    settings: config.Config, *, vocab_size: types.VocabSize
) -> Callable[[Params, types.Batch], loss.LossSums]:
    """Return the function of a batch's sums without dropout, for `over_devices`."""
    model = transformer.Transformer(settings.model, vocab_size)

    def step(params: Params, batch: types.Batch) -> loss.LossSums:
        _, sums = _logits_and_sums(
            settings, model=model, params=params, batch=batch, key=None
        )
        return parallel.sum_over_devices(sums)

    return step


def _logits_and_sums(
    settings: config.Config,
    *,
    model: transformer.Transformer,
    params: Params,
    batch: types.Batch,
    key: Array | None,
    dtype: str | None = None,
) -> tuple[Any, Any]:
    """Return a batch's logits, and its sums over target tokens.

    Args:
        settings: The run's.
        model: The model of the settings.
        params: Its parameters.
        batch: The rows.
        key: Of the masks of dropout; None drops nothing.
        dtype: As that of `loss.smoothed_cross_entropy`.
    """
    logits: Any = model.apply(
        {"params": params},
        batch.source,
        batch.target_in,
        segments=batch.segments,
        deterministic=key is None,
        rngs=None if key is None else {"dropout": key},
    )
    sums = loss.smoothed_cross_entropy(
        logits,
        batch.target_out,
        label_smoothing=settings.training.label_smoothing,
        form=settings.training.label_smoothing_form,
        dtype=dtype,
    )
    return logits, sums


def _stream(settings: config.Config, stream: int) -> Array:
    return jax.random.fold_in(jax.random.key(settings.seed), stream)
