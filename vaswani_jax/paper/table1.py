"""Table 1: what types of layers cost, by formula, by counting and by the clock."""

import dataclasses
import functools
import logging
import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from vaswani_jax.core import config, memory, plurals
from vaswani_jax.model import attention
from vaswani_jax.paper import markdown

logger = logging.getLogger(__name__)

REPEATS = 5
MEMORY_SHARE = 0.5  # of the available memory, for the layer that takes the most
Layer = Callable[[Array], Array]


@dataclasses.dataclass(frozen=True)
class LayerType:
    """A row of table 1; n is the length, d the width, k the kernel, r the window."""

    name: str
    complexity: str
    sequential: str
    path: str

    def operations(self, *, n: int, d: int, k: int, r: int) -> int:
        """Return the term inside O(.) of the complexity."""
        terms = {
            "Self-Attention": n * n * d,
            "Recurrent": n * d * d,
            "Convolutional": k * n * d * d,
            "Self-Attention (restricted)": r * n * d,
        }
        return terms[self.name]

    def path_length(self, *, n: int, k: int, r: int) -> int:
        """Return the most layers, or steps, between any two positions.

        Layers of contiguous kernels would need n / k; table 1's are dilated.
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
        """Return how many steps have to wait for one another."""
        return n if self.name == "Recurrent" else 1


LAYER_TYPES = (
    LayerType("Self-Attention", "O(n^2 d)", "O(1)", "O(1)"),
    LayerType("Recurrent", "O(n d^2)", "O(n)", "O(n)"),
    LayerType("Convolutional", "O(k n d^2)", "O(1)", "O(log_k(n))"),
    LayerType("Self-Attention (restricted)", "O(r n d)", "O(1)", "O(n/r)"),
)
SELF_ATTENTION, RECURRENT = LAYER_TYPES[:2]


@dataclasses.dataclass(frozen=True)
class Costs:
    """Costs of the layers: by type of layer, a figure for each length.

    Attributes:
        lengths: n.
        d: Width.
        kernel: k.
        window: r.
        rows: Sentences that a layer is timed with.
        operations: The term inside O(.) of the complexity.
        steps: Turns of the program's loops, which wait for one another.
        seconds: The least time of `REPEATS` runs.
    """

    lengths: Sequence[int]
    d: int
    kernel: int
    window: int
    rows: int
    operations: Mapping[str, Sequence[float]]
    steps: Mapping[str, Sequence[int]]
    seconds: Mapping[str, Sequence[float]]

    def crossing(self, curves: Mapping[str, Sequence[float]]) -> float | None:
        """Return the length from which self-attention costs more than recurrence.

        Between two lengths it interpolates by logarithms. If the curves cross several
        times, the last crossing counts: the order stays from there on. Returns None if
        self-attention costs more at the first length and is never cheaper, or is still
        cheaper at the last length.
        """
        pairs = zip(curves[SELF_ATTENTION.name], curves[RECURRENT.name], strict=True)
        gaps = [math.log(a / b) for a, b in pairs]
        cheaper_indices = [index for index, gap in enumerate(gaps) if gap < 0]
        if not cheaper_indices:
            return float(self.lengths[0]) if gaps[0] == 0 else None
        index = cheaper_indices[-1]
        if index + 1 == len(gaps):
            return None
        share = gaps[index] / (gaps[index] - gaps[index + 1])
        low, high = math.log(self.lengths[index]), math.log(self.lengths[index + 1])
        return round(math.exp(low + share * (high - low)), 6)


def make_layer(
    name: str, *, model: config.ModelConfig, kernel: int, window: int
) -> Layer:
    """Return a jitted layer with random weights, as a function of `[rows, n, d]`.

    The self-attentions have the model's heads and, like the others, their projections
    (4 n d^2 operations of products that table 1 leaves out). The recurrent layer is
    Flax's LSTM; the restricted one looks `window // 2` positions to either side.
    """
    d_model = model.d_model
    module: nn.Module
    if name == RECURRENT.name:
        module = nn.RNN(nn.OptimizedLSTMCell(d_model))
    elif name == "Convolutional":
        module = nn.Conv(d_model, (kernel,))
    else:
        module = attention.MultiHeadAttention(model)
    run: Any = lambda module, x: module(x)  # noqa: E731
    if isinstance(module, attention.MultiHeadAttention):
        reach = None if name == SELF_ATTENTION.name else window // 2
        run = functools.partial(_attend, reach=reach)
    params = nn.init(run, module)(jax.random.key(0), jnp.zeros((1, 4, d_model)))
    return jax.jit(lambda x: nn.apply(run, module)(params, x))


def _attend(
    module: attention.MultiHeadAttention,
    x: Float[Array, "rows n d"],
    *,
    reach: int | None,
) -> Float[Array, "rows n d"]:
    """Return self-attention to the positions up to `reach` away, or to all.

    Takes operations linear in n: queries go in blocks of `reach`, each with the keys
    of its block and of the two neighbours, of which a mask leaves the band.
    """
    rows, n, d = x.shape
    keys_values = module.keys_values(x)
    if reach is None or reach >= n:
        mask = jnp.ones((1, 1, n, n), bool)
        return module(x, keys_values, mask=mask, deterministic=True)
    blocks = -(-n // reach)

    def split(array: Array, margin: int) -> Array:
        """Split into blocks, with `margin` empty positions at either end."""
        padding = [(0, 0)] * array.ndim
        padding[1] = (margin, blocks * reach - n + margin)
        return jnp.pad(array, padding).reshape(rows, -1, reach, *array.shape[2:])

    def with_neighbours(array: Array) -> Array:
        parts = split(array, reach)
        parts = jnp.concatenate([parts[:, :-2], parts[:, 1:-1], parts[:, 2:]], axis=2)
        return parts.reshape(rows * blocks, 3 * reach, *array.shape[2:])

    block = jnp.arange(blocks)[:, None, None] * reach
    query = block + jnp.arange(reach)[:, None]
    key = block + jnp.arange(3 * reach) - reach
    mask = (abs(query - key) <= reach) & (key >= 0) & (key < n)
    outputs = module(
        split(x, 0).reshape(rows * blocks, reach, d),
        jax.tree.map(with_neighbours, keys_values),
        mask=jnp.tile(mask, (rows, 1, 1))[:, None],
        deterministic=True,
    )
    return outputs.reshape(rows, blocks * reach, d)[:, :n]


def sequential_steps(layer: Layer, *, n: int, d_model: int) -> int:
    """Count the turns of a program's loops, which wait for one another.

    Loops that follow one another are taken to wait for one another.
    """
    program = jax.make_jaxpr(layer)(jnp.zeros((1, n, d_model)))
    return max(1, _count_turns(program.jaxpr))


def _count_turns(program: Any) -> int:
    total = 0
    for equation in program.eqns:
        inner = sum(
            _count_turns(getattr(parameter, "jaxpr", parameter))
            for parameter in equation.params.values()
            if hasattr(getattr(parameter, "jaxpr", parameter), "eqns")
        )
        if "length" in equation.params:  # a scan
            inner = equation.params["length"] * max(1, inner)
        total += inner
    return total


def sentence_bytes(layer: Layer, *, n: int, d_model: int) -> int:
    """Return the memory that a sentence takes in a layer's program, without weights."""
    x = jax.ShapeDtypeStruct((1, n, d_model), jnp.float32)
    sizes: Any = jax.jit(layer).lower(x).compile().memory_analysis()
    return int(
        sizes.temp_size_in_bytes
        + sizes.output_size_in_bytes
        + sizes.argument_size_in_bytes
    )


def time_layer(layer: Layer, *, rows: int, n: int, d_model: int) -> float:
    """Return the least seconds of `REPEATS` runs on random input, once compiled."""
    x: Float[Array, "rows n d"] = jax.random.normal(
        jax.random.key(1), (rows, n, d_model)
    )
    layer(x).block_until_ready()
    seconds = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        layer(x).block_until_ready()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def measure(
    lengths: Sequence[int],
    *,
    model: config.ModelConfig,
    kernel: int,
    window: int,
    rows: int,
) -> Costs:
    """Count and time every type of layer at every length.

    Times fewer sentences than `rows` if memory would not hold those of the longest.
    """
    d = model.d_model
    make = functools.partial(make_layer, model=model, kernel=kernel, window=window)
    needed_bytes = sentence_bytes(make(SELF_ATTENTION.name), n=max(lengths), d_model=d)
    fitting = max(1, int(MEMORY_SHARE * memory.available_bytes()) // needed_bytes)
    if fitting < rows:
        sentences = plurals.format_count(fitting, "sentence")
        logger.info(
            f"note: {sentences} instead of {rows}: one of {max(lengths):,} tokens "
            f"takes {needed_bytes / 2**20:,.0f} MiB"
        )
        rows = fitting
    operations, steps, seconds = {}, {}, {}
    for layer_type in LAYER_TYPES:
        name = layer_type.name
        logger.info(f"timing {name}")
        layer = make(name)
        operations[name] = [
            float(layer_type.operations(n=n, d=d, k=kernel, r=window)) for n in lengths
        ]
        steps[name] = [sequential_steps(layer, n=n, d_model=d) for n in lengths]
        seconds[name] = [time_layer(layer, rows=rows, n=n, d_model=d) for n in lengths]
    return Costs(lengths, d, kernel, window, rows, operations, steps, seconds)


def format_costs(costs: Costs) -> str:
    """Return the printed table, the counts and times, and where two rows cross."""
    printed_table = markdown.table(
        ["layer", "complexity", "sequential operations", "maximum path"],
        [dataclasses.astuple(layer_type) for layer_type in LAYER_TYPES],
    )
    rows = []
    for layer_type in LAYER_TYPES:
        name = layer_type.name
        for index, n in enumerate(costs.lengths):
            formula = layer_type.sequential_operations(n=n)
            steps = costs.steps[name][index]
            rows.append(
                [
                    name,
                    n,
                    f"{costs.operations[name][index]:.1e}",
                    formula,
                    steps,
                    markdown.verdict(float(steps), float(formula), tolerance=0.0),
                    layer_type.path_length(n=n, k=costs.kernel, r=costs.window),
                    f"{1e3 * costs.seconds[name][index]:.2f}",
                ]
            )
    head = ["layer", "n", "operations", "sequential", "in the program", "is"]
    measured_table = markdown.table([*head, "path", "milliseconds"], rows)
    sentences = plurals.format_count(costs.rows, "sentence")
    return (
        f"{printed_table}\n\nAt d = {costs.d}, k = {costs.kernel}, r = {costs.window}. "
        "Operations: the term inside O(.) of the complexity. Sequential: the steps "
        "that wait for one another, by the formula and counted in the program. Path: "
        "of the restricted layer 2 n / r, because a window of r reaches r / 2 to "
        f"either side. Time: of a layer for {sentences}, the least of {REPEATS}. "
        "tests/paper/test_table1.py proves that the programs' operations grow as the "
        "formulas say, and that signals pass as many layers.\n\n"
        f"{_format_crossings(costs)}\n\n{measured_table}"
    )


def _format_crossings(costs: Costs) -> str:
    def crossing(curves: Mapping[str, Sequence[float]]) -> str:
        n = costs.crossing(curves)
        return "not at these lengths" if n is None else f"n = {n:,.0f}"

    seconds = costs.seconds
    is_faster = [
        seconds[SELF_ATTENTION.name][index] < seconds[RECURRENT.name][index]
        for index, n in enumerate(costs.lengths)
        if n < costs.d
    ]
    verdict = "not run"
    if is_faster:
        verdict = "reproduced" if all(is_faster) else "differs"
    return (
        "Section 4: self-attention is faster than recurrence where n < d: "
        f"{verdict}. It costs more from, by the formula: {crossing(costs.operations)}; "
        f"measured: {crossing(seconds)}. (Table 1 leaves out factors that the clock "
        "sees: the products of an LSTM's gates are 8 n d^2, those of attention 2 n^2 d "
        "and, for its projections, 4 n d^2: equal at n = 2 d. The fewer the sentences, "
        "the later the crossing: each step of an LSTM reads all of its weights.)"
    )
