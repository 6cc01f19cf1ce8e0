"""Costs of table 1's layers as a report measures them, for tests."""

from vaswani_jax.paper import table1
from vaswani_jax.paper.table1 import Costs

LENGTHS = (8, 16)


def costs_of(*, recurrence=2.0, steps=None):
    """Return costs of layers that take a second each, but for the recurrence."""
    names = [layer.name for layer in table1.LAYER_TYPES]
    seconds = {name: [1.0, 1.0] for name in names}
    seconds["Recurrent"] = [recurrence, recurrence]
    counted = {
        layer.name: [layer.sequential_operations(n=n) for n in LENGTHS]
        for layer in table1.LAYER_TYPES
    }
    return Costs(LENGTHS, 512, 3, 64, 1, seconds, counted | (steps or {}), seconds)
