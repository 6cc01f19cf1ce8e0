"""Initial weights of the sub-layers, which the paper does not give."""

import flax.linen as nn
import jax.nn


def kernel(init_scale: float) -> jax.nn.initializers.Initializer:
    """Return a uniform initialiser of variance init_scale * 2 / (fan_in + fan_out).

    1 is Glorot's, as in the authors' code. With less, every sub-layer starts by adding
    less to its residual connection: a post-norm stack learns sooner and tolerates a
    higher rate (Xiong et al., 2020; Liu et al., 2020).
    """
    return nn.initializers.variance_scaling(init_scale, "fan_avg", "uniform")
