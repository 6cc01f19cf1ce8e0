"""Which word of the source each position of the target is handed."""

import jax.numpy as jnp
import numpy as np

from tests.model import small
from vaswani_jax.core import types
from vaswani_jax.model import next_word

# Ids 4 and 5 begin words; target ids from 8 on stand for words.
TREES = types.TreeIds(num_labels=2, word_starts=bytes([0b00001100]))


def test_each_position_gets_the_mean_of_the_word_that_follows_those_written():
    module = next_word.NextWord(small.small_model(), TREES)
    D = module.model.d_model
    # Two words, of two subwords and of one; then the end mark and padding.
    source = jnp.array([[4, 6, 5, types.EOS_ID, types.PAD_ID]])
    memory = jnp.arange(5.0)[None, :, None] * jnp.ones(D)
    target_in = jnp.array([[types.BOS_ID, 4, 8, 6, 9, 10]])
    params = {"params": {"projection": {"kernel": jnp.eye(D)}}}
    bound = module.bind(params)
    written = jnp.cumsum(bound.is_word(target_in), axis=1)
    added = bound(bound.states(source, memory), written)
    # Beyond the end mark nothing follows.
    np.testing.assert_allclose(added[0, :, 0], [0.5, 0.5, 2, 2, 3, 0])
    assert added.shape == (1, 6, D)
