"""Batches of few shapes: every sentence once, none cut."""

import hypothesis
import numpy as np
from hypothesis import strategies

from vaswani_jax.inference import padding


@hypothesis.given(strategies.lists(strategies.integers(1, 100), max_size=60))
def test_every_sentence_is_in_one_group_of_its_shape(lengths: list[int]) -> None:
    shapes = [(padding.padded_length(length),) for length in lengths]
    groups = list(
        padding.group_by_shape(shapes, max_rows=lambda shape: 512 // shape[0])
    )
    indices = [index for group in groups for index in group.indices]
    assert sorted(indices) == list(range(len(lengths)))
    for group in groups:
        most = 512 // group.shape[0]
        assert group.num_rows in (*padding.ROWS, most)
        assert len(group.indices) <= group.num_rows <= most
        assert all(shapes[index] == group.shape for index in group.indices)
    # The largest come first.
    assert [group.shape for group in groups] == sorted(
        (group.shape for group in groups), reverse=True
    )


def test_padding_stands_at_the_end() -> None:
    array = padding.pad([[3, 4], [], [5]], rows=4, length=3)
    expected = [[3, 4, 0], [0, 0, 0], [5, 0, 0], [0, 0, 0]]
    np.testing.assert_array_equal(array, expected)
