"""Judge training pairs by rules: the settings `data.clean_*`."""

import functools
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from vaswani_jax.core import config, languages, types
from vaswani_jax.data import encodings, language_identification, scripts

# The settings' names are the rules' with this prefix.
PREFIX = "clean_"
# Added to both lengths of a ratio, as short translations differ much in length.
LENGTH_ALLOWANCE = 10


class Side(NamedTuple):
    """One side of a pair, for rules.

    Attributes:
        name: "source" or "target".
        text: The line.
        locale: The language that it should be in.
    """

    name: str
    text: str
    locale: str


Sides = tuple[Side, Side]
# Returns what is wrong with each of many pairs, or "".
Rule = Callable[[Sequence[Sides]], Iterable[str]]


def make_rules(data: config.DataConfig) -> dict[str, Rule]:
    """Return the rules that settings turn on, except the one on duplicates.

    Raises:
        ValueError: The language of a locale is unknown to the identifier.
        ImportError: The identifier is not installed.
    """
    if data.clean_language_odds:
        _check_languages(data)
    values = {name: getattr(data, PREFIX + name) for name in RULES}
    return {name: RULES[name](value) for name, value in values.items() if value}


def length_ratio(source: str, target: str) -> float:
    """Return the ratio of the longer side's characters to the shorter side's.

    Each side counts with 10 more.

    >>> length_ratio("Go!", "Geh jetzt endlich!")
    2.1538461538461537
    """
    lengths = [len(text.strip()) + LENGTH_ALLOWANCE for text in (source, target)]
    return max(lengths) / min(lengths)


def share_of_letters(text: str) -> float:
    """Return the share of letters and their marks among characters except spaces.

    It is 1 for a text of spaces.

    >>> share_of_letters("Seite 12 (von 30)")
    0.5714285714285714
    """
    characters = "".join(text.split())
    if not characters or characters.isalpha():
        return 1.0
    return sum(map(_is_letter, characters)) / len(characters)


def are_equal(source: str, target: str) -> bool:
    """Return whether two sides are equal except for case and spaces."""
    return source.casefold().split() == target.casefold().split()


def split_sides(pair: tuple[str, str], data: config.DataConfig) -> Sides:
    """Return the sides of a pair without user symbols and code, each with its locale.

    The tag or language code of the source, if any, names the target's locale.
    """
    source, target = pair
    target_locale = languages.line_locale(source, data)
    source = languages.split_code(source)[1]
    for symbol in data.symbols:
        source, target = source.replace(symbol, " "), target.replace(symbol, " ")
    return (
        Side("source", source, data.source_locale),
        Side("target", target, target_locale),
    )


def _each_pair(find: Callable[[Sides], str]) -> Rule:
    """Return a rule that judges each pair by itself."""
    return lambda pairs: map(find, pairs)


def _each_side(find: Callable[[Side], str]) -> Rule:
    """Return a rule that a pair breaks if `find` finds a fault in one of its sides."""

    def find_in_pair(sides: Sides) -> str:
        for side in sides:
            if reason := find(side):
                return f"{side.name}: {reason}"
        return ""

    return _each_pair(find_in_pair)


def _empty(_: bool) -> Rule:
    return _each_side(lambda side: "" if side.text.strip() else "empty")


def _control_characters(_: bool) -> Rule:
    def find(side: Side) -> str:
        characters = dict.fromkeys(encodings.control_characters(side.text))
        return ", ".join(f"U+{ord(character):04X}" for character in characters)

    return _each_side(find)


def _encodings(_: bool) -> Rule:
    def find(side: Side) -> str:
        if encodings.REPLACEMENT in side.text:
            return "U+FFFD"
        return encodings.mojibake(side.text)

    return _each_side(find)


def _max_characters(limit: int) -> Rule:
    def find(side: Side) -> str:
        length = len(side.text)
        return f"{length:,} characters" if length > limit else ""

    return _each_side(find)


def _max_ratio(limit: float) -> Rule:
    def find(sides: Sides) -> str:
        ratio = length_ratio(*(side.text for side in sides))
        return f"ratio {ratio:.2f}" if ratio > limit else ""

    return _each_pair(find)


def _equal_sides(_: bool) -> Rule:
    def find(sides: Sides) -> str:
        return "the same text" if are_equal(*(side.text for side in sides)) else ""

    return _each_pair(find)


def _min_letters(limit: float) -> Rule:
    def find(side: Side) -> str:
        share = share_of_letters(side.text)
        return f"{share:.0%} letters" if share < limit else ""

    return _each_side(find)


def _min_script(limit: float) -> Rule:
    def find(side: Side) -> str:
        expected = scripts.scripts_of_locale(side.locale)
        share = scripts.share_in_scripts(side.text, expected)
        names = "+".join(sorted(expected))
        return f"{share:.0%} {names}" if share < limit else ""

    return _each_side(find)


def _language_odds(limit: float) -> Rule:
    def find(pairs: Sequence[Sides]) -> list[str]:
        reasons = [""] * len(pairs)
        for index in range(len(types.SIDES)):
            expected = {
                n: language_identification.language_of(pairs[n][index].locale)
                for n, reason in enumerate(reasons)
                if not reason
            }
            # A line's own code may name a language that cannot be judged.
            numbers = [n for n, language in expected.items() if language]
            verdicts = language_identification.judge(
                [pairs[n][index].text for n in numbers],
                [expected[n] for n in numbers],
            )
            for n, verdict in zip(numbers, verdicts, strict=True):
                if verdict.odds > limit:
                    # Further digits depend on the machine.
                    odds = float(f"{min(verdict.odds, 1e9):.2g}")
                    description = f"{verdict.language}, odds {odds:,.0f}"
                    reasons[n] = f"{types.SIDES[index]}: {description}"
        return reasons

    return find


def _check_languages(data: config.DataConfig) -> None:
    for key in ("source_locale", "target_locale"):
        for locale in getattr(data, key).split(","):
            if not language_identification.language_of(locale):
                raise ValueError(
                    f"config.data.{PREFIX}language_odds={data.clean_language_odds:g} "
                    f"needs languages that py3langid knows, got {locale!r} in "
                    f"config.data.{key}; set config.data.{PREFIX}language_odds=0"
                )


# In the order of application: what costs most comes last. The rule on duplicates, which
# needs all pairs before, follows them.
RULES: Mapping[str, Callable[[Any], Rule]] = {
    "empty": _empty,
    "control_characters": _control_characters,
    "encodings": _encodings,
    "max_characters": _max_characters,
    "equal_sides": _equal_sides,
    "max_ratio": _max_ratio,
    "min_letters": _min_letters,
    "min_script": _min_script,
    "language_odds": _language_odds,
}


@functools.lru_cache(maxsize=100_000)
def _is_letter(character: str) -> bool:
    return unicodedata.category(character)[0] in "LM"
