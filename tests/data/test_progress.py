"""How far, and how long: by a clock that the test turns."""

import time

import pytest

from vaswani_jax.data import progress


@pytest.fixture
def clock(monkeypatch):
    now = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    return now


def test_it_says_how_long_the_rest_will_take(clock):
    said = []
    found = []
    for item in progress.told(range(10), what="reading", total=10, log=said.append):
        found.append(item)
        clock[0] += 10
    assert found == list(range(10))
    # Every second item, 20 seconds after the one before.
    assert said == [
        "reading: 2 of 10 pairs, 0:01:20 left",
        "reading: 4 of 10 pairs, 0:01:00 left",
        "reading: 6 of 10 pairs, 0:00:40 left",
        "reading: 8 of 10 pairs, 0:00:20 left",
    ]


def test_a_first_item_that_is_late_has_nothing_to_reckon_with(clock):
    def late():
        clock[0] += 60
        yield 1

    said = []
    assert list(progress.told(late(), what="x", total=3, log=said.append)) == [1]
    assert said == ["x: 0 of 3 pairs"]
