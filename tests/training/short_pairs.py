"""Three short pairs of token ids, as a batch with a row for each and packed."""

import numpy as np

from vaswani_jax.core import types

V = 23
# Source and target, both with the end mark.
PAIRS = [
    ([5, 6, 7, 2], [8, 9, 2]),
    ([10, 2], [11, 12, 13, 14, 2]),
    ([15, 16, 2], [17, 2]),
]
# Rows of the packed batch, by pair; the last is padding.
PACKED_ROWS = [[0, 1], [2], []]


def separate_batch() -> types.Batch:
    """Return the pairs, a row each, and a row of padding."""
    batch = types.Batch(*(np.zeros((4, length), np.int32) for length in (7, 6, 6)))
    for row, (source, target) in enumerate(PAIRS):
        batch.source[row, : len(source)] = source
        batch.target_in[row, : len(target)] = [types.BOS_ID, *target[:-1]]
        batch.target_out[row, : len(target)] = target
    return batch


def packed_batch() -> types.Batch:
    """Return the pairs packed, and two rows of padding."""
    arrays = [np.zeros((4, 9), np.int32) for _ in range(5)]
    source, target_in, target_out, of_source, of_target = arrays
    for row, pairs in enumerate(PACKED_ROWS):
        s = t = 0
        for number, pair in enumerate(pairs, start=1):
            words, translation = PAIRS[pair]
            source[row, s : s + len(words)] = words
            of_source[row, s : s + len(words)] = number
            end = t + len(translation)
            target_in[row, t:end] = [types.BOS_ID, *translation[:-1]]
            target_out[row, t:end] = translation
            of_target[row, t:end] = number
            s, t = s + len(words), end
    segments = types.Segments(of_source, of_target)
    return types.Batch(source, target_in, target_out, segments)
