"""Three short pairs of token ids, as a batch with a row for each."""

import numpy as np

from vaswani_jax.core import types

# Source and target, both with the end mark.
PAIRS = [
    ([5, 6, 7, 2], [8, 9, 2]),
    ([10, 2], [11, 12, 13, 14, 2]),
    ([15, 16, 2], [17, 2]),
]


def separate_batch() -> types.Batch:
    """Return the pairs, a row each, and a row of padding."""
    batch = types.Batch(*(np.zeros((4, length), np.int32) for length in (7, 6, 6)))
    for row, (source, target) in enumerate(PAIRS):
        batch.source[row, : len(source)] = source
        batch.target_in[row, : len(target)] = [types.BOS_ID, *target[:-1]]
        batch.target_out[row, : len(target)] = target
    return batch
