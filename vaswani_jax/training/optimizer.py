"""Section 5.3: Adam with the paper's schedule."""

from collections.abc import Callable

import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int

from vaswani_jax.core import config

Schedule = Callable[[Int[Array, ""] | int], Float[Array, ""]]


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


def learning_rate(settings: config.Config) -> Schedule:
    """Return the learning rate as a function of the step."""
    return warmup_inverse_sqrt(
        d_model=settings.model.d_model,
        warmup_steps=settings.optimizer.warmup_steps,
        scale=settings.optimizer.learning_rate_scale,
    )


def adam(settings: config.Config) -> optax.GradientTransformation:
    """Return Adam with beta_1, beta_2 and epsilon of section 5.3."""
    return optax.adam(
        learning_rate(settings),
        b1=settings.optimizer.beta1,
        b2=settings.optimizer.beta2,
        eps=settings.optimizer.epsilon,
    )
