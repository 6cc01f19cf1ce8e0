"""Section 3.3: position-wise feed-forward networks."""

import functools

import flax.linen as nn
import jax.numpy as jnp
from jaxtyping import Array, Float

from vaswani_jax.core import config
from vaswani_jax.model import dropout, initializers, parameters, products


class FeedForward(nn.Module):
    """FFN(x) = max(0, x W_1 + b_1) W_2 + b_2, equation 2.

    Kernels start uniform, biases at zero. `relu_dropout_rate` drops inner activations;
    the paper drops none. The activation "swish" replaces max(0, x) by
    x / (1 + exp(-x)).
    """

    model: config.ModelConfig

    def setup(self) -> None:
        model = self.model
        dense = functools.partial(
            parameters.Dense,
            dtype=jnp.dtype(model.dtype),
            kernel_init=initializers.kernel(model.init_scale),
            dot_general=products.dot_general_2d,
        )
        self.inner, self.outer = dense(model.d_ff), dense(model.d_model)
        self.relu_dropout = dropout.Dropout(model.relu_dropout_rate)

    def __call__(
        self, x: Float[Array, "*axes d_model"], *, deterministic: bool
    ) -> Float[Array, "*axes d_model"]:
        """Apply the same network to every position."""
        activation = {"relu": nn.relu, "swish": nn.swish}[self.model.activation]
        hidden = activation(self.inner(x))
        return self.outer(self.relu_dropout(hidden, deterministic=deterministic))
