"""Read JSON objects, with errors that say where a text is no JSON and why."""

import json
import pathlib
import sys
from typing import Any

from vaswani_jax.data import text_files


def parse(text: str) -> dict[str, Any]:
    """Return the JSON object of a line.

    Raises:
        ValueError: It has none; the message has the column and the rule.
    """
    rule = "every line must be a JSON object"
    try:
        value = _load(text)
    except json.JSONDecodeError as error:
        reason = f"no JSON ({error.msg} at column {error.colno})"
        raise ValueError(f"{reason}; {rule}") from None
    if not isinstance(value, dict):
        raise ValueError(rule)
    return value


def read(path: pathlib.Path) -> dict[str, Any]:
    """Return the JSON object of a file.

    Raises:
        ValueError: It has none; the message has the file, the line and the rule.
        OSError: The file cannot be read.
    """
    text = "\n".join(text_files.read_lines(path))
    try:
        value = _load(text)
    except json.JSONDecodeError as error:
        reason = f"no JSON ({error.msg} at column {error.colno})"
        raise ValueError(f"{path}, line {error.lineno}: {reason}") from None
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    if not isinstance(value, dict):
        raise ValueError(f"{path} must be a JSON object, got {text.strip()[:40]!r}")
    return value


def _load(text: str) -> Any:
    """Return the value of a text in JSON.

    Raises:
        JSONDecodeError: It is no JSON.
        ValueError: Python cannot read it.
    """
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        raise
    except RecursionError:
        raise ValueError("JSON nested too deep") from None
    except ValueError:  # Python refuses to parse it.
        limit = sys.get_int_max_str_digits()
        raise ValueError(f"a number of over {limit:,} digits") from None
