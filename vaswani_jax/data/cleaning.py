"""Leave out training pairs that are hardly translations: the settings `data.clean_*`.

Each rule names what is wrong with a pair. A pair is left out by the first rule that
names it, in the order of `RULES`, and by none if no rule is on. Held-out text is never
cleaned.
"""

import collections
import dataclasses
import functools
import hashlib
import itertools
import logging
import pathlib
import random
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np
from jaxtyping import Bool, UInt64

from vaswani_jax.core import config, languages
from vaswani_jax.data import encodings, language_identification, scripts, text_files

Pair = tuple[str, str]
Item = TypeVar("Item")
# The settings' names are the rules' with this prefix.
PREFIX = "clean_"
# The file of examples, beside the token files.
EXAMPLES = "cleaning.tsv"
HEADER: tuple[str, ...] = ("rule", "corpus", "pair", "reason", "source", "target")
NUM_EXAMPLES = 10
# Characters of an example that are shown.
SHOWN_LENGTH = 300
# Added to both lengths of a ratio, as short translations differ much in length.
LENGTH_ALLOWANCE = 10
# Pairs that are examined at a time.
CHUNK_PAIRS = 10_000
PAIRS_PER_LOG_LINE = 200_000

logger = logging.getLogger(__name__)


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
# Returns what is wrong with a pair, or "".
Rule = Callable[[Sides], str]


@dataclasses.dataclass(frozen=True)
class Example:
    """A pair that was left out.

    Attributes:
        corpus: The name of its corpus, or "".
        number: Its number in the text, from 1.
        reason: What the rule found.
        pair: Its source and its target.
    """

    corpus: str
    number: int
    reason: str
    pair: Pair


@dataclasses.dataclass
class Removals:
    """The pairs that one rule left out.

    Attributes:
        rule: Its setting without "clean_".
        count: How many there are.
        by_corpus: How many there are in each corpus.
        examples: Ten of them, spread over the text, or all.
    """

    rule: str
    count: int = 0
    by_corpus: collections.Counter[str] = dataclasses.field(
        default_factory=collections.Counter
    )
    examples: list[Example] = dataclasses.field(default_factory=list)

    def __post_init__(self) -> None:
        """Start the draw of examples, which depends on the rule's name alone."""
        self._generator = random.Random(self.rule)

    def add(self, example: Example) -> None:
        """Count a pair; each of them is as likely as another to be an example."""
        self.count += 1
        self.by_corpus[example.corpus] += 1
        if len(self.examples) < NUM_EXAMPLES:
            self.examples.append(example)
            return
        index = self._generator.randrange(self.count)
        if index < NUM_EXAMPLES:
            self.examples[index] = example


class Cleaner:
    """Examines training text once, then yields the pairs to keep, any number of times.

    Attributes:
        is_on: True if any rule is on. If none is, all pairs are kept.
        removals: What each rule left out, for the rules that are on.
    """

    def __init__(self, data: config.DataConfig) -> None:
        """Take the rules that the settings name.

        Raises:
            ValueError: The language of a locale is unknown to the identifier.
            ImportError: The identifier is not installed.
        """
        self._data = data
        self._rules = make_rules(data)
        names = [*self._rules, *["identical_pairs"] * data.clean_identical_pairs]
        self.removals = [Removals(name) for name in names]
        self.is_on = bool(names)
        self._is_kept: dict[str, bytearray] = {}

    @property
    def num_pairs(self) -> int:
        """The number of pairs that were examined."""
        return sum(map(len, self._is_kept.values()))

    @property
    def counts(self) -> dict[str, int]:
        """The number of pairs that each rule left out, for the manifest."""
        return {removals.rule: removals.count for removals in self.removals}

    @property
    def counts_by_corpus(self) -> dict[str, dict[str, int]]:
        """The counts of each corpus; empty if the text is not mixed from corpora."""
        if not self.is_on:
            return {}
        return {
            corpus: {each.rule: each.by_corpus[corpus] for each in self.removals}
            for corpus in self._is_kept
            if corpus
        }

    def examine(self, corpora: Mapping[str, Iterable[Pair]]) -> None:
        """Decide which pairs of the training text to keep.

        Args:
            corpora: The pairs of each corpus by its name; "" is the name of a text that
                is not mixed from corpora.
        """
        pair_set = PairSet() if self._data.clean_identical_pairs else None
        for corpus, pairs in corpora.items():
            self._is_kept[corpus] = bytearray()
            iterator = iter(pairs)
            while chunk := list(itertools.islice(iterator, CHUNK_PAIRS)):
                self._examine_chunk(chunk, corpus=corpus, pair_set=pair_set)
                if self.num_pairs % PAIRS_PER_LOG_LINE == 0:
                    logger.info(f"examined {self.num_pairs:,} pairs")

    def num_kept(self, corpus: str = "") -> int:
        """Return how many pairs of a corpus are kept."""
        return sum(self._is_kept[corpus])

    def keep(self, pairs: Iterable[Item], *, corpus: str = "") -> Iterator[Item]:
        """Yield the pairs to keep, of a corpus that was examined."""
        if not self.is_on:
            return iter(pairs)
        return itertools.compress(pairs, self._is_kept[corpus])

    def kept_numbers(self, corpus: str = "") -> Iterator[int]:
        """Yield the numbers of the pairs to keep in their corpus, from 0."""
        return self.keep(itertools.count(), corpus=corpus)

    def log(self) -> None:
        """Log how many pairs each rule left out, if any rule is on."""
        if not self.is_on:
            return
        num_kept = sum(map(self.num_kept, self._is_kept))
        counts = ", ".join(f"{count:,} {rule}" for rule, count in self.counts.items())
        logger.info(
            f"cleaning kept {num_kept:,} of {self.num_pairs:,} training pairs; left "
            f"out: {counts}; {EXAMPLES} has examples"
        )
        for corpus, corpus_counts in self.counts_by_corpus.items():
            counts = ", ".join(f"{n:,} {rule}" for rule, n in corpus_counts.items())
            logger.info(
                f"corpus {corpus!r}: kept {self.num_kept(corpus):,} of "
                f"{len(self._is_kept[corpus]):,} pairs; left out: {counts}"
            )

    def write_examples(self, directory: pathlib.Path) -> None:
        """Write a table of examples into a directory, if any rule is on."""
        if not self.is_on:
            return
        rows = [HEADER]
        for removals in self.removals:
            rule, examples = removals.rule, removals.examples
            for example in sorted(examples, key=lambda e: (e.corpus, e.number)):
                texts = map(_shown, (example.reason, *example.pair))
                rows.append((rule, example.corpus, str(example.number), *texts))
        text_files.write_lines(directory / EXAMPLES, map("\t".join, rows))

    def _examine_chunk(
        self, chunk: Sequence[Pair], *, corpus: str, pair_set: "PairSet | None"
    ) -> None:
        is_kept = self._is_kept[corpus]
        first = len(is_kept)
        rules = self._rules.values()
        for number, pair in enumerate(chunk, start=first + 1):
            sides = split_sides(pair, self._data)
            for removals, find in zip(self.removals, rules, strict=False):
                if reason := find(sides):
                    removals.add(Example(corpus, number, reason, pair))
                    is_kept.append(False)
                    break
            else:
                is_kept.append(True)
        if pair_set is None:
            return
        indices = [n for n in range(len(chunk)) if is_kept[first + n]]
        is_first = pair_set.add([chunk[n] for n in indices])
        for n in itertools.compress(indices, ~is_first):
            reason = "an earlier pair"
            self.removals[-1].add(Example(corpus, first + n + 1, reason, chunk[n]))
            is_kept[first + n] = False


class PairSet:
    """A set of pairs, as hashes of 64 bits: 8 bytes a pair, up to 16 during `add`.

    Spaces do not distinguish pairs. Among 36 million different pairs, one is taken for
    another with a probability of 1 in 28,000.
    """

    def __init__(self) -> None:
        """Start with no pair."""
        # Sorted; each is shorter than the one before.
        self._runs: list[np.ndarray] = []

    def add(self, pairs: Sequence[Pair]) -> Bool[np.ndarray, "N"]:
        """Add pairs; return whether each is the first with its text."""
        hashes = _hashes(pairs)
        _, first_indices = np.unique(hashes, return_index=True)
        is_first = np.zeros(len(hashes), bool)
        is_first[first_indices] = True
        for run in self._runs:
            indices = np.minimum(np.searchsorted(run, hashes), len(run) - 1)
            is_first &= run[indices] != hashes
        additions = np.sort(hashes[is_first])
        while self._runs and len(self._runs[-1]) <= len(additions):
            additions = np.concatenate([self._runs.pop(), additions])
            additions.sort(kind="stable")
        if len(additions):
            self._runs.append(additions)
        return is_first


def make_rules(data: config.DataConfig) -> dict[str, Rule]:
    """Return the rules that settings turn on, except the one on identical pairs.

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


def split_sides(pair: Pair, data: config.DataConfig) -> Sides:
    """Return the sides of a pair without user symbols, each with its locale.

    With several target locales, the source's tag names the target's.
    """
    source, target = pair
    target_locale = languages.line_locale(source, data)
    for symbol in data.symbols:
        source, target = source.replace(symbol, " "), target.replace(symbol, " ")
    return (
        Side("source", source, data.source_locale),
        Side("target", target, target_locale),
    )


def _each_side(find: Callable[[Side], str]) -> Rule:
    """Return the rule that names a pair if a function finds something in a side."""

    def find_in_pair(sides: Sides) -> str:
        for side in sides:
            if reason := find(side):
                return f"{side.name}: {reason}"
        return ""

    return find_in_pair


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

    return find


def _equal_sides(_: bool) -> Rule:
    def find(sides: Sides) -> str:
        return "the same text" if are_equal(*(side.text for side in sides)) else ""

    return find


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
    def find(side: Side) -> str:
        language = language_identification.language_of(side.locale)
        verdict = language_identification.judge(side.text, language)
        if verdict.odds <= limit:
            return ""
        return f"{verdict.language}, odds {min(verdict.odds, 1e9):,.0f}"

    return _each_side(find)


def _check_languages(data: config.DataConfig) -> None:
    for key in ("source_locale", "target_locale"):
        for locale in getattr(data, key).split(","):
            if not language_identification.language_of(locale):
                raise ValueError(
                    f"config.data.{PREFIX}language_odds={data.clean_language_odds:g} "
                    f"needs languages that py3langid knows, got {locale!r} in "
                    f"config.data.{key}; set config.data.{PREFIX}language_odds=0"
                )


# In the order of application: what costs most comes last. The rule on identical pairs,
# which needs all pairs before, follows them.
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


def _hashes(pairs: Sequence[Pair]) -> UInt64[np.ndarray, "N"]:
    digests = bytearray()
    for pair in pairs:
        text = "\n".join(" ".join(side.split()) for side in pair)
        encoded = text.encode("utf-8", errors="surrogatepass")
        digests += hashlib.blake2b(encoded, digest_size=8).digest()
    return np.frombuffer(bytes(digests), np.uint64)


def _shown(text: str) -> str:
    """Return a text as one printable cell of a table, cut off if it is long."""
    if len(text) > SHOWN_LENGTH:
        text = f"{text[:SHOWN_LENGTH]}…"
    return "".join(
        character
        if character.isprintable()
        else character.encode("unicode_escape").decode()
        for character in text
    )
