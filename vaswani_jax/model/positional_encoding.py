"""Section 3.5: positional encoding; table 3 row E: the learned one."""

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from vaswani_jax.model import parameters


def within_segments(
    segments: Int[Array | np.ndarray, "B T"],
) -> Int[Array, "B T"]:
    """Return the position of each token within its sentence of a packed row, from 0.

    Padding gets position 0: counted on, it could leave a table of learned positions.

    >>> within_segments(jnp.array([[1, 1, 2, 2, 2, 0, 0]])).tolist()
    [[0, 1, 0, 1, 2, 0, 0]]
    """
    index = jnp.arange(segments.shape[1])
    starts = jnp.diff(segments, axis=1, prepend=-1) != 0
    positions = index - jax.lax.cummax(jnp.where(starts, index, 0), axis=1)
    return jnp.where(segments == 0, 0, positions)


def sinusoids(
    positions: Int[Array, "*axes"], *, d_model: int
) -> Float[Array, "*axes d_model"]:
    """Return PE(pos, 2i) = sin(pos / 10000^(2i/d_model)), and cos at 2i + 1.

    Sine and cosine are interleaved, as printed.

    >>> sinusoids(jnp.arange(1), d_model=4).tolist()
    [[0.0, 1.0, 0.0, 1.0]]
    """
    # The rates are constants: computed in NumPy's float64 and rounded once.
    rates = 10000.0 ** (-np.arange(0, d_model, 2) / d_model)
    angles = positions[..., None].astype(jnp.float32) * rates.astype(np.float32)
    both = jnp.stack([jnp.sin(angles), jnp.cos(angles)], axis=-1)
    return both.reshape(*positions.shape, d_model)


class LearnedPositions(parameters.Reader, nn.Module):
    """One trained vector for each position, N(0, 1/d_model) at first."""

    max_positions: int
    d_model: int

    @nn.compact
    def __call__(self, positions: Int[Array, "*axes"]) -> Float[Array, "*axes d_model"]:
        """Return the vectors of the positions, in float32."""
        init = nn.initializers.normal(self.d_model**-0.5)
        shape = (self.max_positions, self.d_model)
        table = self.param("embedding", init, shape)
        return jnp.take(table, positions, axis=0)
