"""The results of a translator are public values that nobody changes."""

import dataclasses

import numpy as np
import pytest

import vaswani_jax
from vaswani_jax.inference import results


def test_results_are_values() -> None:
    output = results.Output(source=(4, 5), ids=(6, 2), score=-1.0)
    hypothesis = results.Hypothesis("a", -1.0, ("a", "</s>"), (output,))
    assert hypothesis == dataclasses.replace(hypothesis)
    assert len({hypothesis, dataclasses.replace(hypothesis, score=-2.0)}) == 2
    score = results.PairScore(-1.0, ("a", "</s>"), (-0.75, -0.25))
    weights = np.ones((1, 1, 2, 2))
    attention = results.Attention(
        ("a",), ("<s>", "a"), ("a", "</s>"), weights, weights, weights
    )
    pair = results.AttendedPair("a", (4,), (6, 2), score.log_probs, attention)
    for result in (output, hypothesis, score, attention, pair):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(result, dataclasses.fields(result)[0].name, None)


def test_a_translation_is_cut_if_any_piece_has_no_end_mark() -> None:
    whole, cut = (results.Output((5,), ids, -1.0) for ids in ((6, 2), (6, 7)))
    for outputs, expected in (((), False), ((whole,), False), ((cut, whole), True)):
        hypothesis = results.Hypothesis("a", -1.0, ("a",), outputs)
        assert hypothesis.is_cut == expected
        assert not dataclasses.replace(hypothesis, symbols=("(S",)).is_cut


def test_what_users_get_is_public() -> None:
    for name in ("Attention", "Hypothesis", "Output", "PairScore"):
        assert getattr(vaswani_jax, name) is getattr(results, name)
