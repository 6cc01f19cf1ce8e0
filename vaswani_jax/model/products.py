"""Products whose result must be float32: scores (3.2.1) and logits (section 3.4)."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def einsum(
    subscripts: str,
    one: Float[Array | np.ndarray, "..."],
    other: Float[Array | np.ndarray, "..."],
) -> Float[Array, "..."]:
    """`jnp.einsum` of two arrays of one dtype, its result in float32.

    The products of its derivative are in the dtype of the arrays, too: JAX's own
    would be in float32, at half the rate or less where the arrays are bfloat16.

    Args:
        subscripts: As of `jnp.einsum`.
        one: The first array.
        other: The second one.
    """
    return jnp.einsum(subscripts, one, other, preferred_element_type=jnp.float32)


def _forward(
    subscripts: str, one: Array, other: Array
) -> tuple[Array, tuple[Array, Array]]:
    return einsum(subscripts, one, other), (one, other)


def _backward(
    subscripts: str, arrays: tuple[Array, Array], gradient: Array
) -> tuple[Array, Array]:
    _, derivative = jax.vjp(functools.partial(jnp.einsum, subscripts), *arrays)
    return derivative(gradient.astype(arrays[0].dtype))


einsum.defvjp(_forward, _backward)
