"""Section 5.4: cross-entropy with label smoothing, as sums over tokens."""

import functools
from typing import Any, NamedTuple

import flax.struct
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from vaswani_jax.core import parallel, types

# Float32 adds the exponentials of any vocabulary's logits without loss if the greatest
# lies between minus this and this.
GREATEST_EXPONENT = 64.0


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
        return cls(*(np.zeros((), np.float32) for _ in range(4)))


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
        dtype: The type in which accelerators keep the logits between the passes over
            them; that of `logits` by default. TPUs round the logits to it within
            the product, before the sums.
    """
    if dtype is not None and parallel.on_tpu():
        V = logits.shape[-1]
        # One axis of rows, as in the product: XLA reduces where it multiplies.
        logits, target_out = logits.reshape(-1, V), target_out.reshape(-1)
        values = _reduced_in_product(dtype, logits, target_out)
    else:
        logits = logits.astype(dtype or logits.dtype).astype(jnp.float32)
        values = _Reduced(
            log_partition=jax.nn.logsumexp(logits, axis=-1),
            correct_logit=_logit_of(target_out, logits),
            padding_logit=logits[..., types.PAD_ID],
            total_logit=jnp.sum(logits, axis=-1),
            greatest_logit=jnp.max(logits, axis=-1),
        )
    correct_logit, total_logit = values.correct_logit, values.total_logit
    nll = values.log_partition - correct_logit
    loss = nll
    if label_smoothing:
        V = logits.shape[-1]
        if form == "uniform":
            spread = total_logit / V
        elif form == "others":
            spread = (total_logit - correct_logit) / (V - 1)
        else:
            padding_logit = values.padding_logit
            spread = (total_logit - correct_logit - padding_logit) / (V - 2)
        loss = nll + label_smoothing * (correct_logit - spread)
    is_token = target_out != types.PAD_ID
    # The greatest logit is cheap, since the partition needs it; its index is not.
    is_best = correct_logit == values.greatest_logit

    def total(values: Array) -> Array:
        return jnp.sum(jnp.where(is_token, values, 0), dtype=jnp.float32)

    return LossSums(
        loss=total(loss),
        nll=total(nll),
        correct=total(is_best),
        tokens=total(is_token),
    )


class _Reduced(NamedTuple):
    """Reductions of the logits z of each position that the loss needs.

    Attributes:
        log_partition: logsumexp(z).
        correct_logit: z of the correct subword.
        padding_logit: z of padding.
        total_logit: The sum of z.
        greatest_logit: The maximum of z.
    """

    log_partition: Float[Array, "*rows"]
    correct_logit: Float[Array, "*rows"]
    padding_logit: Float[Array, "*rows"]
    total_logit: Float[Array, "*rows"]
    greatest_logit: Float[Array, "*rows"]


def _is_subword(shape: tuple[int, ...], subword: Any) -> Array:
    """Return True where the last axis, the vocabulary's, has the subword."""
    subwords = jax.lax.broadcasted_iota(jnp.int32, shape, len(shape) - 1)
    return subwords == subword


def _logit_of(
    subword: Int[Array | np.ndarray, "*#rows"], logits: Float[Array, "*rows V"]
) -> Float[Array, "*rows"]:
    # Compared, not gathered: the derivative of a gather scatters into zeros of the
    # logits' size, that of a comparison is element-wise.
    is_subword = _is_subword(logits.shape, subword[..., None])
    return jnp.sum(jnp.where(is_subword, logits, 0), axis=-1)


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def _reduced_in_product(
    dtype: str,
    logits: Float[Array, "rows V"],
    target_out: Int[Array | np.ndarray, "rows"],
) -> _Reduced:
    """Reduce the logits, rounded to dtype, where a TPU multiplies them; keep these.

    XLA for TPUs computes sums and maximum in the product's own loop, which writes the
    logits once, in `dtype`. The derivative reads them in the loops of its two products.
    `greatest_logit` has no derivative: the loss only compares it.
    """
    return _reduce_and_keep(dtype, logits, target_out)[0]


def _reduce_and_keep(
    dtype: str, logits: Array, target_out: Array | np.ndarray
) -> tuple[_Reduced, tuple[Array, Array | np.ndarray, Array]]:
    # All sums are of what the derivative reads: otherwise its probabilities would not
    # sum to 1. XLA drops a conversion there and back, but not this.
    precision = jnp.finfo(dtype)
    logits = jax.lax.reduce_precision(logits, precision.nexp, precision.nmant)
    kept_logits = logits.astype(dtype)
    greatest = jnp.max(logits, axis=-1)
    # Of the logits as they are, not less their greatest: that is known only when the
    # product is done.
    partition = jnp.sum(jnp.exp(logits), axis=-1)
    is_in_range = jnp.abs(greatest) < GREATEST_EXPONENT

    def safe_log_partition() -> Array:
        safe = jax.nn.logsumexp(kept_logits.astype(jnp.float32), axis=-1)
        return jnp.where(is_in_range, jnp.log(partition), safe)

    log_partition = jax.lax.cond(
        jnp.all(is_in_range), lambda: jnp.log(partition), safe_log_partition
    )
    values = _Reduced(
        log_partition=log_partition,
        correct_logit=_logit_of(target_out, logits),
        padding_logit=_logit_of(jnp.full((1,), types.PAD_ID), logits),
        total_logit=jnp.sum(logits, axis=-1),
        greatest_logit=greatest,
    )
    return values, (kept_logits, target_out, log_partition)


def _derivative_from_kept(
    dtype: str, residuals: tuple[Array, Array | np.ndarray, Array], gradient: _Reduced
) -> tuple[Array, None]:
    kept_logits, target_out, log_partition = residuals
    softmax = jnp.exp(kept_logits.astype(jnp.float32) - log_partition[:, None])
    is_correct = _is_subword(kept_logits.shape, target_out[:, None])
    is_padding = _is_subword(kept_logits.shape, types.PAD_ID)
    derivative = gradient.log_partition[:, None] * softmax
    derivative += gradient.total_logit[:, None]
    derivative += jnp.where(is_correct, gradient.correct_logit[:, None], 0)
    derivative += jnp.where(is_padding, gradient.padding_logit[:, None], 0)
    return derivative, None


_reduced_in_product.defvjp(_reduce_and_keep, _derivative_from_kept)


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
