"""Masks written out by hand."""

import jax.numpy as jnp
import numpy as np

from vaswani_jax.model import masks


def test_padding_mask_shows_real_tokens_to_every_query() -> None:
    mask = masks.padding_mask(jnp.array([[5, 2, 0, 0, 0], [4, 1, 3, 2, 0]]))
    assert mask.shape == (2, 1, 1, 5)
    assert mask.dtype == bool
    expected = [[1, 1, 0, 0, 0], [1, 1, 1, 1, 0]]
    np.testing.assert_array_equal(mask[:, 0, 0], np.array(expected, bool))


def test_causal_mask_shows_each_query_itself_and_what_is_earlier() -> None:
    mask = masks.causal_mask(4)
    assert mask.shape == (1, 1, 4, 4)
    assert mask.dtype == bool
    expected = [[1, 0, 0, 0], [1, 1, 0, 0], [1, 1, 1, 0], [1, 1, 1, 1]]
    np.testing.assert_array_equal(mask[0, 0], np.array(expected, bool))
