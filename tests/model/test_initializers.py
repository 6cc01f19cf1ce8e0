"""Initial weights are those of Glorot and Bengio (2010), equation 16, and scaled."""

import math

import jax
import numpy as np
import pytest
import scipy.stats

from vaswani_jax.model import initializers

# Sides of two lengths, or the mean of both fans could be either of them.
D_MODEL, D_FF = 96, 160


def draw(init_scale: float, *, seed: int = 0) -> np.ndarray:
    """Return a kernel of a layer from D_MODEL to D_FF."""
    init = initializers.kernel(init_scale)
    return np.asarray(init(jax.random.key(seed), (D_MODEL, D_FF)))


@pytest.mark.parametrize("init_scale", [1.0, 0.25, 3.0])
def test_weights_are_uniform_up_to_the_bound_of_the_paper(init_scale: float) -> None:
    kernel = draw(init_scale)
    assert kernel.dtype == np.float32
    bound = math.sqrt(6 / (D_MODEL + D_FF)) * math.sqrt(init_scale)
    assert 0.999 * bound < np.abs(kernel).max() <= bound * (1 + 1e-6)
    fit = scipy.stats.kstest(kernel.ravel(), "uniform", args=(-bound, 2 * bound))
    assert fit.pvalue > 0.01


def test_weights_are_distributed_as_those_of_pytorch() -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed: .[oracles]")
    generator = torch.Generator().manual_seed(1)
    expected = torch.nn.init.xavier_uniform_(
        torch.empty(D_FF, D_MODEL), gain=0.5, generator=generator
    ).numpy()
    kernel = draw(0.25)
    np.testing.assert_allclose(np.abs(kernel).max(), np.abs(expected).max(), rtol=1e-3)
    fit = scipy.stats.ks_2samp(kernel.ravel(), expected.ravel())
    assert fit.pvalue > 0.01


def test_a_quarter_of_the_scale_halves_each_weight() -> None:
    np.testing.assert_array_equal(draw(0.25, seed=5), draw(1.0, seed=5) / 2)
    assert not np.any(draw(1.0, seed=5) == draw(1.0, seed=6))
