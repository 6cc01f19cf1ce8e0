"""Small programs are computed several at a time, and their results come in order."""

import threading

import jax
import pytest

from vaswani_jax.core import parallel, side_by_side


class Computed:
    """A result that is ready when as many others are computed as the limit allows."""

    def __init__(self, value: int, others: threading.Barrier | None) -> None:
        self.value = value
        self.others = others

    def block_until_ready(self) -> "Computed":
        if self.others:
            self.others.wait(timeout=60)
        return self


# Programs wait for a result within the call, as they need the memory.
@pytest.mark.parametrize("is_asynchronous", [True, False])
@pytest.mark.parametrize("limit", [2, 3])
def test_results_come_in_order_and_are_computed_at_once(limit, is_asynchronous):
    num_dispatched, others = 0, threading.Barrier(limit)

    def dispatch(batch):
        nonlocal num_dispatched
        num_dispatched += 1
        if is_asynchronous:
            return Computed(-batch, others)
        others.wait(timeout=60)
        return Computed(-batch, None)

    values = []
    batches = range(3 * limit)
    for result in side_by_side.compute(dispatch, batches, limit=limit):
        # One more than are computed, not all.
        assert num_dispatched <= len(values) + limit + 1
        values.append(result.value)
    assert values == [-batch for batch in batches]


def test_one_batch_at_a_time_is_computed_when_it_is_asked_for():
    dispatched = []
    results = side_by_side.compute(dispatched.append, range(3), limit=1)
    next(results)
    assert dispatched == [0]


def test_an_error_of_a_batch_ends_the_results():
    results = side_by_side.compute(lambda n: 8 / n, [4, 2, 0, 8], limit=2)
    assert [next(results), next(results)] == [2, 4]
    with pytest.raises(ZeroDivisionError):
        next(results)
    assert list(results) == []


@pytest.mark.parametrize(
    ("platform", "num_devices", "expected"),
    [("cpu", 1, 3), ("cpu", 2, 1), ("gpu", 1, 1), ("tpu", 1, 1)],
)
def test_each_core_of_one_cpu_computes_a_small_program(
    monkeypatch, platform, num_devices, expected
):
    monkeypatch.setattr("os.cpu_count", lambda: 3)
    with parallel.targeting(platform, jax.devices()[:num_devices]):
        assert side_by_side.small_programs_at_a_time() == expected
