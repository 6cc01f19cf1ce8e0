"""The settings of table 2's systems and table 3's rows, from the presets."""

from vaswani_jax.core import config, parsing, presets

SystemName = tuple[str, str]  # "base" or "big", and the target language


def systems() -> dict[SystemName, config.Config]:
    """Return table 2's four systems of the paper."""
    return {
        (size, language): _settings(f"{size}_en{language}")
        for size in ("base", "big")
        for language in ("de", "fr")
    }


def rows(name: str) -> dict[str, config.Config]:
    """Return table 3's rows as the preset "table3" or "table3_small" has them."""
    return {
        row: _settings(f"{name}:{row}") for row in presets.load_module("table3").ROWS
    }


def _settings(name: str) -> config.Config:
    return parsing.parse(presets.load(*presets.find(name)))
