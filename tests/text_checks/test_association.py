"""What goes together, against counting by hand."""

import math

import numpy as np
import pytest

from vaswani_jax.text_checks import association


def learned(
    pairs: list[tuple[str, str]],
) -> tuple[association.Associations, association.Side, association.Side, np.ndarray]:
    index = association.Index()
    source = index.side([pair[0] for pair in pairs])
    target = index.side([pair[1] for pair in pairs])
    weights = association.stem_weights(source, target, index, len(pairs))
    rows = np.arange(len(pairs))
    return association.Associations(source, target, rows), source, target, weights


def test_strength_is_mutual_information_of_words_that_met_twice() -> None:
    pairs = [("dog", "hund"), ("dog", "hund"), ("dog", "tier"), ("cat", "tier")]
    associations, source, target, _ = learned(pairs)
    rows = np.array([0, 2, 3])
    strengths = associations.strengths(source.padded(rows), target.padded(rows))
    # dog and hund: together in 2 of 4; expected by chance: 3 * 2 / 4.
    assert strengths[0, 0, 0] == pytest.approx(max(0, math.log(2 / (1.5 + 0.5))))
    assert strengths[1, 0, 0] == strengths[2, 0, 0] == 0  # only once


def test_words_that_met_are_stronger_than_words_that_did_not() -> None:
    pairs = [(w, w.upper()[::-1]) for w in ("abc", "def", "ghi", "jkl") * 5]
    associations, source, target, weights = learned(pairs)
    rows = np.arange(4)

    def scores(others: np.ndarray) -> np.ndarray:
        return association.scores(
            associations, weights, source=(source, rows), target=(target, others)
        )

    assert (scores(rows) > 1).all()
    assert not scores(np.array([1, 2, 3, 0])).any()


def test_numbers_names_and_cognates_need_no_learning() -> None:
    pairs = [
        ("in 1984 Paris", "1984 à paris"),
        ("the musician", "le musicien"),
        ("a b", "c d"),
    ]
    associations, source, target, weights = learned(pairs)
    rows = np.arange(3)
    scores = association.scores(
        associations, weights, source=(source, rows), target=(target, rows)
    )
    # Each stem is in 2 of 6 lines: log(6 / 3). Two words of three have a partner, and
    # one of two.
    assert scores[:2] == pytest.approx([4 / 3 * math.log(2), math.log(2)], rel=1e-6)
    assert scores[2] == 0


def test_shares_of_words() -> None:
    index = association.Index()
    side = index.side(["a b c d", "a b", "", "d d"])
    rows, others = np.array([0, 1, 2, 0]), np.array([1, 0, 1, 3])
    shares = association.share_of_words(side.padded(rows), side.padded(others))
    assert shares.tolist() == [0.5, 1.0, 0.0, 0.25]


def test_texts_without_words_are_no_error() -> None:
    associations, source, target, weights = learned([("", ""), ("...", "—")])
    rows = np.arange(2)
    assert not association.scores(
        associations, weights, source=(source, rows), target=(target, rows)
    ).any()


def test_a_very_long_number_is_read_without_leading_zeros() -> None:
    assert association.stem("0" * 9000 + "7") == "7"
    assert association.stem("٣" * 9000) == "3" * 9000
    assert association.stem("000") == "0"
