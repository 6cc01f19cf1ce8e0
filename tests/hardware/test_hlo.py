"""The parser of compiled programs, on texts as compilers write them."""

import pytest

from vaswani_jax.hardware import hlo

STEP = """\
HloModule jit__fun, is_scheduled=true, entry_computation_layout={(f32[4]{0})->f32[4]{0}}

%region_1.2 (a: f32[], b: f32[]) -> f32[] {
  %a = f32[]{:T(128)} parameter(0)
  %b = f32[]{:T(128)} parameter(1)
  ROOT %add.1 = f32[]{:T(128)} add(%a, %b)
}

%fused_move (param_0.1: bf16[13,32,8]) -> bf16[32,13,8] {
  %param_0.1 = bf16[13,32,8]{2,1,0:T(8,128)(2,1)} parameter(0)
  ROOT %transpose.3 = bf16[32,13,8]{2,1,0:T(8,128)(2,1)} transpose(%param_0.1), dimensions={1,0,2}
}

%body (state: (s32[], f32[16,8])) -> (s32[], f32[16,8]) {
  %state = (s32[]{:T(128)}, f32[16,8]{1,0:T(8,128)}) parameter(0)
  %get-tuple-element.1 = s32[]{:T(128)} get-tuple-element(%state), index=0
  %get-tuple-element.2 = f32[16,8]{1,0:T(8,128)} get-tuple-element(%state), index=1
  %fusion.9 = f32[16,8]{1,0:T(8,128)} fusion(%get-tuple-element.2), kind=kLoop, calls=%region_1.2, backend_config={"window_config":{"estimated_cycles":"50"}}
  ROOT %tuple.1 = (s32[]{:T(128)}, f32[16,8]{1,0:T(8,128)}) tuple(%get-tuple-element.1, %fusion.9)
}

%condition (state.1: (s32[], f32[16,8])) -> pred[] {
  ROOT %constant.1 = pred[]{:T(512)} constant(true)
}

ENTRY %main.5_spmd (param.1: f32[16,8], param.2: bf16[13,32,8]) -> (f32[16,8], /*index=1*/f32[2]) {
  %param.1 = f32[16,8]{1,0:T(8,128)} parameter(0), metadata={op_name="flat_args[0]"}
  %param.2 = bf16[13,32,8]{2,1,0:T(8,128)(2,1)} parameter(1)
  %constant.7 = s32[]{:T(128)} constant(0)
  %add.9 = s32[]{:T(128)S(6)} add(%constant.7, %constant.7)
  %custom-call.1 = f32[16,8]{1,0:T(8,128)} custom-call(%param.1), custom_call_target="ConcatBitcast"
  %fusion.1 = f32[16,8]{1,0:T(8,128)S(1)} fusion(%param.1), kind=kOutput, calls=%region_1.2, metadata={op_name="jit(_fun)/jvp(Transformer)/dot_general"}, backend_config={"window_config":{"estimated_cycles":"1000","iteration_bounds":["1"]}}
  %gather_fusion = f32[13,8]{1,0:T(8,128)} fusion(%param.1), kind=kCustom, calls=%region_1.2
  %copy.1 = bf16[13,32,8]{2,1,0:T(8,128)(2,1)S(1)} copy(%param.2)
  %copy.2 = bf16[13,32,8]{0,2,1:T(8,128)(2,1)} copy(%copy.1), metadata={op_name="jit(_fun)/Transformer/transpose"}, backend_config={"window_config":{"estimated_cycles":"10"}}
  %fusion.2 = bf16[32,13,8]{2,1,0:T(8,128)(2,1)} fusion(%param.2), kind=kLoop, calls=%fused_move, backend_config={"window_config":{"estimated_cycles":"20"}}
  %tuple.2 = (s32[]{:T(128)}, f32[16,8]{1,0:T(8,128)}) tuple(%constant.7, %fusion.1)
  %while.1 = (s32[]{:T(128)}, f32[16,8]{1,0:T(8,128)}) while(%tuple.2), condition=%condition, body=%body, backend_config={"known_trip_count":{"n":"4"}}
  %get-tuple-element.5 = f32[16,8]{1,0:T(8,128)} get-tuple-element(%while.1), index=1
  %all-reduce = (f32[16,8]{1,0:T(8,128)S(1)}, /*index=1*/f32[2]{0:T(128)}) all-reduce(%get-tuple-element.5, %param.1), channel_id=1, replica_groups={{0,1}}, to_apply=%region_1.2, backend_config={"collective_algorithm_config":{"debug":"\\nUniDirection1DRingStrategy{colors:2 phases:1}"}}
  %get-tuple-element.6 = f32[16,8]{1,0:T(8,128)} get-tuple-element(%all-reduce), index=0
  ROOT %tuple.3 = (f32[16,8]{1,0:T(8,128)}, f32[2]{0:T(128)}) tuple(%get-tuple-element.6, %gather_fusion)
}
"""  # noqa: E501
OVERLAPPED = """\
HloModule jit__fun, is_scheduled=true

%async_computation (p: f32[64]) -> f32[8] {
  %p = f32[64]{0} parameter(0)
  ROOT %reduce-scatter.1 = f32[8]{0} reduce-scatter(%p), channel_id=2, dimensions={0}, to_apply=%add
}

%copy_computation (q: f32[64]) -> f32[64] {
  ROOT %q = f32[64]{0} parameter(0)
}

%start_computation (r: f32[8]) -> (f32[8], f32[64]) {
  %r = f32[8]{0} parameter(0)
  ROOT %all-gather-start.1 = (f32[8]{0}, f32[64]{0}) all-gather-start(%r), channel_id=3, dimensions={0}
}

%go_on_computation (s: f32[64]) -> f32[64] {
  %s = f32[64]{0} parameter(0)
  %all-gather-start.2 = (f32[8]{0}, f32[64]{0}) all-gather-start(%s), channel_id=3
  ROOT %all-gather-done.2 = f32[64]{0} all-gather-done(%all-gather-start.2)
}

%done_computation (t: f32[64]) -> f32[64] {
  %t = f32[64]{0} parameter(0)
  ROOT %all-gather-done.1 = f32[64]{0} all-gather-done(%t)
}

ENTRY %main (param: f32[64]) -> f32[64] {
  %param = f32[64]{0} parameter(0)
  %all-reduce-start = f32[64]{0} all-reduce-start(%param), channel_id=1, to_apply=%add
  %fusion.1 = f32[64]{0} fusion(%param), kind=kLoop, calls=%copy_computation, backend_config={"estimated_cycles":"100"}
  %async-start = ((f32[64]{0}), f32[8]{0}) async-start(%fusion.1), calls=%async_computation
  %fusion.2 = f32[64]{0} fusion(%param), kind=kLoop, calls=%copy_computation, backend_config={"estimated_cycles":"30"}
  %all-reduce-done = f32[64]{0} all-reduce-done(%all-reduce-start)
  %other-start = ((f32[64]{0}), f32[64]{0}) async-start(%fusion.1), calls=%copy_computation
  %other-done = f32[64]{0} async-done(%other-start)
  %async-done = f32[8]{0} async-done(%async-start)
  %fusion.3 = (f32[8]{0}, f32[64]{0}) fusion(%async-done), kind=kCustom, calls=%start_computation, backend_config={"estimated_cycles":"5"}
  %get-tuple-element.1 = f32[64]{0} get-tuple-element(%fusion.3), index=1
  %fusion.4 = f32[64]{0} fusion(%get-tuple-element.1), kind=kCustom, calls=%go_on_computation, backend_config={"estimated_cycles":"7"}
  %fusion.5 = f32[64]{0} fusion(%fusion.4), kind=kCustom, calls=%done_computation, backend_config={"estimated_cycles":"9"}
  ROOT %add.1 = f32[64]{0} add(%fusion.5, %all-reduce-done)
}
"""  # noqa: E501
# A TPU's products that carry a reduce-scatter on, step by step.
CARRIED = """\
HloModule jit__fun, is_scheduled=true

%fused_computation.1 (p: f32[64]) -> (f32[64], f32[8]) {
  %p = f32[64]{0} parameter(0)
  %reduce-scatter.1 = f32[8]{0} reduce-scatter(%p), channel_id=12, dimensions={0}, to_apply=%add
  ROOT %custom-call.1 = (f32[64]{0}, f32[8]{0}) custom-call(%reduce-scatter.1), custom_call_target="AsyncCollectiveStart"
}

%async_collective_fusion.2 (q: f32[64]) -> (f32[32], f32[64], f32[8]) {
  %q = f32[64]{0} parameter(0)
  %convolution.1 = f32[32]{0} convolution(%q, %q)
  %reduce-scatter.2 = f32[8]{0} reduce-scatter(%q), channel_id=12, dimensions={0}, to_apply=%add
  ROOT %tuple.1 = (f32[32]{0}, f32[64]{0}, f32[8]{0}) tuple(%convolution.1, %q, %reduce-scatter.2)
}

%fused_computation.3 (r: f32[64]) -> f32[8] {
  %r = f32[64]{0} parameter(0)
  %reduce-scatter.3 = f32[8]{0} reduce-scatter(%r), channel_id=12, dimensions={0}, to_apply=%add
  ROOT %custom-call.2 = f32[8]{0} custom-call(%reduce-scatter.3), custom_call_target="AsyncCollectiveDone"
}

ENTRY %main (param: f32[64]) -> f32[8] {
  %param = f32[64]{0} parameter(0)
  %async-collective-start = (f32[64]{0}, f32[8]{0}) fusion(%param), kind=kCustom, calls=%fused_computation.1
  %get-tuple-element.1 = f32[64]{0} get-tuple-element(%async-collective-start), index=0
  %fusion.2 = (f32[32]{0}, f32[64]{0}, f32[8]{0}) fusion(%get-tuple-element.1), kind=kOutput, calls=%async_collective_fusion.2, backend_config={"estimated_cycles":"70"}
  %get-tuple-element.2 = f32[64]{0} get-tuple-element(%fusion.2), index=1
  %fusion.3 = (f32[32]{0}, f32[64]{0}, f32[8]{0}) fusion(%get-tuple-element.2), kind=kOutput, calls=%async_collective_fusion.2, backend_config={"estimated_cycles":"50"}
  %get-tuple-element.3 = f32[64]{0} get-tuple-element(%fusion.3), index=1
  ROOT %async-collective-done = f32[8]{0} fusion(%get-tuple-element.3), kind=kCustom, calls=%fused_computation.3
}
"""  # noqa: E501


@pytest.fixture(name="step")
def parsed_step() -> hlo.Module:
    return hlo.parse(STEP)


def test_computations_have_their_instructions(step: hlo.Module) -> None:
    assert step.entry == "main.5_spmd"
    names = ["region_1.2", "fused_move", "body", "condition", "main.5_spmd"]
    assert list(step.computations) == names
    assert [each.opcode for each in step.computations["region_1.2"]] == [
        "parameter",
        "parameter",
        "add",
    ]
    fusion = step.computations["body"][3]
    assert (fusion.name, fusion.operands) == ("fusion.9", ["get-tuple-element.2"])
    assert fusion.called == "region_1.2"
    named = step.computations["main.5_spmd"][5]
    assert named.op_name == "jit(_fun)/jvp(Transformer)/dot_general"


def test_a_text_without_an_entry_is_refused() -> None:
    with pytest.raises(ValueError, match="no ENTRY"):
        hlo.parse("HloModule nothing\n")


@pytest.mark.parametrize(
    ("shape", "num_bytes"),
    [
        ("f32[]", 4),
        ("pred[3,5]{1,0}", 15),
        ("bf16[97,32,512]{2,1,0:T(8,128)(2,1)S(1)}", 97 * 32 * 512 * 2),
        ("(s32[2]{0}, /*index=1*/u8[3]{0}, token[])", 11),
        ("f8e4m3fn[7]{0}", 7),
        ("s4[6]{0}", 3),
        ("c64[2]{0}", 16),
    ],
)
def test_bytes_of_shapes(shape: str, num_bytes: int) -> None:
    assert hlo.num_bytes(shape) == num_bytes


def test_the_work_of_a_loop_counts_as_often_as_it_runs(step: hlo.Module) -> None:
    work = hlo.work(step)
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
    assert hlo.work(hlo.parse(text)).bytes_without_cycles == 64 * 4 * 512 * 2


def test_a_loop_without_a_number_of_turns_is_told_apart(step: hlo.Module) -> None:
    assert list(step.endless_loops()) == []
    text = STEP.replace(', backend_config={"known_trip_count":{"n":"4"}}', "")
    endless = hlo.parse(text)
    [loop] = endless.endless_loops()
    assert hlo.work(endless, loop.called).estimated_cycles == 50
    assert hlo.work(endless).estimated_cycles == 1000 + 10 + 20 + 50


def test_a_synchronous_all_reduce_hides_nothing(step: hlo.Module) -> None:
    [collective] = hlo.collectives(step)
    assert collective.kind == "all-reduce"
    assert collective.num_bytes == 16 * 8 * 4 + 2 * 4
    assert collective.num_links == 2
    assert not collective.is_asynchronous
    assert collective.start_cycles == collective.end_cycles == 1230
    assert collective.hidden_cycles == collective.hidden_kernels == 0


def test_what_stands_between_start_and_done_is_hidden() -> None:
    all_reduce, reduce_scatter, all_gather = hlo.collectives(hlo.parse(OVERLAPPED))
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
    [collective] = hlo.collectives(module)
    assert (collective.kind, collective.num_bytes) == ("reduce-scatter", 32)
    assert collective.is_asynchronous
    assert (collective.hidden_cycles, collective.hidden_kernels) == (120, 2)
    assert collective.num_links == 2
    assert hlo.work(module).estimated_cycles == 120


def test_communication_has_no_share_in_computing() -> None:
    text = STEP.replace('{"collective_algorithm', '{"estimated_cycles":"9","algorithm')
    assert '"estimated_cycles":"9"' in text
    assert hlo.work(hlo.parse(text)).estimated_cycles == 1230


def test_start_and_done_side_by_side_hide_nothing() -> None:
    lines = OVERLAPPED.splitlines()
    start = next(
        i for i, line in enumerate(lines) if "= f32[64]{0} all-reduce-s" in line
    )
    done = next(i for i, line in enumerate(lines) if "all-reduce-done(" in line)
    lines.insert(start + 1, lines.pop(done))
    collective = hlo.collectives(hlo.parse("\n".join(lines)))[0]
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
        hlo.collectives(module)


def test_copies_into_another_layout_are_found(step: hlo.Module) -> None:
    found = hlo.relayouts(step, sizes=(13, 13 * 32))
    assert [each.name for each in found] == ["copy.2", "fusion.2"]
    assert found[0].num_bytes == 13 * 32 * 8 * 2
    assert found[0].op_name == "jit(_fun)/Transformer/transpose"
    # copy.1 only moves to another memory. Rows of others are no activations.
    assert hlo.relayouts(step, sizes=(14,)) == []
    gradients = hlo.relayouts(step, sizes=(), elements=(13 * 32 * 8,))
    assert len(gradients) == 2


def test_a_new_tiling_is_another_layout() -> None:
    text = STEP.replace("{2,1,0:T(8,128)(2,1)S(1)} copy", "{2,1,0:T(4,128)(2,1)} copy")
    names = [each.name for each in hlo.relayouts(hlo.parse(text), sizes=(13,))]
    assert names == ["copy.1", "copy.2", "fusion.2"]
