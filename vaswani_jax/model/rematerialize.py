"""Memory for section 5.2's batches: layers computed again in the backward pass."""

from collections.abc import Callable
from typing import Any

import flax.linen as nn
import jax
import jax.extend
import jax.numpy as jnp
from flax.core import lift
from jaxtyping import Array


def call(function: Callable[..., Array], module: nn.Module, *arrays: Any) -> Any:
    """`function(module, *arrays)`, of which a derivative keeps only the arguments.

    It computes the rest again. Flax's `nn.remat` does so behind barriers that XLA drops
    for CPUs, where it then merged both computations or began the second one early; here
    the second one cannot begin before the derivative with respect to its result is
    there.

    Args:
        function: Of a module and arrays; it must not close over arrays.
        module: With the parameters.
        *arrays: The other arguments, arrays and trees of them.
    """

    def lifted(inner: Callable[..., Array], scope: Any, *arrays: Any) -> Any:
        def run(scope_of: Any, changed: Any, *arguments: Any) -> Any:
            def pure(variables: Any, keys: Any, *arrays: Any) -> Any:
                own = scope_of(variables, keys)
                return inner(own, *arrays), changed(own)

            # Traced once: a module that is called again draws other masks.
            traced, result = jax.make_jaxpr(pure, return_shape=True)(*arguments)
            flat = _forgetful(
                jax.extend.core.jaxpr_as_fun(traced),
                activations=len(jax.tree.leaves(arrays)),
            )
            return jax.tree.unflatten(
                jax.tree.structure(result), flat(*jax.tree.leaves(arguments))
            )

        packed = lift.pack(run, (True,), (True,), (True,), name="rematerialize")
        return packed(scope, *arrays)

    return nn.transforms.lift_direct_transform(lifted, (function,), module, *arrays)


def _forgetful(
    function: Callable[..., list[Array]], *, activations: int
) -> Callable[..., list[Array]]:
    """A function of arrays, whose derivative computes it again.

    Args:
        function: Its result begins with what the derivative goes back from.
        activations: How many of its last arguments wait for the derivative.
    """

    @jax.custom_vjp
    def run(*arrays: Array) -> list[Array]:
        return function(*arrays)

    def forward(*arrays: Array) -> Any:
        return function(*arrays), arrays

    def backward(arrays: Any, gradients: list[Array]) -> Any:
        event = jnp.ravel(gradients[0])[0]
        first = len(arrays) - activations
        known = [*arrays[:first], *(_after(event, array) for array in arrays[first:])]
        real = [index for index, array in enumerate(known) if _is_real(array)]

        def again(floats: list[Array]) -> list[Array]:
            filled = list(known)
            for index, array in zip(real, floats, strict=True):
                filled[index] = array
            return function(*filled)

        _, derivative = jax.vjp(again, [known[index] for index in real])
        found: list[Array | None] = [None] * len(known)
        for index, gradient in zip(real, derivative(gradients)[0], strict=True):
            found[index] = gradient
        return tuple(found)

    run.defvjp(forward, backward)
    return run


def _is_real(array: Array) -> bool:
    return jnp.issubdtype(array.dtype, jnp.floating)


def _after(event: Array, array: Array) -> Array:
    """`array`, known when `event` is: the same bits, or no numbers if that is none."""
    if not _is_real(array):
        return array
    return jnp.where(jnp.isnan(event), event.astype(array.dtype), array)
