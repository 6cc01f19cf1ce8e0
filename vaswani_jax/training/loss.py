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
    exponential per token is the perplexity), both in nats. `correct` counts the tokens
    that no other subword has a greater logit than.
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
    form: str = "uniform",
) -> LossSums:
    """Cross-entropy of the predictions with the smoothed targets.

    Padding does not count. The smoothed targets are never formed: their cross-entropy
    is logsumexp(z) - sum_k q(k) z(k), which needs sums of z alone.

    Args:
        logits: z, of every position.
        target_out: The correct subwords.
        label_smoothing: eps_ls, what the correct subword gives away.
        form: Who gets it. "uniform": all V subwords evenly, the correct one among
            them, as Szegedy et al. (2015) define it, whom section 5.4 cites; torch and
            optax do so. "others": the V - 1 other subwords, as the authors' code and
            fairseq. "no_pad": the V - 2 that are neither correct nor padding, as
            JoeyNMT and the Annotated Transformer. They differ by terms of eps_ls / V.
    """
    log_partition = jax.nn.logsumexp(logits, axis=-1)
    # Not gathered: the derivative of that is scattered into zeros of the logits' size,
    # where that of a comparison is element-wise. As fast on a CPU; on a GPU not run.
    subwords = jax.lax.broadcasted_iota(jnp.int32, logits.shape, logits.ndim - 1)
    is_correct = subwords == target_out[..., None]
    chosen = jnp.sum(jnp.where(is_correct, logits, 0), axis=-1)
    nll = log_partition - chosen
    loss = nll
    if label_smoothing:
        V = logits.shape[-1]
        if form == "uniform":
            spread = jnp.mean(logits, axis=-1)
        elif form == "others":
            spread = (jnp.sum(logits, axis=-1) - chosen) / (V - 1)
        else:
            padding = logits[..., types.PAD_ID]
            spread = (jnp.sum(logits, axis=-1) - chosen - padding) / (V - 2)
        loss = nll + label_smoothing * (chosen - spread)
    real = target_out != types.PAD_ID
    # The greatest logit is known from the partition; its place takes long to find.
    correct = chosen == jnp.max(logits, axis=-1)

    def total(values: Array) -> Array:
        return jnp.sum(jnp.where(real, values, 0), dtype=jnp.float32)

    return LossSums(
        loss=total(loss), nll=total(nll), correct=total(correct), tokens=total(real)
    )


def disagreement(
    logits: Float[Array, "*rows T V"],
    others: Float[Array, "*rows T V"],
    target_out: Int[Array | np.ndarray, "*rows T"],
) -> Float[Array, ""]:
    """How far two predictions are apart: (KL(P||Q) + KL(Q||P)) / 2, padding left out.

    R-Drop (Liang et al., 2021, equation 2) takes P and Q from two draws of dropout.

    Returns:
        The sum over target tokens, in nats.
    """
    log_p = jax.nn.log_softmax(logits.astype(jnp.float32))
    log_q = jax.nn.log_softmax(others.astype(jnp.float32))
    both = jnp.sum((jnp.exp(log_p) - jnp.exp(log_q)) * (log_p - log_q), axis=-1)
    return jnp.sum(jnp.where(target_out != types.PAD_ID, both, 0)) / 2


def per_token(sums: LossSums) -> dict[str, float]:
    """Means over tokens: loss, perplexity, accuracy; and how many tokens."""
    tokens = max(float(sums.tokens), 1.0)
    # By NumPy: a device would be asked, and waited for, for every update's.
    with np.errstate(over="ignore"):
        perplexity = np.exp(np.asarray(sums.nll) / tokens)
    return {
        "loss": float(sums.loss) / tokens,
        "perplexity": float(perplexity),
        "accuracy": float(sums.correct) / tokens,
        "tokens": float(sums.tokens),
    }
