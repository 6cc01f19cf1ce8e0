"""Section 3's parameters and vocabulary as they lie in a MarianMT directory."""

import importlib.util
import json
import pathlib
from typing import Any

import numpy as np

from vaswani_jax.core import extras

# The shared table under other names.
TIED = (
    "model.encoder.embed_tokens.weight",
    "model.decoder.embed_tokens.weight",
    "lm_head.weight",
)


def read_json(path: pathlib.Path, missing: Any = None) -> dict[str, Any]:
    """The object in a file, or `missing` if there is no file.

    Raises:
        FileNotFoundError: There is none, and nothing for that case.
        ValueError: The file is no JSON object.
    """
    if not path.exists():
        if missing is not None:
            return dict(missing)
        raise FileNotFoundError(
            f"{path.parent} has no {path.name}: it is no directory of a MarianMTModel "
            "and its MarianTokenizer"
        )
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(found, dict):
            raise ValueError("it is no JSON object")
        return found
    except ValueError as error:
        raise ValueError(f"{path} is damaged: {error}") from None


def names(directory: pathlib.Path, rows: int) -> list[str]:
    """How each of their ids is spelt, from vocab.json.

    Raises:
        FileNotFoundError: There is none.
        ValueError: It does not fit an embedding of so many rows.
    """
    path = directory / "vocab.json"
    found: dict[int, str] = {}
    for name, token in read_json(path).items():
        if type(token) is not int or not 0 <= token < rows:
            raise ValueError(
                f"{path}: ids must be from 0 to {rows - 1}, the rows of the embedding, "
                f"got {token!r} of {name!r}"
            )
        if token in found:
            raise ValueError(
                f"{path}: an id must have one spelling, got {found[token]!r} and "
                f"{name!r} of {token}"
            )
        found[token] = name
    if "<unk>" not in found.values():
        raise ValueError(f"{path} has no <unk>")
    return [found.get(token, f"<unused_{token}>") for token in range(rows)]


def tensors(directory: pathlib.Path) -> dict[str, np.ndarray]:
    """The weights by name, float32. Nothing in the files is executed.

    Raises:
        FileNotFoundError: There is no file of weights.
        ImportError: What reads it is not installed.
        ValueError: It is damaged.
    """
    safe, pickled = directory / "model.safetensors", directory / "pytorch_model.bin"
    if not safe.exists() and not pickled.exists():
        raise FileNotFoundError(
            f"{directory} has neither {safe.name} nor {pickled.name}"
        )
    path, needs = (safe, "safetensors") if safe.exists() else (pickled, "torch")
    if importlib.util.find_spec(needs) is None:
        how = extras.how_to_install("export")
        raise ImportError(f"{path} needs {needs}: {how}")
    try:
        if path == safe:
            import safetensors.numpy

            found = safetensors.numpy.load_file(path)
        else:
            import torch

            loaded = torch.load(path, map_location="cpu", weights_only=True)
            found = {name: value.float().numpy() for name, value in loaded.items()}
    except Exception as error:  # Both raise many kinds.
        reason = str(error).splitlines()[0][:300]
        raise ValueError(f"{path} is damaged: {reason}") from error
    found = {name: np.asarray(value, np.float32) for name, value in found.items()}
    for name, value in found.items():
        if not np.isfinite(value).all():
            raise ValueError(f"{path}: {name} has values that are not finite numbers")
    return found


def take_table(found: dict[str, np.ndarray], directory: pathlib.Path) -> np.ndarray:
    """The shared table, which lies under one name or several; they are taken out.

    Raises:
        ValueError: There is none, or there are several that differ.
    """
    names = [name for name in ("model.shared.weight", *TIED) if name in found]
    if not names:
        raise ValueError(f"the weights in {directory} have no model.shared.weight")
    tables = [found.pop(name) for name in names]
    for name, other in zip(names, tables, strict=True):
        if not np.array_equal(tables[0], other):
            raise ValueError(
                f"the weights in {directory} have another {name} than {names[0]}: "
                "one table serves source, target and softmax here (section 3.4)"
            )
    return tables[0]
