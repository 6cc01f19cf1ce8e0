"""Small checkpoints, each parameter of which is made of one number."""

import pathlib
from collections.abc import Mapping

import numpy as np

from vaswani_jax.checkpoints import store

# Powers of two: no mean of some of them is the mean of others. As text, 8 is last.
VALUES = {8: 1.0, 16: 2.0, 128: 4.0, 1024: 8.0}
BEST = {16: 64.0}


def params(value: float) -> dict[str, dict[str, np.ndarray]]:
    """Return parameters made of a number."""
    kernel, bias = np.full((2, 3), value), np.full(3, -value)
    return {"dense": {"kernel": np.float32(kernel), "bias": np.float32(bias)}}


def save(
    directory: pathlib.Path,
    values: Mapping[int, float],
    *,
    keep: int = 9,
    vocabulary: str = "abc",
    **record: object,
) -> None:
    """Save a checkpoint of each step, with the parameters made of its value."""
    for step, value in values.items():
        items = {"params": params(value), "optimizer": {"count": np.int32(step)}}
        fields = {"vocabulary": vocabulary, **record}
        checkpoint = store.Checkpoint(step, items, fields)
        store.save(directory, checkpoint, keep=keep)


def value_of(checkpoint: store.Checkpoint) -> float:
    """Return the number that all parameters are made of."""
    dense = checkpoint.items["params"]["dense"]
    value = float(dense["kernel"][0, 0])
    expected = params(value)["dense"]
    for name in ("kernel", "bias"):
        np.testing.assert_array_equal(dense[name], expected[name], strict=True)
    return value
