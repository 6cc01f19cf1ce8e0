"""Section 5.1, the embedded corpus: a translation task that needs no download.

Both sides of a pair are the same dates, amounts and names, written in two locales by
the Unicode CLDR through the `babel` package.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from vaswani_jax.core import environment
from vaswani_jax.data.cldr import locale_lines

if TYPE_CHECKING:
    import babel

# Counts the changes to what the generator writes, for the fingerprint of the data.
RECIPE = 1
# So many lines in a row that were drawn before mean that there are hardly any others.
MOST_REPEATS = 10_000
# Of so many lines, one ought to be fit to be held out.
MOST_CANDIDATES = 200


def cldr_version() -> str:
    """The versions that decide the text, such as "babel 2.18.0, CLDR 47, recipe 1".

    Raises:
        ImportError: The package `babel` is not installed.
    """
    _require_babel()
    import babel
    from babel import core

    cldr = core.get_global("cldr").get("version", "unknown")
    return f"babel {babel.__version__}, CLDR {cldr}, recipe {RECIPE}"


def cldr_pairs(
    *,
    source_locale: str,
    target_locale: str,
    num_train: int,
    num_valid: int,
    num_test: int,
    seed: int,
) -> dict[str, list[tuple[str, str]]]:
    """Lines of localised text in two locales, all of whose sources differ.

    A source has one target: what could be translated in two ways is left out. The
    lines to validate and test on put together words and names that all occur in
    training; neither their sources nor their targets do.

    Args:
        source_locale: A locale of the CLDR, such as "en".
        target_locale: Another, such as "de" or "pt_BR".
        num_train: How many pairs to train on.
        num_valid: How many to validate on.
        num_test: How many to test on.
        seed: Decides the pairs, together with all of the above.

    Returns:
        Pairs (source, target) of each split: "train", "valid" and "test".

    Raises:
        ImportError: The package `babel` is not installed.
        ValueError: A locale is unknown, the two write alike, or there are not so many
            pairs.
    """
    _require_babel()
    for key, size, least in (
        ("num_train", num_train, 1),
        ("num_valid", num_valid, 0),
        ("num_test", num_test, 0),
    ):
        if size < least:
            raise ValueError(f"config.data.{key} must be at least {least}, got {size}")
    source = _load_locale(source_locale, key="source_locale")
    target = _load_locale(target_locale, key="target_locale")
    rng = random.Random(seed)
    corpus = locale_lines.corpus(source, target, rng)
    if all(
        piece.source == piece.target
        for piece in itertools.chain.from_iterable(corpus.pools.values())
    ):
        raise ValueError(
            "config.data.source_locale and config.data.target_locale must write "
            f"differently, got {source_locale!r} and {target_locale!r}"
        )
    num_held_out = num_valid + num_test
    if num_train + num_held_out > corpus.most_lines():
        raise _too_few(num_train, num_held_out, corpus.most_lines())
    train, held_out = _split(corpus, num_train, num_held_out, rng)
    return {
        "train": [(line.source, line.target) for line in train],
        "valid": [(line.source, line.target) for line in held_out[:num_valid]],
        "test": [(line.source, line.target) for line in held_out[num_valid:]],
    }


def _require_babel() -> None:
    try:
        import babel  # noqa: F401
    except ImportError as error:
        raise ImportError(
            f"the CLDR corpus needs babel: {environment.how_to_install('demo')}"
        ) from error


def _load_locale(identifier: str, *, key: str) -> babel.Locale:
    from babel import Locale, UnknownLocaleError, localedata

    # Babel fills in what a locale inherits inside tables that locales share: with
    # Japanese read first, French months are Japanese. So each reads its own tables.
    getattr(localedata, "_cache", {}).clear()
    problem = (
        f"config.data.{key} must be a locale of the CLDR, such as de or pt_BR, "
        f"got {identifier!r}"
    )
    try:
        locale = Locale.parse(identifier)
    except (UnknownLocaleError, TypeError, ValueError) as error:
        raise ValueError(problem) from error
    # This reads the tables, before another locale is read.
    if not locale.territories:
        raise ValueError(problem)
    return locale


def _split(
    corpus: locale_lines.Corpus, num_train: int, num_held_out: int, rng: random.Random
) -> tuple[list[locale_lines.Line], list[locale_lines.Line]]:
    """Lines to train on, and lines to hold out that training prepares for."""
    draws = corpus.draw(rng)
    lines: dict[str, locale_lines.Line | None] = {}
    num_candidates = 2 * num_held_out
    while True:
        drawn = _draw_into(lines, draws, num_lines=num_train + num_candidates)
        train, candidates = drawn[:num_train], drawn[num_train:]
        held_out = _prepared_for(train, candidates)
        if len(train) == num_train and len(held_out) >= num_held_out:
            return train, held_out[:num_held_out]
        if len(drawn) < num_train + num_candidates:
            raise _too_few(num_train, num_held_out, len(train) + len(held_out))
        if num_candidates > MOST_CANDIDATES * num_held_out:
            raise ValueError(
                f"config.data.num_train {num_train} prepares for only {len(held_out)} "
                f"of the {num_held_out} lines of num_valid + num_test; raise num_train"
            )
        num_candidates *= 2


def _draw_into(
    lines: dict[str, locale_lines.Line | None],
    draws: Iterator[locale_lines.Line],
    *,
    num_lines: int,
) -> list[locale_lines.Line]:
    """Draws until there are `num_lines` lines, by source; None is for two targets."""
    num_drawn = sum(line is not None for line in lines.values())
    repeats = 0
    while num_drawn < num_lines and repeats < MOST_REPEATS:
        line = next(draws)
        if line.source not in lines:
            lines[line.source] = line
            num_drawn += 1
            repeats = 0
            continue
        repeats += 1
        earlier = lines[line.source]
        if earlier is not None and earlier.target != line.target:
            lines[line.source] = None
            num_drawn -= 1
    return [line for line in lines.values() if line is not None]


def _prepared_for(
    train: Iterable[locale_lines.Line], candidates: Iterable[locale_lines.Line]
) -> list[locale_lines.Line]:
    """The candidates with only known atoms, put together to something unknown."""
    known = set().union(*(line.atoms() for line in train))
    targets = {line.target for line in train}
    prepared = []
    for line in candidates:
        is_new = line.is_combination() and line.target not in targets
        if is_new and line.atoms() <= known:
            targets.add(line.target)
            prepared.append(line)
    return prepared


def _too_few(num_train: int, num_held_out: int, num_lines: int) -> ValueError:
    return ValueError(
        f"config.data.num_train + num_valid + num_test must be at most the {num_lines} "
        f"pairs that these locales make, got {num_train + num_held_out}"
    )
