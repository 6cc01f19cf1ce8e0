"""Products of sections 3.2 to 3.4: of rows, and with a result in float32."""

import functools
import math
from typing import Any

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


def of_rows(
    x: Float[Array, "..."],
    kernel: Float[Array, "..."],
    dimension_numbers: Any,
    precision: Any = None,
    **more: Any,
) -> Float[Array, "..."]:
    """`jax.lax.dot_general` of the last axes of x with the first of a kernel.

    By one product of two matrices: where there are several axes of rows, XLA for CPUs
    copies x and the derivative of the result, transposed, to get the kernel's.
    """
    ((axes, _), _) = dimension_numbers
    count = len(axes)
    last, first = tuple(range(x.ndim))[-count:], tuple(range(count))
    assert dimension_numbers == ((last, first), ((), ())), dimension_numbers
    size = math.prod(kernel.shape[:count])
    product = jax.lax.dot_general(
        x.reshape(-1, size),
        kernel.reshape(size, -1),
        (((1,), (0,)), ((), ())),
        precision=precision,
        **more,
    )
    return product.reshape(*x.shape[:-count], *kernel.shape[count:])
