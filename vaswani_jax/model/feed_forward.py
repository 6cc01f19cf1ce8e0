"""Section 3.3: position-wise feed-forward networks."""

import flax.linen as nn
import jax.numpy as jnp
from jaxtyping import Array, Float

from vaswani_jax.core import config
from vaswani_jax.model import dropout, initializers


class FeedForward(nn.Module):
    """FFN(x) = max(0, x W_1 + b_1) W_2 + b_2, equation 2.

    Kernels start uniform, biases at zero. `relu_dropout_rate` drops inner
    activations; the paper has none. With the activation "swish", x / (1 + exp(-x))
    stands for max(0, x).
    """

    model: config.ModelConfig

    def setup(self) -> None:
        model = self.model
        dtype, kernel = jnp.dtype(model.dtype), initializers.kernel(model.init_scale)
        self.inner = nn.Dense(model.d_ff, dtype=dtype, kernel_init=kernel)
        self.outer = nn.Dense(model.d_model, dtype=dtype, kernel_init=kernel)
        self.relu_dropout = dropout.Dropout(model.relu_dropout_rate)

    def __call__(
        self, x: Float[Array, "*axes d_model"], *, deterministic: bool
    ) -> Float[Array, "*axes d_model"]:
        """The same network at every position."""
        activation = {"relu": nn.relu, "swish": nn.swish}[self.model.activation]
        hidden = activation(self.inner(x))
        return self.outer(self.relu_dropout(hidden, deterministic=deterministic))
