"""Compute layers again in the backward pass, to store fewer activations."""

from collections.abc import Callable
from typing import Any

import flax.linen as nn
import jax
import jax.extend
import jax.numpy as jnp
from flax.core import lift
from jaxtyping import Array


def call(function: Callable[..., Array], module: nn.Module, *arrays: Any) -> Any:
    """Return `function(module, *arrays)`; its derivative stores only the arguments.

    The backward pass computes the rest again. Flax's `nn.remat` guards that with
    barriers, which XLA for CPUs drops: it then merges both computations or starts the
    second one early. Here the second one depends on the derivative of its result, so
    it cannot start earlier.

    Args:
        function: Takes a module and arrays; it must not close over arrays.
        module: Holds the parameters.
        *arrays: The other arguments, arrays and trees of them.
    """

    def lifted(inner: Callable[..., Array], scope: Any, *arrays: Any) -> Any:
        def run(make_scope: Any, get_updates: Any, *arguments: Any) -> Any:
            def pure(variables: Any, keys: Any, *arrays: Any) -> Any:
                inner_scope = make_scope(variables, keys)
                return inner(inner_scope, *arrays), get_updates(inner_scope)

            # Traced once: a second call of the module would draw other dropout masks.
            jaxpr, output_shapes = jax.make_jaxpr(pure, return_shape=True)(*arguments)
            flat = _recompute_in_backward(
                jax.extend.core.jaxpr_as_fun(jaxpr),
                num_activations=len(jax.tree.leaves(arrays)),
            )
            return jax.tree.unflatten(
                jax.tree.structure(output_shapes), flat(*jax.tree.leaves(arguments))
            )

        packed = lift.pack(run, (True,), (True,), (True,), name="rematerialize")
        return packed(scope, *arrays)

    return nn.transforms.lift_direct_transform(lifted, (function,), module, *arrays)


def _recompute_in_backward(
    function: Callable[..., list[Array]], *, num_activations: int
) -> Callable[..., list[Array]]:
    """Return the function with a derivative that computes it again.

    Args:
        function: The first array that it returns is the layer's output.
        num_activations: How many of its last arguments are activations.
    """

    @jax.custom_vjp
    def run(*arrays: Array) -> list[Array]:
        return function(*arrays)

    def forward(*arrays: Array) -> Any:
        return function(*arrays), arrays

    def backward(arrays: Any, gradients: list[Array]) -> Any:
        event = jnp.ravel(gradients[0])[0]
        first = len(arrays) - num_activations
        activations_after = (_wait_for(event, array) for array in arrays[first:])
        inputs = [*arrays[:first], *activations_after]
        float_indices = [i for i, array in enumerate(inputs) if _is_float(array)]

        def recompute(floats: list[Array]) -> list[Array]:
            arguments = list(inputs)
            for index, array in zip(float_indices, floats, strict=True):
                arguments[index] = array
            return function(*arguments)

        _, derivative = jax.vjp(recompute, [inputs[index] for index in float_indices])
        input_grads: list[Array | None] = [None] * len(inputs)
        float_grads = derivative(gradients)[0]
        for index, gradient in zip(float_indices, float_grads, strict=True):
            input_grads[index] = gradient
        return tuple(input_grads)

    run.defvjp(forward, backward)
    return run


def _is_float(array: Array) -> bool:
    return jnp.issubdtype(array.dtype, jnp.floating)


def _wait_for(event: Array, array: Array) -> Array:
    """Return `array` with a data dependency on `event`, so that XLA cannot start early.

    The bits are the same, or NaN where `event` is NaN.
    """
    if not _is_float(array):
        return array
    return jnp.where(jnp.isnan(event), event.astype(array.dtype), array)
