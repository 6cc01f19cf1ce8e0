"""The work of a compiled program counts what runs, as often as it runs."""

import pytest

from tests.hardware.compiled_texts import STEP
from vaswani_jax.hardware import compiled_work, hlo


@pytest.fixture(name="step")
def parsed_step() -> hlo.Module:
    return hlo.parse(STEP)


def test_the_work_of_a_loop_counts_as_often_as_it_runs(step: hlo.Module) -> None:
    work = compiled_work.count_work(step)
    assert work.estimated_cycles == 1000 + 10 + 20 + 4 * 50
    # gather_fusion and copy.1 have no estimate.
    assert work.bytes_without_cycles == 13 * 8 * 4 + 13 * 32 * 8 * 2
    # fusion.1, gather, two copies, fusion.2, all-reduce; four turns of fusion.9.
    assert work.num_kernels == 6 + 4
    assert work.num_instructions == 16 + 5


def test_an_update_in_place_writes_its_slice_alone() -> None:
    text = """HloModule cache, is_scheduled=true

ENTRY %main (cache: bf16[64,148,512], new: bf16[64,4,512], at: s32[]) -> bf16[] {
  %cache = bf16[64,148,512]{2,1,0} parameter(0)
  %new = bf16[64,4,512]{2,1,0} parameter(1)
  %at = s32[] parameter(2)
  ROOT %updated = bf16[64,148,512]{2,1,0} dynamic-update-slice(%cache, %new, %at)
}
"""
    assert (
        compiled_work.count_work(hlo.parse(text)).bytes_without_cycles
        == 64 * 4 * 512 * 2
    )


def test_a_loop_without_a_number_of_turns_is_told_apart(step: hlo.Module) -> None:
    assert list(step.endless_loops()) == []
    text = STEP.replace(', backend_config={"known_trip_count":{"n":"4"}}', "")
    endless = hlo.parse(text)
    [loop] = endless.endless_loops()
    assert compiled_work.count_work(endless, loop.called).estimated_cycles == 50
    assert compiled_work.count_work(endless).estimated_cycles == 1000 + 10 + 20 + 50


def test_communication_has_no_share_in_computing() -> None:
    text = STEP.replace('{"collective_algorithm', '{"estimated_cycles":"9","algorithm')
    assert '"estimated_cycles":"9"' in text
    assert compiled_work.count_work(hlo.parse(text)).estimated_cycles == 1230


def test_copies_into_another_layout_are_found(step: hlo.Module) -> None:
    found = compiled_work.find_relayouts(step, sizes=(13, 13 * 32))
    assert [each.name for each in found] == ["copy.2", "fusion.2"]
    assert found[0].num_bytes == 13 * 32 * 8 * 2
    # copy.1 only moves to another memory. Rows of others are no activations.
    assert compiled_work.find_relayouts(step, sizes=(14,)) == []
    gradients = compiled_work.find_relayouts(step, sizes=(), elements=(13 * 32 * 8,))
    assert len(gradients) == 2


def test_a_new_tiling_is_another_layout() -> None:
    text = STEP.replace("{2,1,0:T(8,128)(2,1)S(1)} copy", "{2,1,0:T(4,128)(2,1)} copy")
    names = [
        each.name for each in compiled_work.find_relayouts(hlo.parse(text), sizes=(13,))
    ]
    assert names == ["copy.1", "copy.2", "fusion.2"]
