"""Table 1: its formulas beside what is found in this code's layers and by the clock."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence

from vaswani_jax.core import config, memory
from vaswani_jax.paper import layers, runs

REPEATS = 5
MEMORY_SHARE = 0.5  # of what is available, for the layer that takes the most


@dataclasses.dataclass(frozen=True)
class Costs:
    """What layers cost at several lengths: by kind of layer, a value for each length.

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

    def crossing(self, values: Mapping[str, Sequence[float]]) -> float | None:
        """Where self-attention begins to cost more than recurrence; None if nowhere."""
        attention, recurrent = (list(values[kind.name]) for kind in layers.TABLE1[:2])
        return layers.crossing(list(self.lengths), one=attention, other=recurrent)


def measure(
    lengths: Sequence[int],
    *,
    model: config.ModelConfig,
    kernel: int,
    window: int,
    rows: int,
    say: Callable[[str], None],
) -> Costs:
    """Count and time every kind of layer at every length.

    With fewer sentences than `rows` where memory would not hold those of the longest.
    """
    d = model.d_model
    attention = layers.layer(
        layers.TABLE1[0].name, model=model, kernel=kernel, window=window
    )
    needed = layers.memory(attention, n=max(lengths), d_model=d)
    fitting = max(1, int(MEMORY_SHARE * memory.available_bytes()) // needed)
    if fitting < rows:
        say(
            f"note: {fitting} sentence(s) instead of {rows}: one of {max(lengths):,} "
            f"tokens takes {needed / 2**20:,.0f} MiB"
        )
        rows = fitting
    operations, steps, seconds = {}, {}, {}
    for kind in layers.TABLE1:
        say(f"timing {kind.name}")
        run = layers.layer(kind.name, model=model, kernel=kernel, window=window)
        operations[kind.name] = [
            float(kind.operations(n=n, d=d, k=kernel, r=window)) for n in lengths
        ]
        steps[kind.name] = [
            layers.sequential_steps(run, n=n, d_model=d) for n in lengths
        ]
        seconds[kind.name] = [
            layers.seconds(run, rows=rows, n=n, d_model=d, repeats=REPEATS)
            for n in lengths
        ]
    return Costs(lengths, d, kernel, window, rows, operations, steps, seconds)


def text(costs: Costs) -> str:
    """The printed table, what was found of it, and where two of its rows cross."""
    printed = runs.markdown(
        ["layer", "complexity", "sequential operations", "maximum path"],
        [
            [kind.name, kind.complexity, kind.sequential, kind.path]
            for kind in layers.TABLE1
        ],
    )
    found = []
    for kind in layers.TABLE1:
        for index, n in enumerate(costs.lengths):
            formula = kind.sequential_operations(n=n)
            steps = costs.steps[kind.name][index]
            found.append(
                [
                    kind.name,
                    n,
                    f"{costs.operations[kind.name][index]:.1e}",
                    formula,
                    steps,
                    runs.verdict(float(steps), float(formula), tolerance=0.0),
                    kind.path_length(n=n, k=costs.kernel, r=costs.window),
                    f"{1e3 * costs.seconds[kind.name][index]:.2f}",
                ]
            )
    head = ["layer", "n", "operations", "sequential", "in the program", "is"]
    measured = runs.markdown([*head, "path", "milliseconds"], found)
    return (
        f"{printed}\n\nAt d = {costs.d}, k = {costs.kernel}, r = {costs.window}: the "
        "term inside O(.) of the complexity; the steps that wait for one another, by "
        "the formula and as found in the program; the path (of the restricted layer 2 "
        "n / r: a window of r reaches r / 2 to either side); the time of a layer for "
        f"{costs.rows} sentence(s), the least of {REPEATS}. That the programs' "
        "operations grow as the formulas say, and that signals pass as many layers, "
        f"tests/paper/test_layers.py proves.\n\n{_crossings(costs)}\n\n"
        f"{measured}"
    )


def _crossings(costs: Costs) -> str:
    def told(values: Mapping[str, Sequence[float]]) -> str:
        where = costs.crossing(values)
        return "not at these lengths" if where is None else f"n = {where:,.0f}"

    attention, recurrent = (costs.seconds[kind.name] for kind in layers.TABLE1[:2])
    short = [index for index, n in enumerate(costs.lengths) if n < costs.d]
    faster = all(attention[index] < recurrent[index] for index in short)
    verdict = ("reproduced" if faster else "differs") if short else "not run"
    return (
        "Section 4: self-attention is faster than recurrence where n < d: "
        f"{verdict}. It costs more from, by the formula: {told(costs.operations)}; "
        f"measured: {told(costs.seconds)}. (What is timed has what table 1 leaves out: "
        "the products of an LSTM's gates are 8 n d^2, those of attention 2 n^2 d and, "
        "for its projections, 4 n d^2: equal at n = 2 d. The fewer the sentences, the "
        "later: a step of an LSTM reads all of its weights for each of them.)"
    )
