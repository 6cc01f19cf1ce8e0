"""The likeliest extensions of a beam, against a sort of all of them."""

import jax.numpy as jnp
import numpy as np
import pytest

from vaswani_jax.core import parallel, types
from vaswani_jax.inference import extensions


@pytest.mark.parametrize("platform", ["cpu", "tpu"])
@pytest.mark.parametrize("V", [5, 127, 128, 129, 6000, 32000])
def test_the_likeliest_extensions_are_those_of_a_full_sort(
    V: int, platform: str
) -> None:
    B, W = 3, 4
    generator = np.random.default_rng(V)
    # Integers: equal ones abound, and the first of them comes first.
    logits = generator.integers(0, V, (B, W, V)).astype(np.float32)
    offset = generator.integers(-V, 0, (B, W, 1)).astype(np.float32)
    # One beam is impossible, and what may be forbidden is the likeliest.
    offset[0, 2] = -np.inf
    logits[:, :, : types.EOS_ID + 1] = 2 * V
    logits[1, 1, -1] = V
    with parallel.targeting(platform):
        top = extensions.likely_extensions(
            jnp.asarray(logits), jnp.asarray(offset), count=2 * W
        )
    total = logits + offset
    total[:, :, : types.EOS_ID + 1] = -np.inf
    flat = total.reshape(B, W * V)
    expected = np.argsort(-flat, axis=-1, kind="stable")[:, : 2 * W]
    indices = np.asarray(top.indices)
    log_probs = np.where(indices % V <= types.EOS_ID, -np.inf, top.log_probs)
    for b in range(B):
        order = np.argsort(-log_probs[b], kind="stable")[: 2 * W]
        best = np.take(flat[b], expected[b])
        np.testing.assert_array_equal(log_probs[b][order], best)
        finite = np.isfinite(best)
        np.testing.assert_array_equal(indices[b][order][finite], expected[b][finite])
