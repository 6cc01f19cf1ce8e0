"""Mean and spread of scores are those of NumPy."""

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies

from vaswani_jax.evaluation.spread import Spread


@hypothesis.given(strategies.lists(strategies.floats(0, 100), min_size=2, max_size=9))
def test_mean_and_deviation_are_numpys(values: list[float]) -> None:
    spread = Spread(values)
    assert spread.mean == pytest.approx(np.mean(values))
    assert spread.deviation == pytest.approx(np.std(values, ddof=1), abs=1e-9)


def test_one_seed_has_no_deviation() -> None:
    assert Spread([40.25]).mean == 40.25
    assert Spread([40.25]).deviation is None
    assert Spread([40.25]).format_range() == "one seed"
