"""Texts of compiled programs, as compilers write them."""

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
