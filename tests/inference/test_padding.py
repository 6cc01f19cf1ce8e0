"""Batches of few shapes: every sentence once, none cut."""

import hypothesis
import numpy as np
from hypothesis import strategies

from vaswani_jax.inference import padding


@hypothesis.given(strategies.lists(strategies.integers(1, 100), max_size=60))
def test_every_sentence_is_in_one_group_that_it_fits(lengths: list[int]) -> None:
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
        longest = max(shapes[index] for index in group.indices)
        assert longest == group.shape
        # Large batches have no shorter sentences.
        assert group.num_rows <= padding.ROWS[-1] or all(
            shapes[index] == group.shape for index in group.indices
        )
    # The largest come first.
    assert [group.shape for group in groups] == sorted(
        (group.shape for group in groups), reverse=True
    )


def test_few_sentences_share_the_shape_of_the_longest() -> None:
    shapes = [(16, 0), (64, 0), (32, 0), (16, 0)]
    [group] = padding.group_by_shape(shapes, max_rows=lambda shape: 128)
    assert group == padding.Group([1, 2, 0, 3], (64, 0), 16)


def test_rows_of_padding_are_filled_with_shorter_sentences() -> None:
    shapes = [(32, 0)] * 14 + [(16, 0)] * 30
    groups = padding.group_by_shape(shapes, max_rows=lambda shape: 512 // shape[0])
    first, second = groups
    assert first == padding.Group([*range(16)], (32, 0), 16)
    assert second == padding.Group([*range(16, 44)], (16, 0), 32)


def test_a_sentence_joins_none_whose_other_length_differs() -> None:
    shapes = [(32, 0), (16, 16), (16, 0)]
    groups = list(padding.group_by_shape(shapes, max_rows=lambda shape: 64))
    assert groups == [
        padding.Group([0, 2], (32, 0), 16),
        padding.Group([1], (16, 16), 1),
    ]


def test_padding_stands_at_the_end() -> None:
    array = padding.pad([[3, 4], [], [5]], rows=4, length=3)
    expected = [[3, 4, 0], [0, 0, 0], [5, 0, 0], [0, 0, 0]]
    np.testing.assert_array_equal(array, expected)
