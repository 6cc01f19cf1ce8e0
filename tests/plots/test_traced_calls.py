"""A trace has the modules that a forward pass runs, and the shapes of their arrays."""

import functools
from typing import Any

import flax.traverse_util
import jax
import jax.numpy as jnp
import pytest

from tests import settings
from vaswani_jax.model import transformer
from vaswani_jax.plots import traced_calls
from vaswani_jax.plots.traced_calls import Trace

V = 11
MODELS: dict[str, dict[str, Any]] = {
    "post": {},
    "pre": {
        "model.layer_norm_position": "pre",
        "model.positional_encoding": "learned",
        "model.max_positions": 200,
        "model.num_encoder_layers": 2,
        "model.num_decoder_layers": 1,
    },
}
B, S, T = 101, 103, 107


@functools.cache
def trace(name: str) -> Trace:
    model = settings.small_settings(**MODELS[name]).model
    return traced_calls.trace(model, V)


@pytest.mark.parametrize("name", MODELS)
def test_shapes_are_those_of_a_real_pass(name: str) -> None:
    model = settings.small_settings(**MODELS[name]).model
    params = settings.random_params(model, vocab_size=V, seed=0)
    source, target_in = jnp.ones((B, S), jnp.int32), jnp.ones((B, T), jnp.int32)

    @jax.jit
    def run(params: Any) -> Any:
        return transformer.Transformer(model, V).apply(
            {"params": params},
            source,
            target_in,
            deterministic=True,
            capture_intermediates=True,
            mutable=["intermediates"],
        )

    _, state = run(params)
    flat = flax.traverse_util.flatten_dict(state["intermediates"])
    real = {
        path[:-1]: [array.shape for array in arrays]
        for path, arrays in flat.items()
        if path[-1] == "__call__"
    }
    traced: dict[tuple[str, ...], list[tuple[int, ...]]] = {}
    for call in trace(name).root.walk():
        if call.method == "__call__":
            traced.setdefault(call.path, []).append(call.output)
    assert traced == real
    shapes = {key: leaf.shape for key, leaf in flatten(params).items()}
    assert trace(name).params == shapes


def flatten(params: Any) -> dict[str, Any]:
    return flax.traverse_util.flatten_dict(params, sep="/")


def test_axes_have_letters() -> None:
    traced = trace("post")
    assert traced.axes == {B: "B", S: "S", T: "T"}
    assert traced.name(traced.root.output) == "[B, T, 11]"
    # A size of the model is no length of the trace.
    model = settings.small_settings(**{"model.d_ff": B}).model
    assert list(traced_calls.trace(model, S).axes) == [107, 109, 113]


def test_calls_stand_in_their_order() -> None:
    [residual] = trace("post").root.find("Encoder")[0].find("Residual")[:1]
    names = [call.path[-1] for call in residual.calls]
    assert names == ["self_attention", "self_attention", "dropout", "norm"]
    assert [call.method for call in residual.calls[:2]] == ["keys_values", "__call__"]
    [residual] = trace("pre").root.find("Encoder")[0].find("Residual")[:1]
    assert residual.calls[0].path[-1] == "norm"


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_attention_is_what_equation_1_says(dtype: str) -> None:
    model = settings.small_settings(**{"model.dtype": dtype}).model
    H = model.num_heads
    steps = traced_calls.trace_attention(model, B=2, S=3, T=5)
    found = [(step.name, "".join(sorted(step.origins - {"mask"}))) for step in steps]
    assert found == [
        ("Scale", "Q"),
        ("MatMul", "KQ"),
        ("Mask", "KQ"),
        ("SoftMax", "KQ"),
        ("MatMul", "KQV"),
    ]
    assert [step.shape for step in steps[1:4]] == [(2, H, 5, 3)] * 3
    assert steps[0].shape == (2, 5, H, model.d_k)
    assert sorted(steps[-1].shape) == sorted((2, 5, H, model.d_v))
    assert ["mask" in step.origins for step in steps] == [
        False,
        False,
        True,
        True,
        True,
    ]
