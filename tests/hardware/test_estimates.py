"""Estimates, computed by hand."""

import dataclasses

import pytest

from vaswani_jax.core.memory import NeededBytes
from vaswani_jax.hardware import (
    chips,
    communication,
    compiled_work,
    estimates,
    programs,
)

# Figures that are easy to divide by.
CHIP = dataclasses.replace(
    chips.CHIPS["v5e"],
    flops_per_second=1e12,
    memory_bytes_per_second=1e9,
    clock_hz=1e6,
    link_bytes_per_second=1e8,
)


def collective(
    start: int,
    end: int,
    *,
    kind: str = "all-reduce",
    num_bytes: int = 0,
    links: int = 1,
) -> communication.Collective:
    return communication.Collective(
        kind=kind,
        num_bytes=num_bytes,
        num_links=links,
        is_asynchronous=end > start,
        start_cycles=start,
        end_cycles=end,
        hidden_kernels=0,
    )


def program(
    *collectives: communication.Collective, cycles: int, without: int = 0
) -> programs.Program:
    return programs.Program(
        rows=13,
        source_length=32,
        target_length=32,
        compile_seconds=2.0,
        memory={
            **dict.fromkeys(programs.MEMORY_FIELDS, 0),
            "argument_size_in_bytes": 3_000_000,
            "output_size_in_bytes": 1_000_000,
        },
        needed=NeededBytes(1, 2, 3),
        flops=5.0,
        work=compiled_work.Work(10, 9, cycles, without),
        turns=[compiled_work.Work(4, 3, 2, 1)],
        collectives=list(collectives),
        relayouts=[compiled_work.Relayout("copy.1", 8)],
    )


@pytest.mark.parametrize(
    ("kind", "bytes_sent"),
    # Of 8 devices; an all-reduce is a reduce-scatter and an all-gather of an eighth.
    [
        ("all-reduce", 2 * 7 * 1000),
        ("reduce-scatter", 7 * 8000),
        ("all-gather", 7 * 1000),
    ],
)
def test_a_ring_sends_all_but_a_devices_share(kind: str, bytes_sent: int) -> None:
    seconds = estimates.ring_seconds(
        collective(0, 0, kind=kind, num_bytes=8000, links=2), CHIP, num_devices=8
    )
    assert seconds == pytest.approx(bytes_sent / 2e8)


@pytest.mark.parametrize(
    ("intervals", "expected"),
    [
        ([(0, 0, 3.0)], 3.0),  # Nothing is computed meanwhile.
        ([(0, 2, 3.0)], 1.0),
        ([(0, 5, 3.0)], 0.0),
        # The second waits for the links until 6, and its end comes at 4.
        ([(0, 4, 3.0), (0, 4, 3.0)], 2.0),
        # The first is awaited at 1 for 2 seconds; the second then starts at 1 + 2.
        ([(0, 1, 3.0), (1, 3, 3.0)], 2.0 + 1.0),
        # One inside the other.
        ([(1, 3, 1.0), (0, 6, 2.0)], 0.0),
        ([], 0.0),
    ],
)
def test_communication_is_exposed_where_nothing_is_computed(
    intervals: list[tuple[int, int, float]], expected: float
) -> None:
    collectives = [collective(start, end) for start, end, _ in intervals]
    seconds = [seconds for *_, seconds in intervals]
    exposed = estimates.exposed_seconds(collectives, seconds, clock_hz=1.0)
    assert exposed == pytest.approx(expected)


def test_a_step_is_its_cycles_its_silent_kernels_and_exposed_communication() -> None:
    all_reduce = collective(100, 1100, num_bytes=400_000)  # 7 ms; 1 ms is hidden.
    step = estimates.step_time(
        program(all_reduce, cycles=5000, without=2_000_000), CHIP, num_devices=8
    )
    assert step is not None
    assert step.computing == pytest.approx(5e-3 + 4e-3)
    assert step.communication == pytest.approx(7e-3)
    assert step.exposed == pytest.approx(6e-3)
    assert step.seconds == pytest.approx(15e-3)


def test_without_cycles_or_a_clock_there_is_no_estimate() -> None:
    silent = dataclasses.replace(CHIP, clock_hz=None)
    assert estimates.step_time(program(cycles=0), CHIP, num_devices=8) is None
    assert estimates.step_time(program(cycles=9), silent, num_devices=8) is None


def test_a_run_costs_what_its_chips_cost() -> None:
    run = estimates.run(
        0.5,
        CHIP,
        num_chips=8,
        update_flops=1e12,
        target_tokens=25_000.0,
        num_steps=7200,
        dollars_per_hour=1.5,
    )
    assert run.target_tokens_per_second == 50_000
    assert run.mfu == pytest.approx(1 / 8 / 0.5)
    assert run.hours == 1.0
    assert run.device_hours == 8.0
    assert run.dollars == 12.0


def test_the_two_devices_of_a_chip_are_paid_once() -> None:
    pair = dataclasses.replace(CHIP, devices_per_chip=2)
    run = estimates.run(
        0.5,
        pair,
        num_chips=4,
        update_flops=1e12,
        target_tokens=1.0,
        num_steps=7200,
        dollars_per_hour=None,
    )
    assert run.mfu == pytest.approx(1 / 8 / 0.5)
    assert (run.device_hours, run.dollars) == (4.0, None)


def test_no_step_is_faster_than_its_products_and_its_arguments() -> None:
    # 4 MB at 1 GB/s; 8e9 operations of 8 devices are 1 ms.
    for flops, seconds in ((8e9, 4e-3), (64e9, 8e-3)):
        assert estimates.least_step_seconds(
            program(cycles=0), CHIP, update_flops=flops, num_devices=8
        ) == pytest.approx(seconds)


def test_a_program_is_the_same_from_json() -> None:
    one = program(collective(1, 2), cycles=3)
    assert programs.Program.from_dict(one.as_dict()) == one
