"""Subwords to words and attention to word pairs, by hand."""

import numpy as np

from vaswani_jax.inference import alignment

STARTS = {10, 11, 12}


def test_a_subword_that_starts_no_word_belongs_to_the_one_before() -> None:
    found = alignment.words(
        [10, 5, 6, 11, 12, 7, 2], starts_word=STARTS.__contains__, end=2, first=0
    )
    assert found.tolist() == [0, 0, 0, 1, 2, 2, -1]
    # A piece that was cut inside a word begins one of its own.
    cut = alignment.words([5, 10], starts_word=STARTS.__contains__, end=2, first=3)
    assert cut.tolist() == [3, 4]


def test_a_word_aligns_to_the_word_with_the_most_attention() -> None:
    source, target = np.array([0, 0, 1, 2, -1]), np.array([0, 1, 1, -1])
    attention = np.zeros((2, 4, 5))
    # Two halves of word 0 together outweigh word 1; the end mark never counts.
    attention[:, 0] = [0.15, 0.15, 0.2, 0.1, 0.4]
    # One head says word 2 and one says word 1, which is surer.
    attention[0, 1] = [0.0, 0.0, 0.3, 0.7, 0.0]
    attention[1, 1] = [0.0, 0.0, 0.9, 0.1, 0.0]
    attention[:, 2] = [0.1, 0.0, 0.5, 0.4, 0.0]
    attention[:, 3] = [0.0, 0.0, 0.0, 1.0, 0.0]
    assert alignment.pharaoh(attention, source, target) == [(0, 0), (1, 1)]


def test_nothing_aligns_to_an_empty_source() -> None:
    attention = np.ones((1, 2, 1))
    found = alignment.pharaoh(attention, np.array([-1]), np.array([0, -1]))
    assert found == []
