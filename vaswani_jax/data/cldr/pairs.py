"""Pairs of the demo's text to train on, to validate and to test.

Both sides of a pair are the same dates, amounts and names in two locales.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterable, Iterator, Sequence, Set
from fractions import Fraction
from typing import TYPE_CHECKING

from vaswani_jax.core import config, extras, languages
from vaswani_jax.data import mixture
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

    With several target locales, each has an equal share of the pairs, in random order;
    a source begins with the tag of its target locale. What is held out for one locale
    is the source of no training pair of another.

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
    locales = languages.target_locales(data)
    shares = [
        mixture.divide_proportionally(number, [Fraction(1)] * len(locales))
        for number in (data.num_train, data.num_valid, data.num_test)
    ]
    corpora = []
    for locale, num_train, num_valid, num_test in zip(locales, *shares, strict=True):
        grammar, draws = _load_grammar(data.source_locale, locale, seed=seed)
        corpora.append(
            _Corpus(
                grammar=grammar,
                draws=draws,
                num_train=num_train,
                num_held_out=num_valid + num_test,
                description=f" for the target locale {locale}" if locales[1:] else "",
            )
        )
    splits: dict[str, list[tuple[str, str]]] = {"train": [], "valid": [], "test": []}
    for locale, num_valid, (train, held_out) in zip(
        locales, shares[1], _split(corpora), strict=True
    ):
        tag = f"{languages.tag(locale)} " if locales[1:] else ""
        parts = train, held_out[:num_valid], held_out[num_valid:]
        for pairs, lines in zip(splits.values(), parts, strict=True):
            pairs += [(f"{tag}{line.source}", line.target) for line in lines]
    if locales[1:]:
        rng = random.Random(seed)
        for pairs in splits.values():
            rng.shuffle(pairs)
    return splits


def _require_babel() -> None:
    extras.require(["babel"], extra="demo", purpose="the CLDR corpus needs")


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


def _load_grammar(
    source_locale: str, target_locale: str, *, seed: int
) -> tuple[Grammar, Iterator[Line]]:
    """Return all lines of two locales, and random ones without end."""
    source = _load_locale(source_locale, key="source_locale")
    target = _load_locale(target_locale, key="target_locale")
    rng = random.Random(seed)
    grammar = make_grammar(source=source, target=target, rng=rng)
    if all(
        piece.source == piece.target
        for piece in itertools.chain.from_iterable(grammar.pools.values())
    ):
        raise ValueError(
            "config.data.source_locale and config.data.target_locale must write "
            f"differently, got {source_locale!r} and {target_locale!r}"
        )
    return grammar, grammar.draw(rng)


class _Corpus:
    """The lines of one target locale: some to train on, then candidates to hold out."""

    def __init__(
        self,
        *,
        grammar: Grammar,
        draws: Iterator[Line],
        num_train: int,
        num_held_out: int,
        description: str,
    ) -> None:
        """Draw the lines to train on, and twice as many candidates as are needed.

        Args:
            grammar: All lines.
            draws: Random ones, without end.
            num_train: How many to train on.
            num_held_out: How many to hold out.
            description: Ends an error message; "" if there is one target locale.
        """
        self._draws = draws
        self._num_train = num_train
        self._num_held_out = num_held_out
        self._num_candidates = 2 * num_held_out
        self._description = description
        # By their sources; None for a source with two targets.
        self._lines: dict[str, Line | None] = {}
        if num_train + num_held_out > grammar.max_lines():
            raise self._too_few(maximum=grammar.max_lines())
        self._draw()

    @property
    def train(self) -> list[Line]:
        """The lines to train on."""
        return self._drawn[: self._num_train]

    def hold_out(self, trained_sources: Set[str]) -> list[Line]:
        """Return lines to hold out, as many as there are after what was drawn.

        Args:
            trained_sources: The sources to train on, for any target locale.
        """
        candidates = [
            line
            for line in self._drawn[self._num_train :]
            if line.source not in trained_sources
        ]
        return _prepared_for(self.train, candidates)[: self._num_held_out]

    def is_complete(self, held_out: Sequence[Line]) -> bool:
        """Return True if there are enough lines."""
        is_trained = len(self.train) == self._num_train
        return is_trained and len(held_out) == self._num_held_out

    def draw_more(self, held_out: Sequence[Line]) -> None:
        """Draw as many candidates again.

        Raises:
            ValueError: There are hardly any more, or training prepares for few.
        """
        if len(self._drawn) < self._num_train + self._num_candidates:
            raise self._too_few(maximum=len(self.train) + len(held_out))
        if self._num_candidates > MAX_CANDIDATES * self._num_held_out:
            raise ValueError(
                f"config.data.num_train {self._num_train} prepares for only "
                f"{len(held_out)} of the {self._num_held_out} lines of num_valid + "
                f"num_test{self._description}; raise num_train"
            )
        self._num_candidates *= 2
        self._draw()

    def _draw(self) -> None:
        num_lines = self._num_train + self._num_candidates
        self._drawn = _draw_into(self._lines, self._draws, num_lines=num_lines)

    def _too_few(self, *, maximum: int) -> ValueError:
        return ValueError(
            "config.data.num_train + num_valid + num_test must be at most the "
            f"{maximum} pairs that these locales make, got "
            f"{self._num_train + self._num_held_out}{self._description}"
        )


def _split(corpora: Sequence[_Corpus]) -> list[tuple[list[Line], list[Line]]]:
    """Return lines to train on, and lines to hold out that training prepares for."""
    while True:
        trained_sources = {line.source for corpus in corpora for line in corpus.train}
        held_out = [corpus.hold_out(trained_sources) for corpus in corpora]
        parts = list(zip(corpora, held_out, strict=True))
        if all(corpus.is_complete(lines) for corpus, lines in parts):
            return [(corpus.train, lines) for corpus, lines in parts]
        for corpus, lines in parts:
            if not corpus.is_complete(lines):
                corpus.draw_more(lines)


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
    phrases = []
    for line in candidates:
        is_new = line.is_combination() and line.target not in targets
        if is_new and line.atoms() <= train_atoms:
            targets.add(line.target)
            phrases.append(line)
    return phrases
