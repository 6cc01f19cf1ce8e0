"""Section 5.4: cross-entropy with label smoothing, as sums over tokens."""

import flax.struct
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from vaswani_jax.core import types


class LossSums(flax.struct.PyTreeNode):
    """Sums over target tokens; two of them add up to that of both batches.

    `loss` is the smoothed cross-entropy, `nll` the plain negative log-likelihood (its
    exponential per token is the perplexity), both in nats.
    """

    loss: Float[Array | np.ndarray, ""]
    nll: Float[Array | np.ndarray, ""]
    correct: Float[Array | np.ndarray, ""]
    tokens: Float[Array | np.ndarray, ""]

    def __add__(self, other: "LossSums") -> "LossSums":
        return jax.tree.map(jnp.add, self, other)

    @classmethod
    def zero(cls) -> "LossSums":
        """The sums over no token."""
        return cls(*(jnp.zeros((), jnp.float32) for _ in range(4)))


def smoothed_cross_entropy(
    logits: Float[Array, "*rows T V"],
    target_out: Int[Array | np.ndarray, "*rows T"],
    *,
    label_smoothing: float,
) -> LossSums:
    """Cross-entropy of the predictions with the smoothed targets.

    The target distribution over the V subwords is that of Szegedy et al. (2015), whom
    section 5.4 cites: q(k) = (1 - eps_ls) [k = target] + eps_ls / V, the correct
    subword having its share of the uniform part. Padding does not count. The smoothed
    targets are never formed: their cross-entropy is
    logsumexp(z) - (1 - eps_ls) z_target - eps_ls mean(z).
    """
    log_partition = jax.nn.logsumexp(logits, axis=-1)
    chosen = jnp.take_along_axis(logits, target_out[..., None], axis=-1)[..., 0]
    nll = log_partition - chosen
    loss = nll
    if label_smoothing:
        loss = nll + label_smoothing * (chosen - jnp.mean(logits, axis=-1))
    real = target_out != types.PAD_ID
    correct = jnp.argmax(logits, axis=-1) == target_out

    def total(values: Array) -> Array:
        return jnp.sum(jnp.where(real, values, 0), dtype=jnp.float32)

    return LossSums(
        loss=total(loss), nll=total(nll), correct=total(correct), tokens=total(real)
    )


def per_token(sums: LossSums) -> dict[str, float]:
    """Means over tokens: loss, perplexity, accuracy; and how many tokens."""
    tokens = max(float(sums.tokens), 1.0)
    return {
        "loss": float(sums.loss) / tokens,
        "perplexity": float(jnp.exp(sums.nll / tokens)),
        "accuracy": float(sums.correct) / tokens,
        "tokens": float(sums.tokens),
    }
