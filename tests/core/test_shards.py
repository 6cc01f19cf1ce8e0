"""Trees that are divided over the devices, and put together again."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from vaswani_jax.core import parallel, shards


# As the paper's base model has them, on eight chips and on 64: the axis that is divided
# and the length of a part, with what fills the tiles.
@pytest.mark.parametrize(
    ("shape", "on_8", "on_64"),
    [
        ((37000, 512), (0, 4625, 4632), None),
        ((32000, 1024), (1, 128, 128), (0, 500, 504)),
        ((512, 8, 64), (1, 1, 1), None),
        ((1024, 16, 64), (1, 2, 2), None),
        ((8, 64, 512), (0, 1, 1), None),
        ((512, 2048), (0, 64, 64), (0, 8, 8)),
        ((2048, 512), (0, 256, 256), (0, 32, 32)),
        ((8, 64), None, None),
        ((2048,), None, None),
    ],
)
def test_large_leaves_are_divided_into_whole_tiles(shape, on_8, on_64):
    leaf = jax.ShapeDtypeStruct(shape, jnp.float32)
    for num_devices, expected in ((8, on_8), (64, on_64)):
        with parallel.targeting("tpu", [None] * num_devices):
            divided = shards.divided_shapes(leaf)
        if expected is None:
            assert divided.unpack() == leaf
            continue
        axis, length, stored = expected
        shard = divided.unpack()
        assert (shard.axis, shard.length) == (axis, length)
        part = [*shape[:axis], stored, *shape[axis + 1 :]]
        assert shard.part.shape == (num_devices, *part)


@pytest.mark.parametrize("shape", [(4000, 3), (16, 7, 129), (1025, 9), (3,), ()])
def test_a_tree_that_is_divided_is_gathered_as_it_was(shape):
    leaf = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    tree = {"a": leaf, "b": [jnp.asarray(leaf)]}
    divided = shards.divide(tree)
    gathered = shards.gather(divided)
    assert jax.tree.structure(gathered) == jax.tree.structure(tree)
    for result in jax.tree.leaves(gathered):
        np.testing.assert_array_equal(result, leaf)
    assert len(divided.parts) == (2 if shape in [(16, 7, 129), (4000, 3)] else 0)
