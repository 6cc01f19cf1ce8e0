"""Layers of flax.linen that read their parameters at little cost."""

from collections.abc import Callable
from typing import Any

import flax.linen as nn
import numpy as np


class Reader:
    """A base of modules that reads a parameter without tracing its initialiser.

    Flax traces the initialiser of every parameter whenever a module is applied, for the
    shape alone: a third of the time to trace a search. Here the shape that the
    initialiser gets is compared instead.
    """

    def param(
        self, name: str, init_fn: Callable[..., Any], *init_args: Any, **options: Any
    ) -> Any:
        """Return a parameter, as `nn.Module.param`; the shape comes first."""
        module: Any = self
        if module.has_variable("params", name):
            value = module.get_variable("params", name)
            if np.shape(value) == tuple(init_args[0]):
                return value
        # Creates the parameter, or fails with the wrong shape.
        return super().param(name, init_fn, *init_args, **options)  # type: ignore[misc]


class Dense(Reader, nn.Dense):
    """A linear layer over the last axis."""


class DenseGeneral(Reader, nn.DenseGeneral):
    """A linear layer over some of the axes."""


class LayerNorm(Reader, nn.LayerNorm):
    """Layer normalisation over the last axis."""
