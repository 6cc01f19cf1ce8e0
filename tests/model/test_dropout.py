"""The hash behind dropout: its rate and its independence, measured.

Every bound is five standard errors of what is measured. The keys are fixed, so a
test that passes once passes always.
"""

import itertools
import math
import zlib

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from vaswani_jax.core import parallel
from vaswani_jax.model import dropout

RATES = [0.1, 0.3, 0.5, 0.9]
SHAPE = (16, 100, 512)
SIZE = math.prod(SHAPE)
SIGMAS = 5
keep_mask = jax.jit(dropout.keep_mask, static_argnames=("shape", "rate"))


def step_keys(count: int) -> list[jax.Array]:
    """Keys as training derives them: of consecutive steps, then of one device."""
    stream = jax.random.fold_in(jax.random.key(0), 1)
    return [
        jax.random.fold_in(jax.random.fold_in(stream, step), 0) for step in range(count)
    ]


def standardised(key: jax.Array, rate: float) -> np.ndarray:
    """A mask of mean 0 and variance 1, if its rate is right."""
    mask = np.asarray(keep_mask(key, SHAPE, rate=rate), np.float32)
    return ((mask - (1 - rate)) / math.sqrt(rate * (1 - rate))).reshape(-1)


def assert_uncorrelated(first: np.ndarray, second: np.ndarray) -> None:
    correlation = float(np.mean(first * second, dtype=np.float64))
    assert abs(correlation) < SIGMAS / math.sqrt(first.size)


@pytest.mark.parametrize("rate", [0.001, *RATES])
def test_keep_mask_keeps_the_right_share(rate: float) -> None:
    for key in step_keys(8):
        mask = keep_mask(key, SHAPE, rate=rate)
        assert mask.shape == SHAPE
        assert mask.dtype == bool
        error = SIGMAS * math.sqrt(rate * (1 - rate) / SIZE)
        assert abs(float(mask.mean()) - (1 - rate)) < error


@pytest.mark.parametrize("rate", RATES)
def test_every_row_and_every_column_keeps_the_right_share(rate: float) -> None:
    mask = standardised(step_keys(1)[0], rate).reshape(SHAPE)
    for axis in range(3):
        other_axes = tuple(other_axis for other_axis in range(3) if other_axis != axis)
        means = mask.mean(axis=other_axes)
        count = SIZE // SHAPE[axis]
        assert np.abs(means).max() < SIGMAS / math.sqrt(count)


@pytest.mark.parametrize("rate", RATES)
def test_positions_are_independent(rate: float) -> None:
    lags = {1, 2, 3, 100, SHAPE[2], SHAPE[1] * SHAPE[2]} | {2**n for n in range(19)}
    for key in step_keys(2):
        mask = standardised(key, rate)
        for lag in lags:
            assert_uncorrelated(mask[lag:], mask[:-lag])


def test_positions_whose_indices_differ_in_one_bit_are_independent() -> None:
    mask = standardised(step_keys(1)[0], 0.3)[: 2**19]
    for bit in range(19):
        partner = np.arange(mask.size) ^ 2**bit
        lower = np.arange(mask.size) < partner
        assert_uncorrelated(mask[lower], mask[partner[lower]])


def test_triples_of_neighbours_are_independent() -> None:
    mask = standardised(step_keys(1)[0], 0.5)
    for second, third in ((1, 2), (1, 3), (512, 1024), (512, 51_200)):
        stop = mask.size - third
        pair = mask[:stop] * mask[second : stop + second]
        assert_uncorrelated(pair, mask[third:])


@pytest.mark.parametrize("rate", [0.1, 0.5])
def test_steps_devices_parts_and_seeds_are_independent(rate: float) -> None:
    step = step_keys(4)
    parts = [jax.random.fold_in(step[0], part) for part in range(3)]
    devices = [jax.random.fold_in(parts[0], device) for device in range(3)]
    seeds = [jax.random.key(seed) for seed in range(3)]
    masks = [standardised(key, rate) for key in [*step, *parts, *devices, *seeds]]
    for first, second in itertools.combinations(masks, 2):
        assert_uncorrelated(first, second)
        assert_uncorrelated(first[1:], second[:-1])


def chi_square(counts: np.ndarray) -> float:
    expected = counts.sum() / counts.size
    return float(((counts - expected) ** 2 / expected).sum())


def assert_uniform(digits: np.ndarray) -> None:
    """The digits 0 to 255 are equally frequent, by their chi-square."""
    degrees = 255
    statistic = chi_square(np.bincount(digits, minlength=256))
    assert abs(statistic - degrees) < SIGMAS * math.sqrt(2 * degrees)


def test_bytes_of_the_hash_are_uniform() -> None:
    """An element is kept at rates up to its bits: 255 rates reveal a byte of them."""
    key, shape = step_keys(1)[0], (2**18,)

    def digit(start: float, width: float) -> np.ndarray:
        digits = np.zeros(shape, np.int32)
        for n in range(1, 256):
            rate = start + width * n / 256
            # Not jitted: each rate would be a program of its own.
            digits += np.asarray(dropout.keep_mask(key, shape, rate=rate))
        return digits

    highest = digit(0.0, 1.0)
    assert_uniform(highest)
    for value in (0, 77, 255):
        second = digit(value / 256, 1 / 256)
        assert_uniform(second[highest == value])


def test_the_same_key_gives_the_same_mask() -> None:
    first, second = (
        dropout.keep_mask(jax.random.key(5), (7, 9), rate=0.4) for _ in range(2)
    )
    np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize("rate", RATES)
def test_dropout_keeps_the_mean(rate: float) -> None:
    output = dropout.Dropout(rate).apply(
        {}, jnp.ones(SHAPE), deterministic=False, rngs={"dropout": jax.random.key(6)}
    )
    output = np.asarray(output)
    values = np.unique(output)
    np.testing.assert_allclose(values, [0, 1 / (1 - rate)], rtol=1e-6)
    error = SIGMAS * math.sqrt(rate / (1 - rate) / SIZE)
    assert abs(float(output.mean(dtype=np.float64)) - 1) < error


@pytest.mark.parametrize(("rate", "deterministic"), [(0.4, True), (0.0, False)])
def test_dropout_is_the_identity_if_told_so_or_at_rate_0(
    rate: float, deterministic: bool
) -> None:
    x = jnp.arange(6.0).reshape(2, 3)
    output = dropout.Dropout(rate).apply({}, x, deterministic=deterministic)
    np.testing.assert_array_equal(output, x)


def test_dropout_keeps_the_type_of_its_input() -> None:
    output = dropout.Dropout(0.5).apply(
        {},
        jnp.ones((3, 5), jnp.bfloat16),
        deterministic=False,
        rngs={"dropout": jax.random.key(7)},
    )
    assert output.dtype == jnp.bfloat16


def test_gradients_of_dropout_pass_where_it_kept() -> None:
    def total(x: jax.Array) -> jax.Array:
        output = dropout.Dropout(0.5).apply(
            {}, x, deterministic=False, rngs={"dropout": jax.random.key(8)}
        )
        return jnp.sum(output * output)

    x = jnp.linspace(1.0, 2.0, 40)
    gradient = np.asarray(jax.grad(total)(x))
    is_kept = gradient != 0
    assert 5 < is_kept.sum() < 35
    np.testing.assert_allclose(gradient[is_kept], 8 * x[is_kept], rtol=1e-6)


@pytest.mark.parametrize("rate", [0.1, 0.5])
def test_places_that_share_a_key_have_independent_masks(rate: float) -> None:
    sites = [zlib.crc32(f"layers_{n}/dropout".encode()) for n in range(4)] + [0, 1, 2]
    keys = [
        dropout.site_key(key, site=site) for key in step_keys(2) for site in sites
    ] + step_keys(2)
    masks = [standardised(key, rate) for key in keys]
    for mask in masks:
        assert abs(float(mask.mean())) < SIGMAS / math.sqrt(SIZE)
    for first, second in itertools.combinations(masks, 2):
        assert_uncorrelated(first, second)
        assert_uncorrelated(first[1:], second[:-1])


@pytest.mark.parametrize("platform", ["gpu", "tpu"])
def test_modules_of_a_model_drop_apart_on_accelerators(platform: str) -> None:
    class Twice(nn.Module):
        @nn.compact
        def __call__(self, x: jax.Array) -> tuple[jax.Array, jax.Array]:
            first = dropout.Dropout(0.5, name="first")(x, deterministic=False)
            return first, dropout.Dropout(0.5, name="second")(x, deterministic=False)

    def masks(key: int) -> list[np.ndarray]:
        with parallel.targeting(platform):
            outputs = Twice().apply(
                {}, jnp.ones(SHAPE), rngs={"dropout": jax.random.key(key)}
            )
        return [np.asarray(output - 1).reshape(-1) for output in outputs]

    drawn = [*masks(1), *masks(2)]
    for first, second in itertools.combinations(drawn, 2):
        assert_uncorrelated(first, second)
    for mask, again in zip(drawn, masks(1), strict=False):
        np.testing.assert_array_equal(mask, again)
