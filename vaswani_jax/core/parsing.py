"""A configuration file and its overrides, checked once into a `Config`."""

import dataclasses
import difflib
import math
import typing
from collections.abc import Mapping
from typing import Any, TypeVar

import ml_collections

from vaswani_jax.core import config, rules

Section = TypeVar("Section")


def parse(values: ml_collections.ConfigDict) -> config.Config:
    """The checked, frozen form of what a config file and its overrides say.

    Raises:
        ValueError: A key is unknown or missing, a value has the wrong type or is out
            of range, or two values exclude each other. The message has the key, the
            value and the rule.
    """
    parsed = _section(config.Config, values.to_dict(), "config")
    rules.check(parsed)
    return parsed


def _section(cls: type[Section], values: Mapping[str, Any], path: str) -> Section:
    hints = typing.get_type_hints(cls)
    for key in values:
        if key not in hints:
            close = difflib.get_close_matches(key, hints, n=1)
            hint = f"; did you mean {path}.{close[0]}?" if close else ""
            raise ValueError(
                f"unknown key {path}.{key}{hint} (known: {', '.join(hints)})"
            )
    arguments: dict[str, Any] = {}
    for key, kind in hints.items():
        if key not in values:
            raise ValueError(f"missing key {path}.{key}: give it a value")
        value = values[key]
        if dataclasses.is_dataclass(kind):
            if not isinstance(value, Mapping):
                raise ValueError(f"{path}.{key} must be a section, got {value!r}")
            arguments[key] = _section(typing.cast(type, kind), value, f"{path}.{key}")
        else:
            arguments[key] = _typed(value, kind, f"{path}.{key}")
    return cls(**arguments)


def _typed(value: Any, kind: type, path: str) -> Any:
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{path} must be finite, got {value}")
    if type(value) is not kind:
        raise ValueError(f"{path} must be of type {kind.__name__}, got {value!r}")
    return value
