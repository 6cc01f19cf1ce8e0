"""A claim and its verdict."""

import pytest

from vaswani_jax.paper.claim import verdict_of


@pytest.mark.parametrize(("is_so", "verdict"), [(1, "holds"), (0, "does not hold")])
def test_a_claim_that_was_tested_holds_or_does_not(is_so, verdict):
    assert verdict_of(bool(is_so)) == verdict
