"""Find held-out pairs that another text has, too, or nearly so.

Lines are nearly the same if they share most of their shingles, which are sequences of
three words. The held-out text is in memory; the other one is read chunk by chunk.
"""

import collections
import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence

from vaswani_jax.core import types
from vaswani_jax.text_checks import association, findings
from vaswani_jax.text_checks.findings import Example, Finding, Severity
from vaswani_jax.text_checks.sample import Pair

# Lines are near if they have this share of their shingles in common.
MIN_SHARED = 0.6
# Held-out lines that are looked up by one shingle.
MAX_LINES_OF_SHINGLE = 50
# Pairs of a held-out text that are looked at, the first ones. To bound the memory, no
# more are taken once they have this number of shingles.
MAX_HELD_OUT = 20_000
MAX_SHINGLES = 1_600_000
# A line of fewer words is too common to say that it was copied.
MIN_WORDS = 5
MINOR_EXACT, SERIOUS_EXACT = 0.01, 0.1
MINOR_NEAR, SERIOUS_NEAR = 0.05, 0.2


# A corpus of the other text, "" if it has only one, and a line there, from 1.
_Location = tuple[str, int]


@dataclasses.dataclass
class _HeldOutPair:
    """A held-out pair, and where the other text has it.

    Attributes:
        pair: The pair.
        shingles: The shingles of each side.
        exact: Where the first equal pair of it is.
        near: Where the first pair with nearly the same sides is.
        near_pair: That pair.
        has_same_source: Whether a pair of it has the same words in its source.
    """

    pair: Pair
    shingles: tuple[frozenset[int], frozenset[int]]
    exact: _Location | None = None
    near: _Location | None = None
    near_pair: Pair | None = None
    has_same_source: bool = False

    @property
    def location(self) -> _Location | None:
        """The location of the pair in the other text, or of a near one, if there is."""
        return self.exact or self.near


class HeldOutSearch:
    """Looks for held-out pairs in another text, chunk by chunk."""

    def __init__(
        self, splits: Mapping[str, Sequence[Pair]], *, other_split: str = "train"
    ) -> None:
        """Take the text to look for.

        Args:
            splits: The pairs of each held-out split.
            other_split: The split whose pairs `add` takes.
        """
        self._other_split = other_split
        self._other_name = types.SPLIT_NAMES[other_split]
        self._is_trained = other_split == "train"
        self._splits: dict[str, list[_HeldOutPair]] = {}
        self._by_pair: dict[Pair, list[_HeldOutPair]] = {}
        self._by_words: dict[tuple[str, ...], list[_HeldOutPair]] = {}
        self._by_shingle: dict[int, list[_HeldOutPair]] = {}
        for split, pairs in splits.items():
            lines: list[_HeldOutPair] = []
            self._splits[split] = lines
            num_shingles = 0
            for pair in pairs[:MAX_HELD_OUT]:
                if all(pair) and num_shingles < MAX_SHINGLES:
                    lines.append(self._held_out(pair))
                    num_shingles += sum(map(len, lines[-1].shingles))
        self._index()

    def _held_out(self, pair: Pair) -> _HeldOutPair:
        words = [tuple(association.words(line, limit=None)) for line in pair]
        held_out = _HeldOutPair(pair, (_shingles(words[0]), _shingles(words[1])))
        self._by_pair.setdefault(pair, []).append(held_out)
        self._by_words.setdefault(words[0], []).append(held_out)
        return held_out

    def _index(self) -> None:
        """Make held-out lines findable by their rarest shingles.

        If a line shares the share s of all shingles with a line of n shingles, it has
        at least s * n of them. So it has one of any n - s * n + 1 of them.
        """
        lines = [line for lines in self._splits.values() for line in lines]
        counts = collections.Counter(
            shingle for line in lines for shingle in line.shingles[0]
        )
        for line in lines:
            shingles = sorted(line.shingles[0], key=counts.__getitem__)
            size = len(shingles)
            for shingle in shingles[: size - math.ceil(MIN_SHARED * size) + 1]:
                lines_of_shingle = self._by_shingle.setdefault(shingle, [])
                if len(lines_of_shingle) < MAX_LINES_OF_SHINGLE:
                    lines_of_shingle.append(line)
        self._shingles = frozenset(self._by_shingle)

    def add(self, pairs: Iterable[Pair], *, first_line: int, corpus: str = "") -> None:
        """Take the next pairs of the other text.

        Args:
            pairs: The pairs.
            first_line: The number of the first one's line.
            corpus: The name of the corpus; "" if there is only one.
        """
        if not self._splits:
            return
        for number, pair in enumerate(pairs, start=first_line):
            for held_out in self._by_pair.get(pair, ()):
                held_out.exact = held_out.exact or (corpus, number)
            words = tuple(association.words(pair[0], limit=None))
            for held_out in self._by_words.get(words, ()):
                held_out.has_same_source = True
            shingles = _shingles(words)
            if not shingles.isdisjoint(self._shingles):
                self._compare(pair, shingles, location=(corpus, number))

    def _compare(
        self, pair: Pair, shingles: frozenset[int], *, location: _Location
    ) -> None:
        """Note the held-out pairs that are near to a pair of the other text."""
        candidates = {
            id(held_out): held_out
            for shingle in shingles & self._shingles
            for held_out in self._by_shingle[shingle]
            if not held_out.near
        }
        near = [
            held_out
            for held_out in candidates.values()
            if _shared(held_out.shingles[0], shingles) >= MIN_SHARED
        ]
        if not near:
            return
        target = _shingles(association.words(pair[1], limit=None))
        for held_out in near:
            if _shared(held_out.shingles[1], target) >= MIN_SHARED:
                held_out.near, held_out.near_pair = location, pair

    def measures(self) -> dict[str, dict[str, float]]:
        """Return, for each split, the shares of its pairs that the other text has."""
        return {
            split: {
                "same_pair": _share(line.exact for line in lines),
                "near_pair": _share(line.location for line in lines),
                "same_source": _share(line.has_same_source for line in lines),
            }
            for split, lines in self._splits.items()
        }

    def find(self, *, is_file: bool) -> list[Finding]:
        """Return a finding for each split of which the other text has many pairs.

        Args:
            is_file: Whether the text is a file that another one can replace.
        """
        result = []
        for split, lines in self._splits.items():
            name = types.SPLIT_NAMES[split]
            exact = _share(line.exact for line in lines)
            near = _share(line.location for line in lines)
            is_serious = exact >= SERIOUS_EXACT or near >= SERIOUS_NEAR
            # Short lines, as "Yes.", are in every large text.
            long = [line for line in lines if line.shingles[0]]
            num_exact = sum(bool(line.exact) for line in long)
            num_near = sum(bool(line.location) for line in long)
            is_minor = num_exact >= MINOR_EXACT * len(
                lines
            ) or num_near >= MINOR_NEAR * len(lines)
            if not lines or not (is_serious or is_minor):
                continue
            severity = Severity.SERIOUS if is_serious else Severity.MINOR
            message = (
                f"{findings.percent(exact)} of the {name} pairs are also "
                f"{self._other_name} pairs; with near copies, "
                f"{findings.percent(near)}: "
            )
            message += (
                "scores on them say little about other text"
                if self._is_trained
                else f"the {self._other_name} text chooses the checkpoint, so these "
                "scores are too high"
            )
            remedies = [f"remove these pairs from the {self._other_name} text"]
            if is_file:
                remedies.append(
                    f"name another text: --config.data.{split}_source=FILE "
                    f"--config.data.{split}_target=FILE"
                )
            result.append(
                Finding(
                    kind="overlap",
                    severity=severity,
                    split=split,
                    message=message,
                    share=max(exact, near),
                    remedies=remedies,
                    examples=_examples(lines, self._other_split),
                )
            )
        return result


def _examples(lines: Sequence[_HeldOutPair], other_split: str) -> list[Example]:
    examples: list[Example] = []
    for line in lines:
        if line.location and len(examples) < findings.NUM_EXAMPLES:
            corpus, number = line.location
            pair = line.pair if line.exact else line.near_pair or line.pair
            text = (
                f"{findings.shorten(pair[0])} | "
                f"held out: {findings.shorten(line.pair[0])}"
            )
            examples.append(Example(number, text, split=other_split, corpus=corpus))
    return examples


def _share(values: Iterable[object]) -> float:
    flags = list(map(bool, values))
    return round(sum(flags) / max(1, len(flags)), 6)


def _shingles(words: Sequence[str]) -> frozenset[int]:
    if len(words) < MIN_WORDS:
        return frozenset()
    return frozenset(map(hash, zip(words, words[1:], words[2:], strict=False)))


def _shared(first: frozenset[int], second: frozenset[int]) -> float:
    return len(first & second) / max(1, len(first | second))
