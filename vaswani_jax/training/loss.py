"""Section 5.4: cross-entropy with label smoothing, as sums over tokens."""

import flax.struct
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from vaswani_jax.core import types


class LossSums(flax.struct.PyTreeNode):
    """Sums over target tokens; the sums of two batches add.

    `loss` is the smoothed cross-entropy, `nll` the plain negative log-likelihood (its
    exponential per token is the perplexity), both in nats. `correct` counts the tokens
    whose logit no other subword exceeds.
    """

    loss: Float[Array | np.ndarray, ""]
    nll: Float[Array | np.ndarray, ""]
    correct: Float[Array | np.ndarray, ""]
    tokens: Float[Array | np.ndarray, ""]

    def __add__(self, addend: "LossSums") -> "LossSums":
        return jax.tree.map(jnp.add, self, addend)

    @classmethod
    def zero(cls) -> "LossSums":
        """Return the sums over no token."""
        return cls(*(jnp.zeros((), jnp.float32) for _ in range(4)))


def smoothed_cross_entropy(
    logits: Float[Array, "*rows T V"],
    target_out: Int[Array | np.ndarray, "*rows T"],
    *,
    label_smoothing: float,
    form: str = "uniform",
    dtype: str | None = None,
) -> LossSums:
    """Return the cross-entropy of the predictions with the smoothed targets.

    Padding does not count. The smoothed targets are never formed: their cross-entropy
    is logsumexp(z) - sum_k q(k) z(k), which needs only sums of z.

    Args:
        logits: z at every position.
        target_out: The correct subwords.
        label_smoothing: eps_ls, the probability taken from the correct subword.
        form: The subwords that share eps_ls. "uniform": all V, the correct subword
            included, as in Szegedy et al. (2015), cited in section 5.4, torch and
            optax. "others": the V - 1 other subwords, as in the authors' code and
            fairseq. "no_pad": the V - 2 that are neither correct nor padding, as in
            JoeyNMT and the Annotated Transformer. They differ by terms of eps_ls / V.
        dtype: The type in which the logits are kept between the passes over them; that
            of `logits` by default. The sums are in float32 all the same.
    """
    logits = logits.astype(dtype or logits.dtype).astype(jnp.float32)
    log_partition = jax.nn.logsumexp(logits, axis=-1)
    # Compared, not gathered: the derivative of a gather scatters into zeros of the
    # logits' size, that of a comparison is element-wise.
    subwords = jax.lax.broadcasted_iota(jnp.int32, logits.shape, logits.ndim - 1)
    is_correct = subwords == target_out[..., None]
    correct_logit = jnp.sum(jnp.where(is_correct, logits, 0), axis=-1)
    nll = log_partition - correct_logit
    loss = nll
    if label_smoothing:
        V = logits.shape[-1]
        if form == "uniform":
            spread = jnp.mean(logits, axis=-1)
        elif form == "others":
            spread = (jnp.sum(logits, axis=-1) - correct_logit) / (V - 1)
        else:
            padding = logits[..., types.PAD_ID]
            total_logit = jnp.sum(logits, axis=-1)
            spread = (total_logit - correct_logit - padding) / (V - 2)
        loss = nll + label_smoothing * (correct_logit - spread)
    is_token = target_out != types.PAD_ID
    # The greatest logit is cheap, since the partition needs it; its index is not.
    is_best = correct_logit == jnp.max(logits, axis=-1)

    def total(values: Array) -> Array:
        return jnp.sum(jnp.where(is_token, values, 0), dtype=jnp.float32)

    return LossSums(
        loss=total(loss),
        nll=total(nll),
        correct=total(is_best),
        tokens=total(is_token),
    )


def symmetric_kl(
    logits_1: Float[Array, "*rows T V"],
    logits_2: Float[Array, "*rows T V"],
    *,
    target_out: Int[Array | np.ndarray, "*rows T"],
) -> Float[Array, ""]:
    """Return (KL(P||Q) + KL(Q||P)) / 2 of two predictions, without padding.

    R-Drop (Liang et al., 2021, equation 2) takes P and Q from two draws of dropout.

    Returns:
        The sum over target tokens, in nats.
    """
    log_p = jax.nn.log_softmax(logits_1.astype(jnp.float32))
    log_q = jax.nn.log_softmax(logits_2.astype(jnp.float32))
    kl = jnp.sum((jnp.exp(log_p) - jnp.exp(log_q)) * (log_p - log_q), axis=-1)
    return jnp.sum(jnp.where(target_out != types.PAD_ID, kl, 0)) / 2


def per_token(sums: LossSums) -> dict[str, float]:
    """Return the means over tokens (loss, perplexity, accuracy) and their number."""
    tokens = max(float(sums.tokens), 1.0)
    # NumPy's exp: one on the device would cost a transfer for every update.
    with np.errstate(over="ignore"):
        perplexity = np.exp(np.asarray(sums.nll) / tokens)
    return {
        "loss": float(sums.loss) / tokens,
        "perplexity": float(perplexity),
        "accuracy": float(sums.correct) / tokens,
        "tokens": float(sums.tokens),
    }
