"""Sections 5 and 6: the paper's systems, as configs/ beside this package has them."""

import importlib
import pathlib
import sys
from typing import Any

from vaswani_jax.core import config, parsing

System = tuple[str, str]  # base or big; de or fr, the language that is translated into


def systems() -> dict[System, config.Config]:
    """Table 2's four systems of the paper.

    Raises:
        ImportError: The package is not where a clone of the repository has it.
    """
    return {
        (size, language): parsing.parse(_module(f"{size}_en{language}").get_config())
        for size in ("base", "big")
        for language in ("de", "fr")
    }


def rows(name: str) -> dict[str, config.Config]:
    """Table 3's rows as configs/NAME.py has them.

    Raises:
        ImportError: As `systems`.
    """
    module, names = _module(name), _module("table3").ROWS
    return {row: parsing.parse(module.get_config(row)) for row in names}


def _module(name: str) -> Any:
    """A module of configs/, wherever this is run."""
    root = str(pathlib.Path(__file__).parents[2])
    if root not in sys.path:
        sys.path.append(root)
    try:
        return importlib.import_module(f"configs.{name}")
    except ModuleNotFoundError as error:
        raise ImportError(
            f"{error}: report needs the repository, as git clone makes it"
        ) from None
