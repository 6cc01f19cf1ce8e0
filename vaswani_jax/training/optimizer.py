"""Section 5.3: Adam with the paper's schedule, and the usual alternatives."""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int

from vaswani_jax.core import config, shards
from vaswani_jax.training import frozen

Schedule = Callable[[Int[Array, ""] | int], Float[Array, ""]]
# Weight decay pulls the function of a layer towards 0. A bias and a normalisation's
# scale only shift and stretch what it computes.
NOT_DECAYED = ("bias", "scale")


def warmup_inverse_sqrt(*, d_model: int, warmup_steps: int, scale: float) -> Schedule:
    """Return scale * d_model^-0.5 * min(step_num^-0.5, step_num * warmup_steps^-1.5).

    Args:
        d_model: Width of the model.
        warmup_steps: Updates of linear growth, 4000 in the paper.
        scale: 1 in the paper.

    Returns:
        A function of `step`, the number of completed updates. The paper counts updates
        from 1: the first update, at step 0, has step_num 1.

    >>> base = warmup_inverse_sqrt(d_model=512, warmup_steps=4000, scale=1.0)
    >>> f"{base(3999):.3e} {base(0):.3e} {base(99_999):.3e}"
    '6.988e-04 1.747e-07 1.398e-04'
    """

    def learning_rate(step: Int[Array, ""] | int) -> Float[Array, ""]:
        step_num = jnp.asarray(step, jnp.float32) + 1
        warmup = step_num * warmup_steps**-1.5
        return scale * d_model**-0.5 * jnp.minimum(step_num**-0.5, warmup)

    return learning_rate


def warmup_and_decay(
    form: str, *, peak: float, warmup_steps: int, num_steps: int
) -> Schedule:
    """Return a learning rate that rises linearly to its peak, and then decays.

    Args:
        form: "constant" stays at the peak. "linear" falls to 0, "cosine" along half a
            period of a cosine; both would reach 0 in the update after the last.
        peak: The rate of update `warmup_steps`, counted from 1.
        warmup_steps: Updates of linear growth.
        num_steps: Updates of the whole run.

    >>> options = {"peak": 1.0, "warmup_steps": 2, "num_steps": 5}
    >>> for form in ("constant", "linear", "cosine"):
    ...     rate = warmup_and_decay(form, **options)
    ...     print(*[f"{rate(step):.2f}" for step in range(5)])
    0.50 1.00 1.00 1.00 1.00
    0.50 1.00 0.75 0.50 0.25
    0.50 1.00 0.85 0.50 0.15
    """
    decay_steps = num_steps + 1 - warmup_steps
    decay = {
        "constant": lambda: optax.constant_schedule(peak),
        "linear": lambda: optax.linear_schedule(peak, 0.0, decay_steps),
        "cosine": lambda: optax.cosine_decay_schedule(peak, decay_steps),
    }[form]()
    warmup = optax.linear_schedule(0.0, peak, warmup_steps)
    schedule = optax.join_schedules([warmup, decay], [warmup_steps])
    return lambda step: schedule(step + 1)


def learning_rate(settings: config.Config) -> Schedule:
    """Return the learning rate as a function of the step.

    "inverse_sqrt" is the form of equation 3 with a peak that is given.
    """
    form = settings.optimizer.schedule
    warmup_steps = settings.optimizer.warmup_steps
    if form == "paper":
        return warmup_inverse_sqrt(
            d_model=settings.model.d_model,
            warmup_steps=warmup_steps,
            scale=settings.optimizer.learning_rate_scale,
        )
    peak = settings.optimizer.learning_rate
    if form == "inverse_sqrt":
        return warmup_inverse_sqrt(
            d_model=1, warmup_steps=warmup_steps, scale=peak * warmup_steps**0.5
        )
    return warmup_and_decay(
        form,
        peak=peak,
        warmup_steps=warmup_steps,
        num_steps=settings.training.num_steps,
    )


def adam(settings: config.Config) -> optax.GradientTransformation:
    """Return Adam with beta_1, beta_2 and epsilon of section 5.3, or AdamW."""
    make_adam: Callable[..., optax.GradientTransformation] = optax.adam
    if settings.optimizer.weight_decay:
        make_adam = functools.partial(
            optax.adamw, weight_decay=settings.optimizer.weight_decay, mask=decay_mask
        )
    return make_adam(
        learning_rate(settings),
        b1=settings.optimizer.beta1,
        b2=settings.optimizer.beta2,
        eps=settings.optimizer.epsilon,
    )


def make_optimizer(settings: config.Config) -> optax.GradientTransformation:
    """Return Adam, or AdamW, for all parameters that are not frozen.

    Frozen ones have no moments.
    """
    if not settings.optimizer.frozen:
        return adam(settings)
    return optax.selective_transform(
        adam(settings), freeze_mask=frozen.frozen_mask(settings)
    )


def decay_mask(params: Any) -> Any:
    """Return which leaves of a tree of parameters weight decay concerns."""
    return jax.tree_util.tree_map_with_path(
        lambda path, _: path[-1].key not in NOT_DECAYED,
        params,
        is_leaf=shards.is_shard,
    )


def clip(gradients: Any, *, norm: Float[Array, ""], max_norm: float) -> Any:
    """Scale gradients down to a norm, if theirs is larger.

    Args:
        gradients: Whole, or a device's shards of them.
        norm: The norm of whole gradients.
        max_norm: The largest norm that is left alone.
    """
    # The formula of `optax.clip_by_global_norm`, which would compute the norm from the
    # gradients; a device cannot do that from its shards.
    return jax.tree.map(
        lambda part: jnp.where(norm < max_norm, part, part / norm * max_norm), gradients
    )


def update_average(
    settings: config.Config, average: Any, params: Any, *, step: Any
) -> Any:
    """Return the exponential moving average of the parameters after an update.

    Its decay is `training.ema_decay`, or (1 + n) / (10 + n) after update n while that
    is smaller: the first parameters are soon forgotten. Frozen ones stay as they are.

    Args:
        settings: The run's.
        average: The average before the update.
        params: The parameters after it.
        step: Its number n, counted from 1; a traced integer.
    """
    decay = jnp.minimum(settings.training.ema_decay, (1 + step) / (10 + step))
    average = optax.incremental_update(params, average, 1 - decay)
    if not settings.optimizer.frozen:
        return average
    return jax.tree.map(
        lambda is_frozen, mean, leaf: leaf if is_frozen else mean,
        frozen.frozen_mask(settings),
        average,
        params,
    )
