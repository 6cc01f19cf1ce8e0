"""Each error of an engine has a status."""

import pytest

from vaswani_jax.service import refusals
from vaswani_jax.service.limits import OverloadedError, TooLateError


@pytest.mark.parametrize(
    ("error", "status"),
    [(OverloadedError(0.1), 503), (TooLateError(), 504), (ValueError("x"), 422)],
)
def test_each_error_has_its_status(error, status):
    refusal = refusals.of_engine(error)
    assert refusal.status == status
    assert refusal.headers == ({"Retry-After": "1"} if status == 503 else {})
