"""The learning rate against equation 3 and the numbers it gives for the paper."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests import reference
from vaswani_jax.training import optimizer


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
