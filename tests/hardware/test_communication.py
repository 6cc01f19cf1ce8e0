"""Communication has its kind, its size and what is computed meanwhile."""

import pytest

from tests.hardware.compiled_texts import CARRIED, OVERLAPPED, STEP
from vaswani_jax.hardware import communication, compiled_work, hlo


@pytest.fixture(name="step")
def parsed_step() -> hlo.Module:
    return hlo.parse(STEP)


def test_a_synchronous_all_reduce_hides_nothing(step: hlo.Module) -> None:
    [collective] = communication.find_collectives(step)
    assert collective.kind == "all-reduce"
    assert collective.num_bytes == 16 * 8 * 4 + 2 * 4
    assert collective.num_links == 2
    assert not collective.is_asynchronous
    assert collective.start_cycles == collective.end_cycles == 1230
    assert collective.hidden_cycles == collective.hidden_kernels == 0


def test_what_stands_between_start_and_done_is_hidden() -> None:
    all_reduce, reduce_scatter, all_gather = communication.find_collectives(
        hlo.parse(OVERLAPPED)
    )
    assert all_reduce.is_asynchronous and all_reduce.is_overlapped
    assert (all_reduce.kind, all_reduce.num_bytes) == ("all-reduce", 256)
    assert (all_reduce.hidden_cycles, all_reduce.hidden_kernels) == (130, 2)
    assert (reduce_scatter.kind, reduce_scatter.num_bytes) == ("reduce-scatter", 32)
    assert (reduce_scatter.hidden_cycles, reduce_scatter.hidden_kernels) == (30, 1)
    # What the start itself computes is done while it communicates.
    assert (all_gather.kind, all_gather.num_bytes) == ("all-gather", 256)
    assert all_gather.hidden_cycles == 5 + 7


def test_products_that_carry_communication_on_hide_it() -> None:
    module = hlo.parse(CARRIED)
    [collective] = communication.find_collectives(module)
    assert (collective.kind, collective.num_bytes) == ("reduce-scatter", 32)
    assert collective.is_asynchronous
    assert (collective.hidden_cycles, collective.hidden_kernels) == (120, 2)
    assert collective.num_links == 2
    assert compiled_work.count_work(module).estimated_cycles == 120


def test_start_and_done_side_by_side_hide_nothing() -> None:
    lines = OVERLAPPED.splitlines()
    start = next(
        i for i, line in enumerate(lines) if "= f32[64]{0} all-reduce-s" in line
    )
    done = next(i for i, line in enumerate(lines) if "all-reduce-done(" in line)
    lines.insert(start + 1, lines.pop(done))
    collective = communication.find_collectives(hlo.parse("\n".join(lines)))[0]
    assert collective.is_asynchronous and not collective.is_overlapped
    assert (collective.hidden_cycles, collective.hidden_kernels) == (0, 0)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("all-reduce-done(%all-reduce-start)", "all-reduce-done(%param)"),
        ("%fusion.5 = f32[64]{0} fusion(%fusion.4)", "%fusion.5 = f32[64]{0} fusion()"),
    ],
)
def test_an_end_without_its_start_is_refused(before: str, after: str) -> None:
    assert before in OVERLAPPED
    module = hlo.parse(OVERLAPPED.replace(before, after))
    name = "all-reduce-done" if "all-reduce" in before else "fusion.5"
    with pytest.raises(ValueError, match=f"{name} ends communication"):
        communication.find_collectives(module)
