"""Table 1: what kinds of layers cost, by formula and by the clock."""

import dataclasses
import math
import time
from collections.abc import Callable
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from vaswani_jax.core import config
from vaswani_jax.model import attention

Layer = Callable[[Array], Array]


@dataclasses.dataclass(frozen=True)
class Kind:
    """A row of table 1; n is the length, d the width, k the kernel, r the window."""

    name: str
    complexity: str
    sequential: str
    path: str

    def operations(self, *, n: int, d: int, k: int, r: int) -> int:
        """The term inside O(.) of the complexity."""
        terms = {
            "Self-Attention": n * n * d,
            "Recurrent": n * d * d,
            "Convolutional": k * n * d * d,
            "Self-Attention (restricted)": r * n * d,
        }
        return terms[self.name]

    def path_length(self, *, n: int, k: int, r: int) -> int:
        """Layers, or steps, that a signal between any two positions passes, at most.

        Of layers of contiguous kernels it is n / k; table 1's are dilated.
        """
        lengths = {
            "Self-Attention": 1,
            "Recurrent": n,
            "Convolutional": max(1, math.ceil(round(math.log(n, k), 9))),
            # A neighbourhood of r around a position reaches r / 2 to either side.
            "Self-Attention (restricted)": max(1, math.ceil((n - 1) / (r // 2))),
        }
        return lengths[self.name]

    def sequential_operations(self, *, n: int) -> int:
        """Steps that cannot be made at the same time."""
        return n if self.name == "Recurrent" else 1


TABLE1 = (
    Kind("Self-Attention", "O(n^2 d)", "O(1)", "O(1)"),
    Kind("Recurrent", "O(n d^2)", "O(n)", "O(n)"),
    Kind("Convolutional", "O(k n d^2)", "O(1)", "O(log_k(n))"),
    Kind("Self-Attention (restricted)", "O(r n d)", "O(1)", "O(n/r)"),
)


def layer(name: str, *, model: config.ModelConfig, kernel: int, window: int) -> Layer:
    """One layer of a kind, as a function of `[rows, n, d]`, jitted with its weights.

    The self-attentions have the paper's heads and, as the others, their projections
    (4 n d^2 operations of products that table 1 leaves out); the recurrent one is
    Flax's LSTM, the restricted one looks `window // 2` positions to either side.
    """
    d_model = model.d_model
    if name == "Recurrent":
        module: nn.Module = nn.RNN(nn.OptimizedLSTMCell(d_model))
        return _bound(module, d_model)
    if name == "Convolutional":
        return _bound(nn.Conv(d_model, (kernel,)), d_model)
    restricted = name != "Self-Attention"
    module = attention.MultiHeadAttention(model)
    return _attention(module, d_model, window if restricted else None)


def _bound(module: nn.Module, d_model: int) -> Layer:
    params = module.init(jax.random.key(0), jnp.zeros((1, 4, d_model)))
    return jax.jit(lambda x: module.apply(params, x))


def _attention(
    module: attention.MultiHeadAttention, d_model: int, window: int | None
) -> Layer:
    def attend(module: attention.MultiHeadAttention, x: Array) -> Array:
        seen = module.keys_values(x)
        if window is None or window // 2 >= x.shape[1]:
            mask = jnp.ones((1, 1, x.shape[1], x.shape[1]), bool)
            return module(x, seen, mask, deterministic=True)
        return _banded(module, x, seen, window // 2)

    params = nn.init(attend, module)(jax.random.key(0), jnp.zeros((1, 4, d_model)))
    return jax.jit(lambda x: nn.apply(attend, module)(params, x))


def _banded(
    module: attention.MultiHeadAttention,
    x: Float[Array, "rows n d"],
    seen: attention.KeysValues,
    reach: int,
) -> Float[Array, "rows n d"]:
    """Attention to the positions up to `reach` away, in operations linear in n.

    Queries go in blocks of `reach`, each with the keys of its own block and of its
    two neighbours, of which a mask leaves the band.
    """
    rows, n, width = x.shape
    blocks = -(-n // reach)

    def split(value: Array, before: int) -> Array:
        """Blocks, with `before` positions of nothing added at either end."""
        padding = [(0, 0)] * value.ndim
        padding[1] = (before, blocks * reach - n + before)
        return jnp.pad(value, padding).reshape(rows, -1, reach, *value.shape[2:])

    def beside(value: Array) -> Array:
        own = split(value, reach)
        found = jnp.concatenate([own[:, :-2], own[:, 1:-1], own[:, 2:]], axis=2)
        return found.reshape(rows * blocks, 3 * reach, *value.shape[2:])

    block = jnp.arange(blocks)[:, None, None] * reach
    query = block + jnp.arange(reach)[:, None]
    key = block + jnp.arange(3 * reach) - reach
    mask = (abs(query - key) <= reach) & (key >= 0) & (key < n)
    found = module(
        split(x, 0).reshape(rows * blocks, reach, width),
        jax.tree.map(beside, seen),
        jnp.tile(mask, (rows, 1, 1))[:, None],
        deterministic=True,
    )
    return found.reshape(rows, blocks * reach, width)[:, :n]


def sequential_steps(run: Layer, *, n: int, d_model: int) -> int:
    """Steps of a layer's program that wait for one another: the turns of its loops.

    Loops that follow one another are taken to wait for one another.
    """
    program = jax.make_jaxpr(run)(jnp.zeros((1, n, d_model)))
    return max(1, _turns(program.jaxpr))


def _turns(program: Any) -> int:
    total = 0
    for equation in program.eqns:
        inner = sum(
            _turns(getattr(value, "jaxpr", value))
            for value in equation.params.values()
            if hasattr(getattr(value, "jaxpr", value), "eqns")
        )
        if "length" in equation.params:  # a scan
            inner = equation.params["length"] * max(1, inner)
        total += inner
    return total


def memory(run: Layer, *, n: int, d_model: int) -> int:
    """Bytes that a sentence takes in a layer's program, beside the weights."""
    x = jax.ShapeDtypeStruct((1, n, d_model), jnp.float32)
    found: Any = jax.jit(run).lower(x).compile().memory_analysis()
    sizes = (found.temp_size_in_bytes, found.output_size_in_bytes)
    return int(sum(sizes) + found.argument_size_in_bytes)


def seconds(run: Layer, *, rows: int, n: int, d_model: int, repeats: int) -> float:
    """The least time of several runs on random input, after one that compiles."""
    x: Float[Array, "rows n d"] = jax.random.normal(
        jax.random.key(1), (rows, n, d_model)
    )
    run(x).block_until_ready()
    spent = []
    for _ in range(repeats):
        begun = time.perf_counter()
        run(x).block_until_ready()
        spent.append(time.perf_counter() - begun)
    return min(spent)


def crossing(
    lengths: list[int], *, one: list[float], other: list[float]
) -> float | None:
    """The length from which on `one` takes longer than `other`, between measurements
    by their logarithms; None if that is before or beyond them.

    >>> crossing([128, 256, 512], one=[1.0, 4.0, 16.0], other=[2.0, 4.0, 8.0])
    256.0
    """
    gaps = [math.log(a / b) for a, b in zip(one, other, strict=True)]
    for index in range(1, len(gaps)):
        before, after = gaps[index - 1], gaps[index]
        if before < 0 <= after:
            share = before / (before - after)
            low, high = math.log(lengths[index - 1]), math.log(lengths[index])
            return round(math.exp(low + share * (high - low)), 6)
    return None
