"""Annotations are checked while tests run: of axes, and all others."""

import sys

import beartype.roar
import jaxtyping
import numpy as np
import pytest

from tests import annotations
from vaswani_jax.core import config
from vaswani_jax.model import masks


def test_every_module_that_is_loaded_is_checked() -> None:
    loaders = {
        name: type(module.__loader__).__name__
        for name, module in sys.modules.items()
        if name.startswith("vaswani_jax.")
    }
    with_axes = set(annotations.with_axes())
    for name, loader in loaders.items():
        expected = "Jaxtyping" if name in with_axes else "BeartypeSourceFile"
        assert loader.lstrip("_") == f"{expected}Loader", name
    assert {config.__name__, masks.__name__} <= set(loaders)


def test_axes_that_do_not_fit_are_refused() -> None:
    queries, keys = np.ones((2, 3), np.int32), np.ones((4, 3), np.int32)
    with pytest.raises(jaxtyping.TypeCheckError, match="segment_mask"):
        masks.segment_mask(queries, keys)


def test_a_type_that_does_not_fit_is_refused() -> None:
    assert config.__name__ not in annotations.with_axes()
    with pytest.raises(beartype.roar.BeartypeCallHintViolation, match="flatten_record"):
        config.flatten_record([])
