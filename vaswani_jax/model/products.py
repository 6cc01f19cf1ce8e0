"""Matrix products of sections 3.2 to 3.4, in the form that computes fastest."""

import functools
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from vaswani_jax.core import parallel


def precision_of(*arrays: Float[Array | np.ndarray, "..."]) -> jax.lax.Precision | None:
    """Return the precision at which a product of float32 arrays is float32's.

    By default TPUs round float32 to bfloat16 before they multiply, and GPUs to TF32.

    Returns:
        None, the default, for arrays of another type and on CPUs.
    """
    is_float32 = all(array.dtype == jnp.float32 for array in arrays)
    if parallel.on_cpu() or not is_float32:
        return None
    return jax.lax.Precision.HIGHEST


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def einsum(
    subscripts: str,
    left: Float[Array | np.ndarray, "..."],
    right: Float[Array | np.ndarray, "..."],
) -> Float[Array, "..."]:
    """Return `jnp.einsum` of two arrays of one dtype, accumulated in float32.

    The products of the derivative use the dtype of the arrays. JAX's own derivative
    would use float32, at half the rate or less where the arrays are bfloat16.

    Args:
        subscripts: As for `jnp.einsum`.
        left: The first array.
        right: The second array.
    """
    return jnp.einsum(
        subscripts,
        left,
        right,
        precision=precision_of(left, right),
        preferred_element_type=jnp.float32,
    )


def _forward(
    subscripts: str, left: Array, right: Array
) -> tuple[Array, tuple[Array, Array]]:
    return einsum(subscripts, left, right), (left, right)


def _backward(
    subscripts: str, arrays: tuple[Array, Array], gradient: Array
) -> tuple[Array, Array]:
    precision = precision_of(*arrays)
    _, derivative = jax.vjp(
        functools.partial(jnp.einsum, subscripts, precision=precision), *arrays
    )
    return derivative(gradient.astype(arrays[0].dtype))


einsum.defvjp(_forward, _backward)


def dot_general_2d(
    x: Float[Array, "..."],
    kernel: Float[Array, "..."],
    dimension_numbers: Any,
    precision: Any = None,
    **options: Any,
) -> Float[Array, "..."]:
    """Contract the last axes of x with the first of a kernel, as two matrices.

    Stands in for `jax.lax.dot_general`. With several axes of rows, XLA for CPUs copies
    and transposes x and the result's derivative to get the derivative of the kernel.
    Accelerators would copy x to merge its axes: there it is `jax.lax.dot_general`, if
    x has several axes of rows.
    """
    precision = precision or precision_of(x, kernel)
    has_rows_alone = x.ndim == 1 + len(dimension_numbers[0][0])
    if not (parallel.on_cpu() or has_rows_alone):
        return jax.lax.dot_general(
            x, kernel, dimension_numbers, precision=precision, **options
        )
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
        **options,
    )
    if parallel.on_tpu() and kernel.ndim > count + 1:
        # Else XLA gives the product the axes of the heads, and copies it to merge them.
        product = jax.lax.optimization_barrier(product)
    return product.reshape(*x.shape[:-count], *kernel.shape[count:])
