"""Freeze parameters by patterns of their paths, for fine-tuning."""

import fnmatch
import math
from collections.abc import Sequence
from typing import Any

import flax.traverse_util
import jax

from vaswani_jax.core import config, suggestions, types
from vaswani_jax.model import transformer


def split_patterns(frozen: str) -> list[str]:
    """Return the patterns of `optimizer.frozen`.

    >>> split_patterns("encoder/*, embedding/*")
    ['encoder/*', 'embedding/*']
    """
    return [pattern.strip() for pattern in frozen.split(",") if pattern.strip()]


def match_paths(paths: Sequence[str], frozen: str) -> set[str]:
    """Return the paths that a pattern matches; `*` stands for any text, `/` included.

    Raises:
        ValueError: There is no pattern, one matches no path, or all paths match.

    >>> match_paths(["encoder/norm/scale", "embedding/embedding"], "enc*")
    {'encoder/norm/scale'}
    """
    matches: set[str] = set()
    if not split_patterns(frozen):
        raise ValueError(
            f"config.optimizer.frozen={frozen!r} has no pattern: give patterns of "
            "paths, separated by commas, such as encoder/*, or leave it empty"
        )
    for pattern in split_patterns(frozen):
        matched = {path for path in paths if fnmatch.fnmatchcase(path, pattern)}
        if not matched:
            raise ValueError(
                f"config.optimizer.frozen: no parameter's path matches {pattern!r}"
                f"{suggestions.suggest(pattern, _possible_patterns(paths))}"
            )
        matches |= matched
    if len(matches) == len(paths):
        raise ValueError(
            f"config.optimizer.frozen={frozen} freezes all parameters: leave some out"
        )
    return matches


def _possible_patterns(paths: Sequence[str]) -> list[str]:
    """Return all paths, and the patterns of all that lies in a module."""
    modules = {
        "/".join(path.split("/")[:depth])
        for path in paths
        for depth in range(1, path.count("/") + 1)
    }
    return [*sorted(f"{module}/*" for module in modules), *paths]


def frozen_mask(settings: config.Config) -> Any:
    """Return a tree of the parameters' structure: True where one is frozen.

    Raises:
        ValueError: As `match_paths`.
    """
    # The paths depend on how vocabularies are shared, not on their sizes.
    sizes = settings.data.planned_vocab_size
    paths = list(transformer.param_shapes(settings.model, sizes))
    frozen = match_paths(paths, settings.optimizer.frozen)
    return flax.traverse_util.unflatten_dict(
        {path: path in frozen for path in paths}, sep="/"
    )


def frozen_embeddings(settings: config.Config) -> list[str]:
    """Return the paths of embeddings that are frozen.

    Raises:
        ValueError: As `match_paths`.
    """
    if not settings.optimizer.frozen:
        return []
    mask = flax.traverse_util.flatten_dict(frozen_mask(settings), sep="/")
    return [
        path for path in mask if path.endswith("embedding/embedding") and mask[path]
    ]


def check(settings: config.Config) -> None:
    """Refuse a pattern that matches no parameter, and patterns that freeze all.

    Raises:
        ValueError: As `match_paths`.
    """
    if settings.optimizer.frozen:
        frozen_mask(settings)


def stop_gradients(settings: config.Config, params: Any) -> Any:
    """Return the parameters with no gradient for those that are frozen."""
    if not settings.optimizer.frozen:
        return params
    return jax.tree.map(
        lambda frozen, leaf: jax.lax.stop_gradient(leaf) if frozen else leaf,
        frozen_mask(settings),
        params,
    )


def describe(settings: config.Config, *, vocab_size: types.VocabSize) -> str:
    """Return how many parameters are frozen; "" if there are no patterns."""
    if not settings.optimizer.frozen:
        return ""
    shapes = transformer.param_shapes(settings.model, vocab_size)
    frozen = match_paths(list(shapes), settings.optimizer.frozen)
    sizes = {path: math.prod(shape) for path, shape in shapes.items()}
    total = sum(sizes[path] for path in frozen)
    return (
        f"frozen: {total:,} of {sum(sizes.values()):,} parameters, in {len(frozen)} of "
        f"{len(sizes)} arrays"
    )
