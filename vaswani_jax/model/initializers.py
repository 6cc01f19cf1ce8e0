"""Where the weights of sub-layers start, which the paper leaves open."""

import flax.linen as nn
import jax.nn


def kernel(init_scale: float) -> jax.nn.initializers.Initializer:
    """Uniform, of variance init_scale * 2 / (fan_in + fan_out).

    1 is Glorot's, as in the authors' code. With less, every sub-layer adds less to its
    residual connection at first, and a post-norm stack learns sooner and stands a
    higher rate (Xiong et al., 2020; Liu et al., 2020).
    """
    return nn.initializers.variance_scaling(init_scale, "fan_avg", "uniform")
