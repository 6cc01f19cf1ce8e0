"""Section 5.3: the learning rate, equation 3."""

from collections.abc import Callable

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

Schedule = Callable[[Int[Array, ""] | int], Float[Array, ""]]


def warmup_inverse_sqrt(*, d_model: int, warmup_steps: int, scale: float) -> Schedule:
    """scale * d_model^-0.5 * min(step_num^-0.5, step_num * warmup_steps^-1.5).

    Args:
        d_model: Width of the model.
        warmup_steps: Updates of linear growth, 4000 in the paper.
        scale: 1 in the paper.

    Returns:
        A function of the number of updates already made. The paper counts updates
        from 1, so the first one, of 0 made, has step_num 1.

    >>> base = warmup_inverse_sqrt(d_model=512, warmup_steps=4000, scale=1.0)
    >>> f"{base(3999):.3e} {base(0):.3e} {base(99_999):.3e}"
    '6.988e-04 1.747e-07 1.398e-04'
    """

    def learning_rate(step: Int[Array, ""] | int) -> Float[Array, ""]:
        step_num = jnp.asarray(step, jnp.float32) + 1
        warmup = step_num * warmup_steps**-1.5
        return scale * d_model**-0.5 * jnp.minimum(step_num**-0.5, warmup)

    return learning_rate
