"""Find lines and sides that are in another language than the settings say.

One line says little unless it is long. So lines are identified in two ways: long lines
one by one, and lines of any length several at a time. The second way tells a side that
is in another language as a whole.
"""

import collections
import dataclasses
import importlib.util
import math
from collections.abc import Sequence

from vaswani_jax.core import extras, types
from vaswani_jax.data import language_identification
from vaswani_jax.text_checks import findings, sides
from vaswani_jax.text_checks.findings import Example, Finding
from vaswani_jax.text_checks.sample import Block, numbered, spread

# Lines that are identified together, as one group.
LINES_PER_GROUP = 10
MAX_GROUPS = 100
MIN_GROUPS = 5
# Sides are swapped if on both, more than this share of groups is likelier in the other
# side's language.
MIN_CROSSED = 0.8
GROUPS = {"minor": 0.1, "serious": 0.5}
# A line of fewer bytes of UTF-8 is not identified alone.
MIN_BYTES = 30
MAX_LINES = 5000
MIN_LINES = 50
# A line is in another language at higher odds. No line of Multi30k and Tatoeba reaches
# a hundredth of it, but lists of names and of publications do, whose language hardly
# matters. Of French lines among German ones, it names 9 in 10.
MIN_ODDS = 10_000.0
LINES = {"minor": 0.02, "serious": 0.5}

Line = tuple[int, str]


def can_identify(locale: str) -> bool:
    """Return True if the identifier is installed and knows a locale's language."""
    is_installed = importlib.util.find_spec("py3langid") is not None
    return is_installed and bool(language_identification.language_of(locale))


def how_to_identify() -> str:
    """Return how to install the identifier, if it is missing, for a note."""
    if importlib.util.find_spec("py3langid"):
        return ""
    return f"; {extras.how_to_install('langid')}"


@dataclasses.dataclass(frozen=True)
class Languages:
    """The languages that one side seems to be in.

    Attributes:
        shares: The share of lines of each language; a line that may be in the language
            that it should be in counts for that.
        other_side: The share of groups for which the language of the other side is
            likelier than that of this side.
        is_by_line: False if the shares are those of groups.
        examples: Some lines in other languages.
    """

    shares: dict[str, float]
    other_side: float
    is_by_line: bool
    examples: Sequence[Example]


def identify(
    lines: Sequence[Line], *, side: str, locale: str, other_locale: str
) -> Languages:
    """Return the languages of one side.

    They are those of groups if lines are short, or if most groups are in other
    languages; else those of long lines.

    Args:
        lines: The lines, each with its number.
        side: "source" or "target".
        locale: What they should be in.
        other_locale: What the other side should be in.
    """
    expected, opposite = map(
        language_identification.language_of, (locale, other_locale)
    )
    texts = [
        line[: language_identification.NUM_CHARACTERS]
        for _, line in spread(lines, MAX_GROUPS * LINES_PER_GROUP)
    ]
    groups = [
        " ".join(texts[begin : begin + LINES_PER_GROUP])
        for begin in range(0, len(texts), LINES_PER_GROUP)
    ]
    shares, _ = _shares(groups, expected, min_odds=language_identification.MARGIN)
    num_other = sum(
        by_language.get(opposite, 0.0) > by_language[expected]
        for by_language in language_identification.probabilities(groups)
    )
    other_side = num_other / len(groups)
    long = [line for line in lines if len(line[1].encode()) >= MIN_BYTES]
    long = spread(long, MAX_LINES)
    line_shares, foreign = _shares(
        [line for _, line in long], expected, min_odds=MIN_ODDS
    )
    examples = [
        Example(long[n][0], findings.shorten(long[n][1]), side=side)
        for n in foreign[: findings.NUM_EXAMPLES]
    ]
    is_by_line = len(long) >= MIN_LINES and shares.get(expected, 0.0) > 0.5
    return Languages(
        line_shares if is_by_line else shares, other_side, is_by_line, examples
    )


def _shares(
    texts: Sequence[str], expected: str, *, min_odds: float
) -> tuple[dict[str, float], list[int]]:
    """Return the share of texts of each language, and which are not as expected."""
    verdicts = language_identification.judge(texts, [expected] * len(texts))
    foreign = [n for n, verdict in enumerate(verdicts) if verdict.odds > min_odds]
    counts = collections.Counter(verdicts[n].language for n in foreign)
    counts[expected] += len(texts) - len(foreign)
    total = max(1, len(texts))
    shares = {
        language: count / total for language, count in counts.most_common() if count
    }
    return shares, foreign


def languages(
    blocks: Sequence[Block], locales: tuple[str, str]
) -> list[Languages | None]:
    """Return the languages of source and target; None where they are not identified."""
    pairs = [(number, pair) for number, pair in numbered(blocks) if all(pair)]
    if len(pairs) < MIN_GROUPS * LINES_PER_GROUP:
        return [None, None]
    return [
        identify(
            [(number, pair[side]) for number, pair in pairs],
            side=name,
            locale=locales[side],
            other_locale=locales[1 - side],
        )
        if can_identify(locales[side])
        else None
        for side, name in enumerate(types.SIDES)
    ]


def find_languages(
    side_languages: Sequence[Languages | None], locales: tuple[str, str], *, split: str
) -> list[Finding]:
    """Return a finding if sides are in other languages than their locales say.

    Args:
        side_languages: What `languages` returns.
        locales: Those of source and target.
        split: Which text it is.
    """
    other_sides = [identified.other_side for identified in side_languages if identified]
    if len(other_sides) == len(types.SIDES) and min(other_sides) > MIN_CROSSED:
        reason = f"the source is in {locales[1]}, the target in {locales[0]}"
        return [sides.swapped_sides(locales, split=split, reason=reason)]
    result = []
    for side, name in enumerate(types.SIDES):
        identified = side_languages[side]
        if identified is None:
            continue
        expected = language_identification.language_of(locales[side])
        other_shares = {k: v for k, v in identified.shares.items() if k != expected}
        share = math.fsum(other_shares.values())
        limits = LINES if identified.is_by_line else GROUPS
        if not (severity := findings.severity_of(share, **limits)):
            continue
        commonest = max(other_shares, key=other_shares.__getitem__)
        key = f"config.data.{sides.KEYS[side]}"
        remedies = ["leave lines of other languages out of both files"]
        description = "in other languages"
        if other_shares[commonest] > share / 2:
            description = f"in {commonest}"
        if other_shares[commonest] > 0.5:
            remedies.insert(0, f"--{key}={commonest}, if that language is meant")
        text = "lines seem" if identified.is_by_line else "text seems"
        result.append(
            Finding(
                kind="language",
                severity=severity,
                split=split,
                message=(
                    f"{findings.percent(share)} of the {name} {text} to be "
                    f"{description}, but {key}={locales[side]}"
                ),
                share=share,
                remedies=remedies,
                examples=identified.examples,
            )
        )
    return result
