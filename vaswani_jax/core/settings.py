"""Declare settings on dataclass fields, and check and describe values by them.

Parsing, `--help`, resumed runs and `report` read the declarations from
`core.config.SETTINGS`.
"""

import dataclasses
import math
import numbers
import typing
from collections.abc import Callable
from typing import Any, Literal

from vaswani_jax.core import paths

# What a value of each type is called, in a program's errors, too.
TYPE_NAMES = {
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    str: "a text",
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Setting:
    """The declaration of one setting.

    Attributes:
        key: The dotted key, as in `--config.KEY=VALUE`.
        type: int, float, bool or str.
        meaning: One line for people.
        symbol: The paper's symbol, if it is not the name.
        at_least: The smallest allowed value.
        above: A lower bound that is not allowed itself.
        at_most: The largest allowed value.
        below: An upper bound that is not allowed itself.
        choices: All allowed values; "tfds:NAME" stands for every text after "tfds:".
        not_empty: Whether the text must not be empty.
        is_path: Whether it names a file or a directory, whose ~ is the user's home.
        example: A value for the error of an empty text.
        for_source: The values of data.source for which the range holds; () for all.
        values: The allowed values in words, if `core.rules` checks them.
        needs: Keys of other settings. Unless one of these is True or above 0, this one
            must have its `legacy` value.
        changeable: Whether a run may resume with another value.
        legacy: The value of runs that were recorded before the setting existed.
        affects: What the value decides, so that it cannot be compared or reused under
            another one: prepared "data", a model's "outputs" beyond the shapes of its
            parameters, or the "scores" of a model.
        incidental: Whether it decides how or where a run computes, not what: `report`
            counts runs that differ in nothing else as repetitions.
        imported: Whether an imported model decides it, so that users cannot.
        canonical: Returns the text that runs record for the users' value, which may be
            of another type. Raises ValueError for a value that it cannot read.
        prepared_part: Returns the part of the value that prepared data depends on.
        may_replace: Returns whether a run may resume with another value although the
            setting is not changeable. It gets the recorded value, the new one, and the
            number of batches that the run has used.
        describe_change: Returns in words what differs between the recorded value and
            another one.
    """

    key: str
    type: type
    meaning: str
    symbol: str = ""
    at_least: int | float | None = None
    above: int | float | None = None
    at_most: int | float | None = None
    below: int | float | None = None
    choices: tuple[str, ...] = ()
    not_empty: bool = False
    is_path: bool = False
    example: str = "..."
    for_source: tuple[str, ...] = ()
    values: str = ""
    needs: tuple[str, ...] = ()
    changeable: bool = False
    legacy: int | float | str | None = None
    affects: Literal["", "data", "outputs", "scores"] = ""
    incidental: bool = False
    imported: bool = False
    canonical: Callable[[Any], Any] | None = None
    prepared_part: Callable[[Any], Any] | None = None
    may_replace: Callable[[Any, Any, int], bool] | None = None
    describe_change: Callable[[Any, Any], str] | None = None

    @property
    def section(self) -> str:
        """The part of the key before the dot; "" for the seed."""
        return self.key.rpartition(".")[0]

    @property
    def name(self) -> str:
        """The key without its section."""
        return self.key.rpartition(".")[2]

    @property
    def description(self) -> str:
        """The meaning, with the paper's symbol and the settings that it needs."""
        symbol = f" In the paper: {self.symbol}." if self.symbol else ""
        one_of = "one of " if len(self.needs) > 1 else ""
        needs = f" Needs {one_of}{', '.join(self.needs)}." if self.needs else ""
        return self.meaning + symbol + needs

    @property
    def range(self) -> str:
        """The allowed values in words; "" if the type says all.

        >>> Setting(key="a.b", type=float, meaning="", at_least=0, below=1).range
        'in [0, 1)'
        """
        sources = f" for {', '.join(self.for_source)}" if self.for_source else ""
        return self._range + sources

    @property
    def range_depends_on_source(self) -> bool:
        """True if `core.data_rules` checks the range, once data.source is checked."""
        return bool(self.for_source) or self.not_empty

    @property
    def _range(self) -> str:
        if self.values or self.choices:
            return self.values or f"one of {', '.join(self.choices)}"
        if self.not_empty:
            return "not empty"
        lowest = self.above if self.at_least is None else self.at_least
        highest = self.below if self.at_most is None else self.at_most
        if lowest is None:
            return ""
        if highest is None:
            return f"at least {lowest}" if self.above is None else "positive"
        left = "[" if self.above is None else "("
        right = "]" if self.below is None else ")"
        return f"in {left}{lowest}, {highest}{right}"

    def parse(self, value: Any) -> Any:
        """Return the value in the setting's type.

        Raises:
            ValueError: The type is wrong, or the value is out of a range that does not
                depend on data.source. The message has the key, the value and the rule.
        """
        if self.canonical:
            value = self.canonical(value)
        # Numbers of NumPy, too.
        number = {float: numbers.Real, int: numbers.Integral}.get(self.type)
        if number and isinstance(value, number) and not isinstance(value, bool):
            value = self.type(value)
        if isinstance(value, float) and not math.isfinite(value):
            raise ValueError(f"config.{self.key} must be finite, got {value}")
        if type(value) is not self.type:
            kind = TYPE_NAMES[self.type]
            raise ValueError(f"config.{self.key} must be {kind}, got {value!r}")
        if self.is_path:
            value = self._expand_home(str(value))
        if not self.range_depends_on_source:
            self.check_range(value)
        return value

    def check_range(self, value: Any) -> None:
        """Refuse a value out of range.

        Raises:
            ValueError: The message has the key, the value and the rule.
        """
        if self._is_in_range(value):
            return
        if self.not_empty:
            raise ValueError(
                f"config.{self.key} must not be empty: give it a value, such as "
                f"--config.{self.key}={self.example}"
            )
        stop = ";" if self.choices else ","
        raise ValueError(f"config.{self.key} must be {self._range}{stop} got {value!r}")

    def _expand_home(self, value: str) -> str:
        try:
            return paths.expand_home(value)
        except ValueError as error:
            raise ValueError(f"config.{self.key}: {error}") from None

    def _is_in_range(self, value: Any) -> bool:
        return (
            (
                not self.choices
                or any(_matches(value, choice) for choice in self.choices)
            )
            and (not self.not_empty or bool(value))
            and (self.at_least is None or value >= self.at_least)
            and (self.above is None or value > self.above)
            and (self.at_most is None or value <= self.at_most)
            and (self.below is None or value < self.below)
        )


def _matches(value: str, choice: str) -> bool:
    prefix, colon, _ = choice.partition(":")
    return value.startswith(prefix + colon) if colon else value == choice


def setting(meaning: str, **properties: Any) -> Any:
    """Declare a setting: the right-hand side of a field of a configuration's class.

    Args:
        meaning: One line for people.
        **properties: Attributes of `Setting`; key and type are those of the field.
    """
    return dataclasses.field(metadata={"meaning": meaning, **properties})


def declared(cls: type, prefix: str = "") -> dict[str, Setting]:
    """Return the settings of a class and of the sections in it, by dotted key."""
    hints = typing.get_type_hints(cls)
    settings: dict[str, Setting] = {}
    for field in dataclasses.fields(cls):
        kind = hints[field.name]
        if dataclasses.is_dataclass(kind):
            settings |= declared(typing.cast(type, kind), f"{field.name}.")
        else:
            key = prefix + field.name
            settings[key] = Setting(key=key, type=kind, **field.metadata)
    return settings
