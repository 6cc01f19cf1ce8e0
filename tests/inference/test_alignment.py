"""Subwords to words and attention to word pairs, by hand."""

import hypothesis
import numpy as np
from hypothesis import strategies

from vaswani_jax.inference import alignment


def test_a_subword_that_starts_no_word_belongs_to_the_one_before() -> None:
    found = alignment.words(["ab", "c", "d", " e", " f", "g", ""], first=0)
    assert found.tolist() == [0, 0, 0, 1, 2, 2, -1]
    # A piece that was cut inside a word begins one of its own.
    assert alignment.words(["c", " d"], first=3).tolist() == [3, 4]


@hypothesis.given(strategies.lists(strategies.text("ab \t\u3000", max_size=4)))
def test_words_are_those_of_the_text(surfaces: list[str]) -> None:
    found = alignment.words(surfaces, first=0)
    assert set(range(len("".join(surfaces).split()))) >= set(found) - {-1}
    assert max(found, default=-1) + 1 <= len("".join(surfaces).split())
    for place, surface in enumerate(surfaces):
        before = len("".join(surfaces[:place]).split())
        goes_on = "".join(surfaces[:place])[-1:].strip() and surface[:1].strip()
        if surface.strip():
            assert found[place] == before - bool(goes_on)
        else:
            assert found[place] == -1


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
