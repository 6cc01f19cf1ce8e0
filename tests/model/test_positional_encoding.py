"""Positions against section 3.5, number by number."""

import math

import jax
import jax.numpy as jnp
import numpy as np

from vaswani_jax.model import positional_encoding


def test_sinusoids_are_those_of_section_3_5() -> None:
    positions, d_model = [0, 1, 2, 9, 100, 999], 512
    encodings = positional_encoding.sinusoids(jnp.array(positions), d_model=d_model)
    assert encodings.shape == (6, 512)
    assert encodings.dtype == jnp.float32
    for row, pos in enumerate(positions):
        expected = []
        for i in range(d_model // 2):
            angle = pos / 10000 ** (2 * i / d_model)
            expected += [math.sin(angle), math.cos(angle)]
        # float32 rounds an angle by up to 2^-24 of it, twice.
        np.testing.assert_allclose(encodings[row], expected, atol=1e-6 + pos * 2**-23)


def test_sinusoids_of_a_shifted_position_are_a_rotation() -> None:
    """Section 3.5: PE(pos + k) is a linear function of PE(pos), for any pos."""
    d_model, k = 16, 5
    now = positional_encoding.sinusoids(jnp.arange(40), d_model=d_model)
    later = positional_encoding.sinusoids(jnp.arange(40) + k, d_model=d_model)
    for i in range(d_model // 2):
        angle = k / 10000 ** (2 * i / d_model)
        rotation = np.array(
            [
                [math.cos(angle), math.sin(angle)],
                [-math.sin(angle), math.cos(angle)],
            ]
        )
        pair = slice(2 * i, 2 * i + 2)
        expected = np.asarray(now[:, pair]) @ rotation.T
        np.testing.assert_allclose(later[:, pair], expected, atol=1e-5)


def test_learned_positions_look_up_their_rows() -> None:
    module = positional_encoding.LearnedPositions(7, 5)
    table = jnp.arange(35.0).reshape(7, 5)
    positions = jnp.array([6, 0, 3])
    encodings = module.apply({"params": {"embedding": table}}, positions)
    np.testing.assert_array_equal(encodings, table[positions])


def test_learned_positions_start_normal_with_variance_1_over_d_model() -> None:
    module = positional_encoding.LearnedPositions(300, 64)
    params = module.init(jax.random.key(0), jnp.arange(1))["params"]
    table = params["embedding"]
    assert table.shape == (300, 64)
    assert table.dtype == jnp.float32
    assert abs(float(table.std()) * 8 - 1) < 5 / math.sqrt(2 * table.size)
    assert abs(float(table.mean())) * 8 < 5 / math.sqrt(table.size)
