"""Pairs of the demo's text to train on, to validate and to test.

Both sides of a pair are the same dates, amounts and names in two locales.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from vaswani_jax.core import config, extras
from vaswani_jax.data.cldr.grammar import Grammar, Line, make_grammar

if TYPE_CHECKING:
    import babel

# Counts the changes of the generated text, for the fingerprint of the data.
RECIPE = 1
# After this many repeated lines in a row, the locales have hardly any other line.
MAX_REPEATS = 10_000
# Give up if fewer than one of this many lines can be held out.
MAX_CANDIDATES = 200


def cldr_version() -> str:
    """Return the versions that decide the text: "babel 2.18.0, CLDR 47, recipe 1".

    Raises:
        ImportError: The package `babel` is not installed.
    """
    _require_babel()
    import babel
    from babel import core

    cldr = core.get_global("cldr").get("version", "unknown")
    return f"babel {babel.__version__}, CLDR {cldr}, recipe {RECIPE}"


def cldr_pairs(
    data: config.DataConfig, *, seed: int
) -> dict[str, list[tuple[str, str]]]:
    """Return pairs of lines in two locales, each source once.

    A source has one target: what could be translated in two ways is left out. Lines to
    validate and test on combine words and names that all occur in training, to
    sources and targets that do not.

    Args:
        data: The locales, and the number of pairs of each split.
        seed: Decides the pairs, together with these settings.

    Returns:
        The (source, target) pairs of each split: "train", "valid" and "test".

    Raises:
        ImportError: The package `babel` is not installed.
        ValueError: A locale is unknown, both write alike, or they have too few pairs.
    """
    _require_babel()
    source = _load_locale(data.source_locale, key="source_locale")
    target = _load_locale(data.target_locale, key="target_locale")
    rng = random.Random(seed)
    grammar = make_grammar(source=source, target=target, rng=rng)
    if all(
        piece.source == piece.target
        for piece in itertools.chain.from_iterable(grammar.pools.values())
    ):
        raise ValueError(
            "config.data.source_locale and config.data.target_locale must write "
            f"differently, got {data.source_locale!r} and {data.target_locale!r}"
        )
    num_held_out = data.num_valid + data.num_test
    if data.num_train + num_held_out > grammar.max_lines():
        raise _too_few(data.num_train + num_held_out, maximum=grammar.max_lines())
    train, held_out = _split(
        grammar, num_train=data.num_train, num_held_out=num_held_out, rng=rng
    )
    valid, test = held_out[: data.num_valid], held_out[data.num_valid :]
    return {
        split: [(line.source, line.target) for line in lines]
        for split, lines in (("train", train), ("valid", valid), ("test", test))
    }


def _require_babel() -> None:
    try:
        import babel  # noqa: F401
    except ImportError as error:
        raise ImportError(
            f"the CLDR corpus needs babel: {extras.how_to_install('demo')}"
        ) from error


def _load_locale(identifier: str, *, key: str) -> babel.Locale:
    from babel import Locale, UnknownLocaleError, localedata

    # Babel fills in inherited names inside tables that locales share: after Japanese,
    # French months are Japanese. An empty cache makes each locale read its own tables.
    getattr(localedata, "_cache", {}).clear()
    problem = (
        f"config.data.{key} must be a locale of the CLDR, such as de or pt_BR, "
        f"got {identifier!r}"
    )
    try:
        locale = Locale.parse(identifier)
    except (UnknownLocaleError, TypeError, ValueError) as error:
        raise ValueError(problem) from error
    # This reads the tables before another locale does.
    if not locale.territories:
        raise ValueError(problem)
    return locale


def _split(
    grammar: Grammar, *, num_train: int, num_held_out: int, rng: random.Random
) -> tuple[list[Line], list[Line]]:
    """Return lines to train on, and lines to hold out that training prepares for."""
    draws = grammar.draw(rng)
    lines: dict[str, Line | None] = {}
    num_candidates = 2 * num_held_out
    while True:
        drawn = _draw_into(lines, draws, num_lines=num_train + num_candidates)
        train, candidates = drawn[:num_train], drawn[num_train:]
        held_out = _prepared_for(train, candidates)
        if len(train) == num_train and len(held_out) >= num_held_out:
            return train, held_out[:num_held_out]
        if len(drawn) < num_train + num_candidates:
            num_usable = len(train) + len(held_out)
            raise _too_few(num_train + num_held_out, maximum=num_usable)
        if num_candidates > MAX_CANDIDATES * num_held_out:
            raise ValueError(
                f"config.data.num_train {num_train} prepares for only {len(held_out)} "
                f"of the {num_held_out} lines of num_valid + num_test; raise num_train"
            )
        num_candidates *= 2


def _draw_into(
    lines: dict[str, Line | None],
    draws: Iterator[Line],
    *,
    num_lines: int,
) -> list[Line]:
    """Add drawn lines until there are `num_lines`, and return them.

    Args:
        lines: The lines by their sources; None for a source with two targets.
        draws: Random lines.
        num_lines: The number of lines to have.
    """
    num_drawn = sum(line is not None for line in lines.values())
    repeats = 0
    while num_drawn < num_lines and repeats < MAX_REPEATS:
        line = next(draws)
        if line.source not in lines:
            lines[line.source] = line
            num_drawn += 1
            repeats = 0
            continue
        repeats += 1
        first = lines[line.source]
        if first is not None and first.target != line.target:
            lines[line.source] = None
            num_drawn -= 1
    return [line for line in lines.values() if line is not None]


def _prepared_for(train: Iterable[Line], candidates: Iterable[Line]) -> list[Line]:
    """Return the candidates whose atoms training has, but not their targets."""
    train_atoms = set().union(*(line.atoms() for line in train))
    targets = {line.target for line in train}
    prepared = []
    for line in candidates:
        is_new = line.is_combination() and line.target not in targets
        if is_new and line.atoms() <= train_atoms:
            targets.add(line.target)
            prepared.append(line)
    return prepared


def _too_few(num_lines: int, *, maximum: int) -> ValueError:
    return ValueError(
        f"config.data.num_train + num_valid + num_test must be at most the {maximum} "
        f"pairs that these locales make, got {num_lines}"
    )
