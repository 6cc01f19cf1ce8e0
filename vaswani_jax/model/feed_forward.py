"""Section 3.3: position-wise feed-forward networks."""

import flax.linen as nn
import jax.numpy as jnp
from jaxtyping import Array, Float

from vaswani_jax.model import dropout

GLOROT = nn.initializers.glorot_uniform()


class FeedForward(nn.Module):
    """FFN(x) = max(0, x W_1 + b_1) W_2 + b_2, equation 2.

    Kernels start Glorot-uniform, biases at zero. `relu_dropout_rate` drops inner
    activations; the paper has none.
    """

    d_model: int
    d_ff: int
    relu_dropout_rate: float
    dtype: jnp.dtype

    def setup(self) -> None:
        self.inner = nn.Dense(self.d_ff, dtype=self.dtype, kernel_init=GLOROT)
        self.outer = nn.Dense(self.d_model, dtype=self.dtype, kernel_init=GLOROT)
        self.relu_dropout = dropout.Dropout(self.relu_dropout_rate)

    def __call__(
        self, x: Float[Array, "*axes d_model"], *, deterministic: bool
    ) -> Float[Array, "*axes d_model"]:
        """The same network at every position."""
        hidden = nn.relu(self.inner(x))
        return self.outer(self.relu_dropout(hidden, deterministic=deterministic))
