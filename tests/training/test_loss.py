"""The smoothed cross-entropy against its targets written out."""

import functools
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests import reference
from vaswani_jax.core import parallel, types
from vaswani_jax.training import loss

B, T, V = 3, 5, 7
FIELDS = ("loss", "nll", "correct", "tokens")


def random_pair(seed: int) -> tuple[jax.Array, jax.Array]:
    generator = np.random.default_rng(seed)
    logits = 3 * generator.standard_normal((B, T, V))
    target_out = generator.integers(1, V, (B, T))
    for row, length in enumerate((T, 2, 0)):
        target_out[row, length:] = types.PAD_ID
    return jnp.asarray(logits, jnp.float32), jnp.asarray(target_out, jnp.int32)


def test_smoothing_written_out_for_one_token() -> None:
    """V = 4, eps = 0.2: the targets are 0.05, 0.05, 0.85, 0.05."""
    probabilities = [0.1, 0.2, 0.4, 0.3]
    logits = jnp.log(jnp.array([[probabilities]]))
    sums = loss.smoothed_cross_entropy(logits, jnp.array([[2]]), label_smoothing=0.2)
    expected = -(
        0.05 * math.log(0.1)
        + 0.05 * math.log(0.2)
        + 0.85 * math.log(0.4)
        + 0.05 * math.log(0.3)
    )
    np.testing.assert_allclose(sums.loss, expected, rtol=1e-6)
    np.testing.assert_allclose(sums.nll, -math.log(0.4), rtol=1e-6)
    assert (float(sums.correct), float(sums.tokens)) == (1, 1)


@pytest.mark.parametrize("label_smoothing", [0.0, 0.1, 0.7])
def test_loss_is_the_cross_entropy_with_targets_formed_in_full(
    label_smoothing: float,
) -> None:
    logits, target_out = random_pair(0)
    expected = dict.fromkeys(FIELDS, 0.0)
    for b, t in np.ndindex(B, T):
        target = int(target_out[b, t])
        if target == types.PAD_ID:
            continue
        p = reference.softmax(np.float64(logits[b, t]))
        q = reference.smoothed_targets(np.array([target]), V, label_smoothing)[0]
        np.testing.assert_allclose(q.sum(), 1)
        expected["loss"] += -(q * np.log(p)).sum()
        expected["nll"] += -math.log(p[target])
        expected["correct"] += p.argmax() == target
        expected["tokens"] += 1
    sums = loss.smoothed_cross_entropy(
        logits, target_out, label_smoothing=label_smoothing
    )
    for field in FIELDS:
        np.testing.assert_allclose(getattr(sums, field), expected[field], rtol=1e-5)


FORMS = {
    "uniform": lambda k, target: 1 / V,
    "others": lambda k, target: (k != target) / (V - 1),
    "no_pad": lambda k, target: (k not in (target, types.PAD_ID)) / (V - 2),
}


@pytest.mark.parametrize("form", FORMS)
def test_each_form_of_smoothing_is_that_of_its_definition(form: str) -> None:
    logits, target_out = random_pair(3)
    expected = 0.0
    for b, t in np.ndindex(B, T):
        target = int(target_out[b, t])
        if target == types.PAD_ID:
            continue
        q = [0.9 * (k == target) + 0.1 * FORMS[form](k, target) for k in range(V)]
        assert math.isclose(sum(q), 1)
        p = reference.softmax(np.float64(logits[b, t]))
        expected -= np.dot(q, np.log(p))
    sums = loss.smoothed_cross_entropy(
        logits, target_out, label_smoothing=0.1, form=form
    )
    np.testing.assert_allclose(sums.loss, expected, rtol=1e-5)


def test_without_smoothing_the_loss_is_the_negative_log_likelihood() -> None:
    sums = loss.smoothed_cross_entropy(*random_pair(1), label_smoothing=0.0)
    assert float(sums.loss) == float(sums.nll)


def test_the_smoothed_loss_is_least_at_the_smoothed_targets() -> None:
    """Section 5.4: it hurts perplexity, as the model learns to be more unsure."""
    q = reference.smoothed_targets(np.array([2]), V, 0.1)
    best = jnp.asarray(np.log(q), jnp.float32)[None]
    target_out = jnp.array([[2]])

    def value(logits: jax.Array) -> jax.Array:
        return loss.smoothed_cross_entropy(logits, target_out, label_smoothing=0.1).loss

    np.testing.assert_allclose(jax.grad(value)(best), np.zeros((1, 1, V)), atol=1e-6)
    certain = 50 * jax.nn.one_hot(target_out, V)
    assert float(value(certain)) > float(value(best))


@pytest.mark.parametrize("platform", ["cpu", "gpu", "tpu"])
def test_what_is_predicted_at_padding_does_not_count(platform: str) -> None:
    logits, target_out = random_pair(2)
    padding = (target_out == types.PAD_ID)[..., None]

    def sums_of(logits: jax.Array) -> loss.LossSums:
        with parallel.targeting(platform):
            return loss.smoothed_cross_entropy(
                logits, target_out, label_smoothing=0.1, dtype="bfloat16"
            )

    sums = sums_of(logits)
    for noise in (1e3, np.inf, np.nan):
        changed_sums = sums_of(jnp.where(padding, noise, logits))
        for field in FIELDS:
            assert float(getattr(changed_sums, field)) == float(getattr(sums, field))


def test_sums_of_two_batches_add_up_to_those_of_both() -> None:
    (first, first_out), (second, second_out) = random_pair(3), random_pair(4)
    parts = [
        loss.smoothed_cross_entropy(*pair, label_smoothing=0.1)
        for pair in ((first, first_out), (second, second_out))
    ]
    joint = loss.smoothed_cross_entropy(
        jnp.concatenate([first, second]),
        jnp.concatenate([first_out, second_out]),
        label_smoothing=0.1,
    )
    added = loss.LossSums.zero() + parts[0] + parts[1]
    for field in FIELDS:
        value, expected = getattr(added, field), getattr(joint, field)
        np.testing.assert_allclose(value, expected, rtol=1e-6)


def test_sums_of_bfloat16_logits_stay_float32() -> None:
    logits, target_out = random_pair(5)
    sums = loss.smoothed_cross_entropy(
        logits.astype(jnp.bfloat16), target_out, label_smoothing=0.1
    )
    for field in FIELDS:
        assert getattr(sums, field).dtype == jnp.float32


def test_a_long_batch_counts_each_of_its_tokens() -> None:
    rows = 1024
    logits = jnp.zeros((rows, T, V))
    target_out = jnp.full((rows, T), 3)
    sums = loss.smoothed_cross_entropy(logits, target_out, label_smoothing=0.1)
    assert float(sums.tokens) == rows * T
    np.testing.assert_allclose(sums.loss, rows * T * math.log(V), rtol=1e-5)


def test_disagreement_is_both_divergences_written_out() -> None:
    logits, target_out = random_pair(5)
    other_logits, _ = random_pair(6)
    expected = 0.0
    for b, t in np.ndindex(B, T):
        if int(target_out[b, t]) == types.PAD_ID:
            continue
        p = reference.softmax(np.float64(logits[b, t]))
        q = reference.softmax(np.float64(other_logits[b, t]))
        forward, backward = (p * np.log(p / q)).sum(), (q * np.log(q / p)).sum()
        expected += (forward + backward) / 2
    divergence = loss.symmetric_kl(logits, other_logits, target_out=target_out)
    np.testing.assert_allclose(divergence, expected, rtol=1e-5)
    # Of predictions that differ by a constant: none.
    assert (
        abs(float(loss.symmetric_kl(logits, logits + 3, target_out=target_out))) < 1e-4
    )


def test_means_are_over_tokens_and_perplexity_is_that_of_the_plain_likelihood() -> None:
    logits, target_out = random_pair(6)
    sums = loss.smoothed_cross_entropy(logits, target_out, label_smoothing=0.3)
    means = loss.per_token(sums)
    p = reference.softmax(np.float64(logits))
    likelihoods = [
        p[b, t, target_out[b, t]] for b, t in np.ndindex(B, T) if target_out[b, t]
    ]
    assert means["tokens"] == len(likelihoods) == 7
    perplexity = np.prod(likelihoods) ** (-1 / len(likelihoods))
    np.testing.assert_allclose(means["perplexity"], perplexity, rtol=1e-5)
    np.testing.assert_allclose(means["loss"], float(sums.loss) / 7, rtol=1e-6)
    np.testing.assert_allclose(means["accuracy"], float(sums.correct) / 7, rtol=1e-6)


def test_means_of_a_uniform_guess_are_log_v_and_v() -> None:
    sums = loss.smoothed_cross_entropy(
        jnp.zeros((B, T, V)), jnp.full((B, T), 4), label_smoothing=0.1
    )
    means = loss.per_token(sums)
    np.testing.assert_allclose(means["loss"], math.log(V), rtol=1e-6)
    np.testing.assert_allclose(means["perplexity"], V, rtol=1e-5)


def test_means_over_no_token_are_finite() -> None:
    assert all(map(math.isfinite, loss.per_token(loss.LossSums.zero()).values()))


@pytest.mark.parametrize("form", FORMS)
def test_logits_kept_in_bfloat16_give_the_sums_and_derivative_of_the_rounded(
    form: str,
) -> None:
    logits, target_out = random_pair(7)
    rounded = logits.astype(jnp.bfloat16).astype(jnp.float32)

    def total(logits: jax.Array, dtype: str | None) -> tuple[jax.Array, loss.LossSums]:
        sums = loss.smoothed_cross_entropy(
            logits, target_out, label_smoothing=0.1, form=form, dtype=dtype
        )
        return sums.loss, sums

    derivative = jax.value_and_grad(total, has_aux=True)
    (_, kept), gradient = derivative(logits, "bfloat16")
    (_, expected), expected_gradient = derivative(rounded, None)
    for field in FIELDS:
        np.testing.assert_allclose(
            getattr(kept, field), getattr(expected, field), rtol=1e-6
        )
    # What goes back is in the type that was kept.
    np.testing.assert_allclose(gradient, expected_gradient, rtol=2**-8, atol=1e-6)


def values_and_derivatives(
    logits: jax.Array, target_out: jax.Array, *, platform: str, **options: Any
) -> tuple[loss.LossSums, jax.Array]:
    """Return the sums and the derivative of the loss, in the form of a platform."""

    with parallel.targeting(platform):
        derivative, sums = _derivative(platform, **options)(logits, target_out)
    return sums, derivative


@functools.cache
def _derivative(platform: str, **options: Any) -> Any:
    """Return the loss's derivative; the cache keeps one per platform and options."""
    del platform

    def total(
        logits: jax.Array, target_out: jax.Array
    ) -> tuple[jax.Array, loss.LossSums]:
        sums = loss.smoothed_cross_entropy(logits, target_out, **options)
        return sums.loss, sums

    return jax.jit(jax.grad(total, has_aux=True))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("label_smoothing", [0.0, 0.1])
@pytest.mark.parametrize(
    ("platform", "dtype"),
    [("tpu", "float32"), ("tpu", "bfloat16"), ("gpu", "float32")],
)
# Rows whose greatest logit is beyond 64 or -64 are summed in another way.
@pytest.mark.parametrize("offset", [0.0, 50.0, 300.0, -300.0])
def test_a_platforms_sums_and_derivative_are_those_of_the_logits_it_keeps(
    form: str, label_smoothing: float, platform: str, dtype: str, offset: float
) -> None:
    logits, target_out = random_pair(8)
    # All rows but one are moved: the way is chosen for each row.
    logits += offset * (jnp.arange(T) != 1)[:, None]
    kept = logits.astype(dtype).astype(jnp.float32)
    options: dict[str, Any] = {"label_smoothing": label_smoothing, "form": form}
    expected, exact = values_and_derivatives(
        kept, target_out, platform="cpu", **options
    )
    sums, derivative = values_and_derivatives(
        logits, target_out, platform=platform, dtype=dtype, **options
    )
    for field in FIELDS:
        np.testing.assert_allclose(
            getattr(sums, field), getattr(expected, field), rtol=1e-5
        )
    assert derivative.dtype == jnp.float32
    np.testing.assert_allclose(derivative, exact, rtol=1e-3, atol=2e-5)


@pytest.mark.parametrize("platform", ["gpu", "tpu"])
def test_a_confident_token_keeps_its_small_derivative(platform: str) -> None:
    """Logits of 15 are rounded by 3 %; all probabilities must be by the same."""
    generator = np.random.default_rng(12)
    logits = jnp.asarray(generator.normal(size=(50, 4000)), jnp.float32)
    target_out = jnp.asarray(generator.integers(4, 4000, 50))
    greatest = generator.uniform(14, 16, 50)
    logits = logits.at[jnp.arange(50), target_out].set(jnp.asarray(greatest))
    options: dict[str, Any] = {"label_smoothing": 0.1}
    _, exact = values_and_derivatives(logits, target_out, platform="cpu", **options)
    _, derivative = values_and_derivatives(
        logits, target_out, platform=platform, dtype="bfloat16", **options
    )
    np.testing.assert_allclose(derivative.sum(axis=-1), 0, atol=1e-3)
    correct = jnp.arange(50), target_out
    np.testing.assert_allclose(derivative[correct], exact[correct], atol=1e-3)


def test_a_tpus_loss_adds_to_the_disagreement_of_two_draws() -> None:
    logits, target_out = random_pair(9)
    other_logits, _ = random_pair(10)

    def total(logits: jax.Array) -> jax.Array:
        sums = loss.smoothed_cross_entropy(
            logits, target_out, label_smoothing=0.1, dtype="float32"
        )
        kl = loss.symmetric_kl(logits, other_logits, target_out=target_out)
        return sums.loss + 5 * kl

    expected = jax.value_and_grad(total)(logits)
    with parallel.targeting("tpu"):
        value, gradient = jax.value_and_grad(total)(logits)
    np.testing.assert_allclose(value, expected[0], rtol=1e-6)
    np.testing.assert_allclose(gradient, expected[1], rtol=1e-5, atol=1e-6)


def test_a_tpu_keeps_for_the_derivative_one_array_of_logits_in_the_models_type() -> (
    None
):
    logits, target_out = random_pair(11)

    def total(logits: jax.Array) -> jax.Array:
        return loss.smoothed_cross_entropy(
            logits, target_out, label_smoothing=0.1, dtype="bfloat16"
        ).loss

    with parallel.targeting("tpu"):
        _, derivative = jax.vjp(total, logits)
    kept = [leaf for leaf in jax.tree.leaves(derivative) if leaf.size == logits.size]
    assert [leaf.dtype for leaf in kept] == [jnp.bfloat16]
