"""Section 5.4: residual dropout, drawn from a hash of (key, position).

A counter-based hash inside the elementwise pass costs next to nothing, whereas jax's
default generator makes the random bits of dropout the most expensive part of a CPU
step. The masks' rate and independence are tested statistically.
"""

import zlib
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from vaswani_jax.core import parallel


def keep_mask(key: Array, shape: tuple[int, ...], *, rate: float) -> Bool[Array, "..."]:
    """Return True with probability 1 - rate, independently for every element and key.

    Hashes the element's index by a 32-bit avalanche mix (two multiplications, three
    shifts) that takes in the two words of the key at two depths.
    """
    # Deviation: jax.random is as random and far slower.
    first, second = jax.random.key_data(key).astype(jnp.uint32)[-2:]
    size = 1
    for length in shape:
        size *= length
    assert size < 2**32, "one dropout mask has fewer than 2^32 elements"
    bits = jax.lax.iota(jnp.uint32, size).reshape(shape)
    bits = (bits ^ first) * jnp.uint32(0x9E3779B1)
    bits = (bits ^ (bits >> 16) ^ second) * jnp.uint32(0x7FEB352D)
    bits = (bits ^ (bits >> 15)) * jnp.uint32(0x846CA68B)
    bits = bits ^ (bits >> 16)
    return bits >= jnp.uint32(min(round(rate * 2**32), 2**32 - 1))


class Dropout(nn.Module):
    """Zero with probability `rate`, otherwise x / (1 - rate)."""

    rate: float

    @nn.compact
    def __call__(
        self, x: Float[Array, "..."], *, deterministic: bool
    ) -> Float[Array, "..."]:
        """Drop elements of x; return x if `deterministic` or if the rate is 0."""
        if deterministic or self.rate == 0:
            return x
        mask = keep_mask(_module_key(self), x.shape, rate=self.rate)
        return jnp.where(mask, x / (1 - self.rate), jnp.zeros_like(x))


def _module_key(module: nn.Module) -> Array:
    """Return the key of a module in this step."""
    if parallel.on_cpu():
        return module.make_rng("dropout")
    # One key for all modules: the generator that would make one for each is many
    # instructions, and kernels, on single numbers.
    rng: Any = module.scope.rngs["dropout"]  # type: ignore[union-attr]
    path = repr((rng.suffix, module.path))
    return site_key(rng.rng, site=zlib.crc32(path.encode()))


def site_key(key: Array, *, site: int) -> Array:
    """Return the key of one of the places in a model that share a key.

    Args:
        key: That of the step.
        site: A number of 32 bits that no other place has.
    """
    first, second = jax.random.key_data(key).astype(jnp.uint32)[-2:]
    first = (first ^ jnp.uint32(site)) * jnp.uint32(0x9E3779B1)
    second = (second + jnp.uint32(site)) * jnp.uint32(0x85EBCA6B)
    return jax.random.wrap_key_data(jnp.stack([first, second]))
