"""Leave out training pairs that are hardly translations: the settings `data.clean_*`.

A pair that breaks a rule is left out, and counts under the first such rule in the order
of `cleaning_rules.RULES`. Without rules, all pairs are kept. Held-out text is never
cleaned.
"""

import collections
import dataclasses
import hashlib
import itertools
import logging
import pathlib
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

import numpy as np
from jaxtyping import Bool, UInt64

from vaswani_jax.core import config
from vaswani_jax.data import cleaning_rules, text_files
from vaswani_jax.data.sources import Location

Pair = tuple[str, str]
Item = TypeVar("Item")
# The file of examples, beside the token files.
EXAMPLES = "cleaning.tsv"
# The file is that of the source, if there are several; pairs are counted in it.
HEADER: tuple[str, ...] = (
    "rule",
    "corpus",
    "file",
    "pair",
    "reason",
    "source",
    "target",
)
NUM_EXAMPLES = 10
# Characters of an example that are shown.
SHOWN_LENGTH = 300
# Pairs that are examined at a time.
CHUNK_PAIRS = 10_000
PAIRS_PER_LOG_LINE = 200_000

logger = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True)
class Example:
    """A pair that was left out.

    Attributes:
        corpus: The name of its corpus, or "".
        number: Its number in the text, from 1.
        reason: What is wrong with it.
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
        examples: Ten of them, drawn at random, or all if there are fewer.
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
        """Take the rules that the settings turn on.

        Raises:
            ValueError: The language of a locale is unknown to the identifier.
            ImportError: The identifier is not installed.
        """
        self._data = data
        self._rules = cleaning_rules.make_rules(data)
        names = [*self._rules, *["duplicates"] * data.clean_duplicates]
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
            corpus: {
                removal.rule: removal.by_corpus[corpus] for removal in self.removals
            }
            for corpus in self._is_kept
            if corpus
        }

    def examine(self, corpora: Mapping[str, Iterable[Pair]]) -> None:
        """Decide which pairs of the training text to keep.

        Args:
            corpora: The pairs of each corpus by its name; "" is the name of a text that
                is not mixed from corpora.
        """
        pair_set = PairSet() if self._data.clean_duplicates else None
        for corpus, pairs in corpora.items():
            self._is_kept[corpus] = bytearray()
            iterator = iter(pairs)
            while chunk := list(itertools.islice(iterator, CHUNK_PAIRS)):
                num_logged = self.num_pairs // PAIRS_PER_LOG_LINE
                self._examine_chunk(chunk, corpus=corpus, pair_set=pair_set)
                if self.num_pairs // PAIRS_PER_LOG_LINE > num_logged:
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

    def example_numbers(self, corpus: str = "") -> set[int]:
        """Return the numbers of the examples in a corpus, from 1."""
        return {
            example.number
            for removals in self.removals
            for example in removals.examples
            if example.corpus == corpus
        }

    def write_examples(
        self, directory: pathlib.Path, locations: Mapping[str, Mapping[int, Location]]
    ) -> None:
        """Write a table of examples into a directory, if any rule is on.

        Args:
            directory: Where to write it.
            locations: For each corpus in several files, the locations of its examples
                by their numbers, see `sources.locate`.
        """
        if not self.is_on:
            return
        rows = [HEADER]
        for removals in self.removals:
            rule, examples = removals.rule, removals.examples
            for example in sorted(examples, key=lambda e: (e.corpus, e.number)):
                location = locations.get(example.corpus, {}).get(example.number)
                file = str(location.source) if location else ""
                number = location.line if location else example.number
                texts = map(_shown, (file, str(number), example.reason, *example.pair))
                rows.append((rule, example.corpus, *texts))
        text_files.write_lines(directory / EXAMPLES, map("\t".join, rows))

    def _examine_chunk(
        self, chunk: Sequence[Pair], *, corpus: str, pair_set: "PairSet | None"
    ) -> None:
        is_kept = self._is_kept[corpus]
        first = len(is_kept)
        is_kept.extend(itertools.repeat(True, len(chunk)))
        sides = [cleaning_rules.split_sides(pair, self._data) for pair in chunk]
        indices = list(range(len(chunk)))
        for removals, find in zip(self.removals, self._rules.values(), strict=False):
            reasons = find([sides[n] for n in indices])
            for n, reason in zip(indices, reasons, strict=True):
                if reason:
                    removals.add(Example(corpus, first + n + 1, reason, chunk[n]))
                    is_kept[first + n] = False
            indices = [n for n in indices if is_kept[first + n]]
        if pair_set is None:
            return
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


def hash_text(text: str) -> int:
    """Return a number of 64 bits that stands for a text."""
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8)
    return int.from_bytes(digest.digest(), "little")


def _hashes(pairs: Sequence[Pair]) -> UInt64[np.ndarray, "N"]:
    texts = ("\n".join(" ".join(side.split()) for side in pair) for pair in pairs)
    return np.fromiter(map(hash_text, texts), np.uint64, len(pairs))


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
