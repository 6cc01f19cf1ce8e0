"""Read a `Config`: from a config file and its overrides, or from a run's record."""

import dataclasses
import json
import pathlib
import typing
from collections.abc import Mapping
from typing import Any, TypeVar

import ml_collections

from vaswani_jax.core import config, errors, rules, seeds, suggestions, tensor_file

Section = TypeVar("Section")


def parse(values: ml_collections.ConfigDict) -> config.Config:
    """Return the checked, frozen form of what a config file and its overrides say.

    Raises:
        ValueError: A key is unknown or missing, a value has the wrong type or is out
            of range, or two values exclude each other. The message has the key, the
            value and the rule.
    """
    parsed = _section(config.Config, values.to_dict(), "")
    rules.check(parsed)
    return parsed


def load(workdir: pathlib.Path) -> config.Config:
    """Return the configuration that a run has recorded in its workdir.

    Args:
        workdir: See `read_record`.

    Raises:
        ValueError: config.json is missing or damaged, or a value is refused.
    """
    return parse(read_record(workdir))


def read_record(workdir: pathlib.Path) -> ml_collections.ConfigDict:
    """Return WORKDIR/config.json as a config file would: its values can be overridden.

    Settings that did not exist when it was recorded have the value of the behaviour
    then.

    Args:
        workdir: The run's directory, or FILE.safetensors, whose metadata are read.

    Raises:
        NoRunError: There is no config.json.
        ValueError: It is damaged, or of a model of transformers.
        FileNotFoundError: There is no FILE.safetensors.
    """
    if tensor_file.is_tensor_file(workdir):
        settings = tensor_file.open_file(workdir).value("settings")
        return ml_collections.ConfigDict(_unflatten(config.flatten_record(settings)))
    path = workdir / "config.json"
    try:
        record = dict(json.loads(path.read_text(encoding="utf-8")))
        recorded_values = config.flatten_record(record)
    except FileNotFoundError:
        no_config = f"{workdir} holds no run: it has no config.json"
        raise errors.NoRunError(seeds.why_no_run(workdir) or no_config) from None
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}") from None
    except (TypeError, ValueError) as error:
        raise ValueError(f"{path} is damaged: {error}") from None
    if "model_type" in record:
        raise ValueError(
            f"{workdir} holds a model of transformers, not a run: "
            "`vaswani import-marian DIR RUN` makes a run of a MarianMT model"
        )
    return ml_collections.ConfigDict(_unflatten(recorded_values))


def override(settings: config.Config, overrides: Mapping[str, Any]) -> config.Config:
    """Return the settings with some of their values changed.

    Args:
        settings: The settings to change.
        overrides: New values by dotted keys, such as "search.beam_size".

    Raises:
        ValueError: As `parse`.
    """
    if not overrides:
        return settings
    return parse(override_values(config.to_dict(settings), overrides))


def override_values(
    values: Mapping[str, Any], overrides: Mapping[str, Any]
) -> ml_collections.ConfigDict:
    """Return a configuration's values for `parse`, some of them changed.

    Raises:
        ValueError: There is no setting of that key.
    """
    sections = {setting.section for setting in config.SETTINGS.values()}
    for key in overrides:
        if key not in config.SETTINGS and key not in sections:
            hint = suggestions.suggest_setting(key)
            raise ValueError(f"unknown key config.{key}{hint}")
    flat = {**config.flatten(values), **overrides}
    return ml_collections.ConfigDict(_unflatten(flat))


def _unflatten(flat: Mapping[str, Any]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for key, value in flat.items():
        section, _, name = key.rpartition(".")
        target = values.setdefault(section, {}) if section else values
        if not isinstance(target, dict):
            raise ValueError(f"unknown key config.{key}: config.{section} is a value")
        target[name] = value
    return values


def _section(cls: type[Section], values: Mapping[str, Any], prefix: str) -> Section:
    """Return a section from values by the names of its fields.

    Args:
        cls: Of the section.
        values: Its values.
        prefix: Of its keys: "model." or "".
    """
    hints = typing.get_type_hints(cls)
    for key in values:
        if key not in hints:
            unknown = prefix + key
            raise ValueError(
                f"unknown key config.{unknown}{suggestions.suggest_setting(unknown)} "
                f"(known: {', '.join(hints)})"
            )
    arguments: dict[str, Any] = {}
    for name, kind in hints.items():
        key = prefix + name
        if name not in values:
            raise ValueError(f"missing key config.{key}: give it a value")
        value = values[name]
        if not dataclasses.is_dataclass(kind):
            arguments[name] = config.SETTINGS[key].parse(value)
        elif isinstance(value, Mapping):
            arguments[name] = _section(typing.cast(type, kind), value, f"{key}.")
        else:
            raise ValueError(f"config.{key} must be a section, got {value!r}")
    return cls(**arguments)
