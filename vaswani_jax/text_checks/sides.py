"""Find lines in other scripts than those of their languages, and swapped sides."""

import collections
import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence, Set

from vaswani_jax.core import types
from vaswani_jax.data import scripts
from vaswani_jax.text_checks import association, findings
from vaswani_jax.text_checks.findings import Example, Finding, Severity
from vaswani_jax.text_checks.sample import Block, Pair, numbered

KEYS = ("source_locale", "target_locale")
# A line is in another script if at most this share of its letters is in
# scripts of its locale.
LINE_SHARE = 0.5
# Shorter lines do not count: units and currencies are in Latin letters everywhere.
MIN_LETTERS = 8
OTHER_SCRIPT = {"minor": 0.02, "serious": 0.5}
# A line is evidence for a side if its words are likelier there by this logarithm, on
# average; a pair counts if both of its lines are evidence.
MIN_EVIDENCE = 1.0
MIN_WORD_COUNT = 5
MIN_WORDS = 3
MIN_EVIDENT_LINES = 20
SWAPPED = {"minor": 0.005, "serious": 0.1}
UNTRANSLATED = {"minor": 0.05, "serious": 0.3}


def count_characters(lines: Iterable[str]) -> collections.Counter[str]:
    """Return how often lines have each character."""
    counts: collections.Counter[str] = collections.Counter()
    for line in lines:
        counts.update(line)
    return counts


def count_scripts(characters: Mapping[str, int]) -> collections.Counter[str]:
    """Return the number of letters of each script among counted characters."""
    letters: collections.Counter[str] = collections.Counter()
    for character, count in characters.items():
        letters[scripts.script_of_letter(character)] += count
    del letters[""]
    return letters


def share_in_scripts(letters: collections.Counter[str], locale: str) -> float:
    """Return the share of letters, counted by script, in the scripts of a locale.

    It is 1 if the scripts of the locale are unknown.
    """
    expected = scripts.scripts_of_locale(locale)
    if not expected:
        return 1.0
    return sum(letters[script] for script in expected) / max(1, letters.total())


def find_scripts(
    blocks: Sequence[Block], locales: tuple[str, str], *, split: str
) -> list[Finding]:
    """Return a finding if sides are not written as their languages are.

    Args:
        blocks: The text.
        locales: Those of source and target.
        split: Which text it is.
    """
    pairs = numbered(blocks)
    characters = [count_characters(pair[side] for _, pair in pairs) for side in (0, 1)]
    letters = [count_scripts(counts) for counts in characters]
    if not any(letters):
        return []
    right = [share_in_scripts(letters[side], locales[side]) for side in (0, 1)]
    crossed_shares = [
        share_in_scripts(letters[side], locales[1 - side]) for side in (0, 1)
    ]
    if max(right) < 0.5 < min(crossed_shares):
        reason = "each is written in the script of the other's language"
        return [swapped_sides(locales, split=split, reason=reason)]
    result = []
    for side, name in enumerate(types.SIDES):
        expected = scripts.scripts_of_locale(locales[side])
        if not expected:
            continue
        wrong, share = _lines_of_other_scripts(
            [(number, pair[side]) for number, pair in pairs],
            expected,
            characters=characters[side],
        )
        if not (severity := findings.severity_of(share, **OTHER_SCRIPT)):
            continue
        common = collections.Counter(scripts.script_of(line) for _, line in wrong)
        script = common.most_common(1)[0][0]
        result.append(
            Finding(
                kind="other_script",
                severity=severity,
                split=split,
                message=(
                    f"{findings.percent(share)} of the {name} lines are written in "
                    f"{script}, but config.data.{KEYS[side]}={locales[side]} is in "
                    f"{' and '.join(sorted(expected))}"
                ),
                share=share,
                remedies=[
                    f"--config.data.{KEYS[side]}=CODE, if another language is meant",
                    "leave these lines out of both files",
                ],
                examples=[
                    Example(number, findings.shorten(line), side=name)
                    for number, line in wrong[: findings.NUM_EXAMPLES]
                ],
            )
        )
    return result


def _lines_of_other_scripts(
    lines: Sequence[tuple[int, str]],
    expected: Set[str],
    *,
    characters: Mapping[str, int],
) -> tuple[list[tuple[int, str]], float]:
    """Return the lines most of whose letters are of other scripts, and their share.

    Args:
        lines: The lines of one side.
        expected: The scripts that their letters should be in.
        characters: Their characters, counted.
    """
    other_letters = {
        character
        for character in characters
        if scripts.script_of_letter(character) not in (*expected, "")
    }
    wrong, num_long = [], 0
    for number, line in lines:
        if other_letters.isdisjoint(line):  # nearly all lines
            num_long += len(line) >= MIN_LETTERS
            continue
        letters = scripts.letters_by_script(line)
        num_letters = letters.total()
        if num_letters >= MIN_LETTERS:
            num_long += 1
            num_right = sum(letters[script] for script in expected)
            if num_right <= LINE_SHARE * num_letters:
                wrong.append((number, line))
    return wrong, len(wrong) / max(1, num_long)


def swapped_sides(
    locales: tuple[str, str],
    *,
    split: str,
    reason: str,
    examples: Sequence[Example] = (),
) -> Finding:
    """Return the finding that both sides are swapped.

    Args:
        locales: Those of source and target.
        split: Which text it is.
        reason: How it shows.
        examples: Some of the pairs.
    """
    remedies = [f"swap config.data.{split}_source and config.data.{split}_target"]
    if split == "train":
        source, target = locales
        remedies.append(
            f"--config.data.source_locale={target} "
            f"--config.data.target_locale={source}, for the other direction"
        )
    return Finding(
        kind="swapped",
        severity=Severity.SERIOUS,
        split=split,
        message=(
            f"the sides of the {types.SPLIT_NAMES[split]} text are swapped: {reason}"
        ),
        share=1.0,
        remedies=remedies,
        examples=examples,
    )


@dataclasses.dataclass(frozen=True)
class Profile:
    """Evidence of each word for the source side against the target side.

    Attributes:
        evidence: The logarithm of the ratio of the shares, of words that are frequent.
    """

    evidence: dict[str, float]

    @classmethod
    def learn(cls, pairs: Sequence[Pair]) -> "Profile":
        """Count the words of both sides."""
        counts: list[collections.Counter[str]] = [
            collections.Counter() for _ in types.SIDES
        ]
        for pair in pairs:
            for line, counter in zip(pair, counts, strict=True):
                counter.update(association.words(line))
        totals = [counter.total() + 1 for counter in counts]
        return cls(
            {
                word: math.log((counts[0][word] + 1) / totals[0])
                - math.log((counts[1][word] + 1) / totals[1])
                for word in counts[0].keys() | counts[1].keys()
                if counts[0][word] + counts[1][word] >= MIN_WORD_COUNT
            }
        )

    def evidence_of(self, line: str) -> float:
        """Return the mean evidence of a line's words: above 0 for the source side."""
        values = [
            self.evidence[word]
            for word in association.words(line)
            if word in self.evidence and word.isalpha()
        ]
        return sum(values) / len(values) if len(values) >= MIN_WORDS else 0.0


def find_swapped_lines(
    blocks: Sequence[Block],
    profile: Profile,
    locales: tuple[str, str],
    *,
    split: str,
) -> list[Finding]:
    """Return findings of pairs whose sides are swapped, or in one language.

    Args:
        blocks: The text.
        profile: The words of the sides of the training text.
        locales: Those of source and target.
        split: Which text it is.
    """
    swapped, copied = [], []
    num_evident = 0
    for number, pair in numbered(blocks):
        source, target = map(profile.evidence_of, pair)
        if min(abs(source), abs(target)) < MIN_EVIDENCE:
            continue
        num_evident += 1
        if source < 0 < target:
            swapped.append((number, pair))
        elif (source > 0) == (target > 0):
            copied.append((number, pair))
    if num_evident < MIN_EVIDENT_LINES:
        return []
    result = []
    share = len(swapped) / num_evident
    if share > 0.5:
        result.append(
            swapped_sides(
                locales,
                split=split,
                reason="its source has the words of the training text's target",
                examples=_examples(swapped),
            )
        )
    elif severity := findings.severity_of(share, **SWAPPED):
        result.append(
            Finding(
                kind="swapped_lines",
                severity=severity,
                split=split,
                message=(
                    f"{findings.percent(share)} of the pairs have their sides swapped"
                ),
                share=share,
                remedies=["swap the sides of these lines, or leave them out"],
                examples=_examples(swapped),
            )
        )
    share = len(copied) / num_evident
    if severity := findings.severity_of(share, **UNTRANSLATED):
        result.append(
            Finding(
                kind="untranslated",
                severity=severity,
                split=split,
                message=(
                    f"{findings.percent(share)} of the pairs have both sides in one "
                    "language"
                ),
                share=share,
                remedies=["leave these lines out of both files"],
                examples=_examples(copied),
            )
        )
    return result


def _examples(lines: Sequence[tuple[int, Pair]]) -> list[Example]:
    return [
        findings.pair_example(number, *pair)
        for number, pair in lines[: findings.NUM_EXAMPLES]
    ]
