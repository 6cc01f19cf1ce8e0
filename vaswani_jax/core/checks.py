"""What a value can be refused for: the message has the key, the value and the rule.

All raise ValueError.
"""

from typing import Any


def one_of(path: str, value: str, allowed: tuple[str, ...]) -> None:
    """Refuse a word that is none of those allowed."""
    if value not in allowed:
        raise ValueError(f"{path} must be one of {', '.join(allowed)}; got {value!r}")


def at_least(path: str, section: Any, minimum: int, keys: str) -> None:
    """Refuse numbers of a section that are below a minimum."""
    for key in keys.split():
        value = getattr(section, key)
        if not value >= minimum:
            raise ValueError(f"{path}.{key} must be at least {minimum}, got {value}")


def at_least_other(path: str, section: Any, key: str, other: str) -> None:
    """Refuse a number of a section that is below another of its numbers."""
    value, minimum = getattr(section, key), getattr(section, other)
    if value < minimum:
        raise ValueError(
            f"{path}.{key} must be at least {path}.{other} ({minimum}), got {value}"
        )


def rate(path: str, section: Any, keys: str) -> None:
    """Refuse numbers of a section that are no rates: in [0, 1)."""
    for key in keys.split():
        value = getattr(section, key)
        if not 0 <= value < 1:
            raise ValueError(f"{path}.{key} must be in [0, 1), got {value}")
