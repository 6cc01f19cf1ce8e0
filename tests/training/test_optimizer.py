"""Learning rates against equation 3 and other formulas; AdamW, clipping, freezing."""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests import reference, settings
from vaswani_jax.training import optimizer
from vaswani_jax.training.loss import LossSums
from vaswani_jax.training.step import StepMetrics, clipped_share


def base() -> optimizer.Schedule:
    return optimizer.warmup_inverse_sqrt(d_model=512, warmup_steps=4000, scale=1.0)


def test_the_rate_of_the_base_model_peaks_at_step_4000() -> None:
    peak = 512**-0.5 * 4000**-0.5
    np.testing.assert_allclose(peak, 6.98771e-4, rtol=1e-5)
    np.testing.assert_allclose(base()(3999), peak, rtol=1e-6)
    rates = jax.vmap(base())(jnp.arange(8000))
    assert int(jnp.argmax(rates)) == 3999
    growth = np.diff(rates[:4000])
    assert (growth > 0).all()
    assert (np.diff(rates[3999:]) < 0).all()


def test_the_first_update_is_step_1_not_0() -> None:
    first = 512**-0.5 * 4000**-1.5
    np.testing.assert_allclose(base()(0), first, rtol=1e-6)
    np.testing.assert_allclose(base()(1), 2 * first, rtol=1e-6)


@pytest.mark.parametrize(
    ("d_model", "warmup_steps"), [(512, 4000), (1024, 4000), (6, 1), (128, 16_000)]
)
def test_the_rate_is_equation_3(d_model: int, warmup_steps: int) -> None:
    rate = optimizer.warmup_inverse_sqrt(
        d_model=d_model, warmup_steps=warmup_steps, scale=1.8
    )
    for step in (0, 1, 7, 399, 3999, 4000, 15_999, 99_999, 299_999):
        expected = 1.8 * reference.learning_rate(
            step + 1, d_model=d_model, warmup_steps=warmup_steps
        )
        np.testing.assert_allclose(rate(step), expected, rtol=1e-6)
        np.testing.assert_allclose(jax.jit(rate)(step), expected, rtol=1e-6)


def test_after_the_warmup_four_times_the_steps_halve_the_rate() -> None:
    for step_num in (4000, 10_000, 75_000):
        now, later = base()(step_num - 1), base()(4 * step_num - 1)
        np.testing.assert_allclose(2 * later, now, rtol=1e-6)


PEAK, WARMUP, STEPS = 3e-3, 4, 20
AFTER = {  # The rate of update n after the warm-up, as a share of its peak.
    "constant": lambda n: 1.0,
    "linear": lambda n: (STEPS + 1 - n) / (STEPS + 1 - WARMUP),
    "cosine": lambda n: (
        (1 + math.cos(math.pi * (n - WARMUP) / (STEPS + 1 - WARMUP))) / 2
    ),
    "inverse_sqrt": lambda n: math.sqrt(WARMUP / n),
}


@pytest.mark.parametrize("schedule", AFTER)
def test_a_schedule_rises_to_its_absolute_rate_and_follows_its_formula(
    schedule: str,
) -> None:
    rate = optimizer.learning_rate(
        settings.small_settings(
            **{"optimizer.schedule": schedule, "optimizer.learning_rate": PEAK},
            **{"optimizer.warmup_steps": WARMUP, "training.num_steps": STEPS},
        )
    )
    for n in range(1, STEPS + 1):
        share = n / WARMUP if n <= WARMUP else AFTER[schedule](n)
        np.testing.assert_allclose(rate(n - 1), PEAK * share, rtol=1e-5)
        np.testing.assert_allclose(jax.jit(rate)(n - 1), PEAK * share, rtol=1e-5)


PARAMS = {
    "layer": {"kernel": jnp.array([[1.0, -2.0]]), "bias": jnp.array([3.0])},
    "norm": {"scale": jnp.array([4.0])},
    "table": {"embedding": jnp.array([-5.0])},
}


def change(**overrides: Any) -> Any:
    """The first update that gradients of 1 make."""
    small = settings.small_settings(**overrides)
    adam = optimizer.adam(small)
    gradients = jax.tree.map(jnp.ones_like, PARAMS)
    return adam.update(gradients, adam.init(PARAMS), PARAMS)[0]


def test_weight_decay_pulls_kernels_and_tables_by_rate_times_decay() -> None:
    plain, decayed = change(), change(**{"optimizer.weight_decay": 0.25})
    rate = 8**-0.5 * 4**-1.5  # Equation 3 at step_num 1.
    for module, name, pull in (
        ("layer", "kernel", -rate * 0.25 * np.array([[1.0, -2.0]])),
        ("table", "embedding", -rate * 0.25 * np.array([-5.0])),
        ("layer", "bias", 0.0),
        ("norm", "scale", 0.0),
    ):
        np.testing.assert_allclose(
            decayed[module][name] - plain[module][name], pull, rtol=1e-5
        )


@pytest.mark.parametrize(("max_norm", "scale"), [(26.0, 1.0), (6.5, 0.5)])
def test_a_gradient_is_scaled_down_to_the_norm(max_norm: float, scale: float) -> None:
    gradients = {"a": jnp.array([3.0, 4.0]), "b": jnp.array([[12.0]])}  # norm 13
    clipped = optimizer.clip(gradients, norm=jnp.float32(13), max_norm=max_norm)
    for name, leaf in gradients.items():
        np.testing.assert_allclose(clipped[name], scale * leaf, rtol=1e-6)


def test_the_share_of_clipped_updates_is_counted() -> None:
    updates = [StepMetrics(LossSums.zero(), np.array(n, "f4")) for n in (1, 2, 3, 4)]
    assert clipped_share(updates, max_norm=2.5) == 0.5
