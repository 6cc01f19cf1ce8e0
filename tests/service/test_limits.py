"""Errors say when a client may try again."""

from vaswani_jax.service import limits


def test_a_full_queue_says_when_to_come_back():
    assert limits.OverloadedError(2.5).retry_seconds == 2.5
