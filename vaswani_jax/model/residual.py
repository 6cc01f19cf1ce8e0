"""Sections 3.1 and 5.4: LayerNorm(x + Dropout(Sublayer(x)))."""

from collections.abc import Callable

import flax.linen as nn
import jax.numpy as jnp
from jaxtyping import Array, Float

from vaswani_jax.core import config, parallel
from vaswani_jax.model import dropout, parameters


def layer_norm(model: config.ModelConfig) -> parameters.LayerNorm:
    """Return a layer normalisation with statistics in float32.

    Gain starts at 1 and bias at 0. The paper does not give epsilon.
    """
    # Deviation: a TPU computes mean and variance, E[x^2] - E[x]^2, within the product
    # that makes x. Their difference loses digits of x that bfloat16 does not have.
    is_one_pass = parallel.on_tpu() and model.dtype == "bfloat16"
    return parameters.LayerNorm(
        epsilon=model.layer_norm_epsilon,
        dtype=jnp.dtype(model.dtype),
        use_fast_variance=is_one_pass,
    )


class Residual(nn.Module):
    """The connection around one sub-layer.

    "post" is the paper's. "pre" computes x + Dropout(Sublayer(LayerNorm(x))); the stack
    then ends with one more normalisation.
    """

    model: config.ModelConfig

    def setup(self) -> None:
        self.norm = layer_norm(self.model)
        self.dropout = dropout.Dropout(self.model.dropout_rate)

    def __call__(
        self,
        x: Float[Array, "*axes d_model"],
        sublayer: Callable[[Array], Array],
        *,
        deterministic: bool,
    ) -> Float[Array, "*axes d_model"]:
        """Return x with the sub-layer's contribution."""
        if self.model.layer_norm_position == "pre":
            contribution = sublayer(self.norm(x))
            return x + self.dropout(contribution, deterministic=deterministic)
        contribution = self.dropout(sublayer(x), deterministic=deterministic)
        return self.norm(x + contribution)
