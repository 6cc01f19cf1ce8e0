"""Section 6.3: score constituents by the rules of EVALB, the usual scorer of parsers.

A constituent is a label over a span of words. F1 compares those of two trees over the
same words, by the rules of EVALB (Sekine and Collins, 1997): punctuation does not
count, and function tags and indices are cut off labels, so that NP-SBJ-1 is NP. All
figures are of sums over the sentences, never means of their scores.

`score` is for trees over the words of the reference. Its tags decide what is
punctuation, every sentence counts, and an outermost bracket that is no constituent
(ROOT, TOP, S1, or without a label) does not. `score_as_evalb` gives EVALB's own
figures: they depend on the tags of both files, and leave out sentences whose words
differ.
"""

import collections
import dataclasses
import logging
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from vaswani_jax import __version__
from vaswani_jax.data import linearization, treebank
from vaswani_jax.data.treebank import Tree
from vaswani_jax.evaluation.bracketing_score import BracketingScore, Counts, percent

logger = logging.getLogger(__name__)
# EVALB's second table is of sentences of at most this length (CUTOFF_LEN).
CUTOFF_LENGTH = 40


@dataclasses.dataclass(frozen=True)
class Parameters:
    """Rules from a parameter file of EVALB.

    Attributes:
        name: The file's name without its ending, for the signature.
        deleted_labels: Labels to ignore: a word with such a tag is dropped, a
            constituent loses its bracket.
        equivalent_labels: Labels, and the label that each counts as.
        label_separators: Characters that end the label of a constituent.
    """

    name: str
    deleted_labels: frozenset[str]
    equivalent_labels: Mapping[str, str]
    label_separators: str = "-="

    def counts_as(self, label: str) -> str:
        """Return the label that a label counts as.

        >>> COLLINS.counts_as("PRT"), COLLINS.counts_as("NP")
        ('ADVP', 'NP')
        """
        return self.equivalent_labels.get(label, label)

    def category(self, label: str) -> str:
        """Return what the label of a constituent counts as.

        >>> [COLLINS.category(label) for label in ("NP-SBJ-1", "NP=2", "PRT-2", "-X-")]
        ['NP', 'NP', 'ADVP', '']
        """
        separators = f"[{re.escape(self.label_separators)}]"
        return self.counts_as(re.split(separators, label)[0])


# The usual one for the Wall Street Journal.
COLLINS = Parameters(
    "COLLINS",
    deleted_labels=frozenset(["TOP", treebank.EMPTY, ",", ":", "``", "''", "."]),
    equivalent_labels={"PRT": "ADVP"},
)
# That of the Berkeley Neural Parser.
NK = dataclasses.replace(
    COLLINS, name="nk", deleted_labels=COLLINS.deleted_labels | {"S1", "?", "!"}
)
PARAMETERS = {parameters.name: parameters for parameters in (COLLINS, NK)}


def score(
    gold: Sequence[Tree], test: Sequence[Tree], *, parameters: Parameters = COLLINS
) -> BracketingScore:
    """Return the score of trees over the words of the reference.

    Args:
        gold: The reference, one tree for each sentence. Empty elements (-NONE-) are no
            words, neither here nor in the test.
        test: As many trees, in the same order.
        parameters: Which labels do not count.

    Raises:
        treebank.WordMismatchError: The words of a tree differ from its reference's.
        ValueError: The numbers of trees differ or are 0.
    """
    numbers = f"{len(gold):,} gold trees and {len(test):,} test trees"
    if len(gold) != len(test):
        raise ValueError(f"every gold tree needs one test tree, got {numbers}")
    if not gold:
        raise ValueError(f"a score needs at least one tree, got {numbers}")
    sentences = []
    has_tags = False
    for number, pair in enumerate(zip(gold, test, strict=True), start=1):
        gold_words, test_words = (_drop_empty(tree.leaves()) for tree in pair)
        if reason := _first_difference(gold_words, test_words):
            raise treebank.WordMismatchError(number, reason)
        has_tags |= any(leaf.label != linearization.WORD for leaf in test_words)
        keeps = [leaf.label not in parameters.deleted_labels for leaf in gold_words]
        gold_side, test_side = (
            _read_side(_strip_root(tree), keeps=keeps, parameters=parameters)
            for tree in pair
        )
        sentences.append(
            _compare(
                gold_side, test_side, length=len(gold_words), parameters=parameters
            )
        )
    return _add_up(
        sentences,
        has_tags=has_tags,
        signature=(
            f"bracketing|evalb|prm:{parameters.name}|tags:reference"
            f"|sentences:{len(sentences)}|v:{__version__}"
        ),
    )


def score_as_evalb(
    gold: Sequence[Sequence[Tree] | None],
    test: Sequence[Sequence[Tree] | None],
    *,
    parameters: Parameters = COLLINS,
) -> BracketingScore:
    """Return the figures of EVALB for two files, line by line.

    Like EVALB, it leaves out sentences whose words differ (errors) and those without
    words in the test (skips), and warns if a file has more lines than the other.
    Unlike EVALB, it does not stop at the twelfth error.

    Args:
        gold: The trees of each line, None for a line that is not of trees.
        test: Those of the test.
        parameters: Which labels do not count.

    Raises:
        ValueError: No sentence is left.
    """
    if len(gold) != len(test):
        logger.warning(
            f"the gold file has {len(gold):,} lines, the test file {len(test):,}: "
            "the last lines of the longer one are left out"
        )
    sentences = []
    mismatches = []
    errors = skips = 0
    pairs = zip(gold, test, strict=False)
    for number, (gold_line, test_line) in enumerate(pairs, start=1):
        if gold_line is None or test_line is None:
            errors += 1
            continue
        gold_leaves, test_leaves = (
            _drop_empty(leaf for tree in line for leaf in tree.leaves())
            for line in (gold_line, test_line)
        )
        gold_side, test_side = (
            _read_side(
                line,
                keeps=[leaf.label not in parameters.deleted_labels for leaf in leaves],
                parameters=parameters,
            )
            for line, leaves in ((gold_line, gold_leaves), (test_line, test_leaves))
        )
        if not test_side.words:
            skips += 1
        elif difference := _first_difference(gold_side.words, test_side.words):
            errors += 1
            mismatches.append(f"line {number:,}: {difference}")
        else:
            length = len(gold_leaves)
            sentences.append(
                _compare(gold_side, test_side, length=length, parameters=parameters)
            )
    if not sentences:
        reason = f"; {mismatches[0]}" if mismatches else ""
        raise ValueError(
            f"no sentence is left to score (errors: {errors:,}, skips: {skips:,})"
            f"{reason}"
        )
    if mismatches:
        logger.warning(
            f"{mismatches[0]}; counted as an error, as are all lines with different "
            f"words, {len(mismatches):,} in these files"
        )
    return _add_up(
        sentences,
        has_tags=True,
        errors=errors,
        skips=skips,
        signature=(
            f"bracketing|evalb|prm:{parameters.name}|tags:own"
            f"|sentences:{len(sentences)}|errors:{errors}|skips:{skips}"
            f"|v:{__version__}"
        ),
    )


class _Constituent(NamedTuple):
    """A label over the words from `start` to before `end`."""

    start: int
    end: int
    label: str

    def crosses(self, rival: "_Constituent") -> bool:
        """Return whether both have words in common, and each a word of its own."""
        return (
            self.start < rival.start < self.end < rival.end
            or rival.start < self.start < rival.end < self.end
        )


class _Side(NamedTuple):
    """Words and constituents of a sentence that count."""

    words: list[Tree]
    constituents: collections.Counter[_Constituent]


@dataclasses.dataclass(frozen=True)
class _Sentence:
    """Counts of one sentence, by label."""

    length: int
    gold: collections.Counter[str]
    test: collections.Counter[str]
    matched: collections.Counter[str]
    matched_spans: int
    crossing: int
    num_words: int
    correct_tags: int

    @property
    def is_complete(self) -> bool:
        return self.gold.total() == self.test.total() == self.matched.total()


def _read_side(
    trees: Sequence[Tree], *, keeps: Iterable[bool], parameters: Parameters
) -> _Side:
    """Return what counts of a sentence.

    Args:
        trees: Its tree, or several side by side.
        keeps: For each word whether it counts; empty elements are none.
        parameters: Which labels do not count.
    """
    words: list[Tree] = []
    constituents: collections.Counter[_Constituent] = collections.Counter()
    remaining_keeps = iter(keeps)
    # Trees to read, and of what was read the label and the first word.
    stack: list[Tree | tuple[str, int]] = [*reversed(trees)]
    while stack:
        entry = stack.pop()
        if isinstance(entry, tuple):
            label, start = entry
            if start < len(words) and label not in parameters.deleted_labels:
                constituents[_Constituent(start, len(words), label)] += 1
        elif entry.children:
            stack.append((parameters.category(entry.label), len(words)))
            stack.extend(reversed(entry.children))
        elif entry.label != treebank.EMPTY and next(remaining_keeps):
            words.append(entry)
    return _Side(words, constituents)


def _compare(
    gold: _Side, test: _Side, *, length: int, parameters: Parameters
) -> _Sentence:
    """Return what a sentence adds to the sums; both sides have the same words."""
    matches = gold.constituents & test.constituents
    return _Sentence(
        length=length,
        gold=_labels(gold.constituents),
        test=_labels(test.constituents),
        matched=_labels(matches),
        matched_spans=(_spans(gold.constituents) & _spans(test.constituents)).total(),
        crossing=sum(
            count
            for constituent, count in test.constituents.items()
            if any(map(constituent.crosses, gold.constituents))
        ),
        num_words=len(gold.words),
        correct_tags=sum(
            parameters.counts_as(gold_word.label)
            == parameters.counts_as(test_word.label)
            for gold_word, test_word in zip(gold.words, test.words, strict=True)
        ),
    )


def _labels(
    constituents: collections.Counter[_Constituent],
) -> collections.Counter[str]:
    return collections.Counter(c.label for c in constituents.elements())


def _spans(
    constituents: collections.Counter[_Constituent],
) -> collections.Counter[tuple[int, int]]:
    return collections.Counter(c[:2] for c in constituents.elements())


def _add_up(
    sentences: Sequence[_Sentence],
    *,
    has_tags: bool,
    signature: str,
    errors: int = 0,
    skips: int = 0,
) -> BracketingScore:
    """Return the score of all sentences."""
    counts = _counts(sentences)
    crossing = sum(sentence.crossing for sentence in sentences)
    num_words = sum(sentence.num_words for sentence in sentences)
    correct_tags = sum(sentence.correct_tags for sentence in sentences)
    matched_spans = sum(sentence.matched_spans for sentence in sentences)
    return BracketingScore(
        counts=counts,
        complete_match=percent(
            sum(sentence.is_complete for sentence in sentences), len(sentences)
        ),
        crossing=crossing / len(sentences),
        no_crossing=percent(
            sum(not sentence.crossing for sentence in sentences), len(sentences)
        ),
        short=_counts([s for s in sentences if s.length <= CUTOFF_LENGTH]),
        unlabelled=dataclasses.replace(counts, matched=matched_spans),
        tagging=percent(correct_tags, num_words) if has_tags else None,
        by_label=_by_label(sentences),
        by_length=_by_length(sentences),
        sentences=len(sentences),
        errors=errors,
        skips=skips,
        signature=signature,
    )


def _counts(sentences: Sequence[_Sentence]) -> Counts:
    """Return the sums over sentences."""
    return Counts(
        gold=sum(sentence.gold.total() for sentence in sentences),
        test=sum(sentence.test.total() for sentence in sentences),
        matched=sum(sentence.matched.total() for sentence in sentences),
    )


def _by_label(sentences: Sequence[_Sentence]) -> dict[str, Counts]:
    """Return the sums over sentences for each label, the most frequent first."""
    gold, test, matches = (collections.Counter[str]() for _ in range(3))
    for sentence in sentences:
        gold += sentence.gold
        test += sentence.test
        matches += sentence.matched
    return {
        label: Counts(gold[label], test[label], matches[label])
        for label in sorted(
            {*gold, *test}, key=lambda label: (-gold[label], -test[label], label)
        )
    }


def _by_length(sentences: Iterable[_Sentence]) -> dict[str, Counts]:
    """Return the sums over sentences of similar lengths: 1-5, ..., 31+ words."""
    members: dict[str, list[_Sentence]] = {}
    for sentence in sorted(sentences, key=lambda sentence: sentence.length):
        members.setdefault(treebank.length_class(sentence.length), []).append(sentence)
    return {name: _counts(group) for name, group in members.items()}


def _drop_empty(leaves: Iterable[Tree]) -> list[Tree]:
    """Return the leaves without empty elements."""
    return [leaf for leaf in leaves if leaf.label != treebank.EMPTY]


def _strip_root(tree: Tree) -> list[Tree]:
    """Return the tree, or what an outermost bracket has that is no constituent."""
    parts = [tree]
    while len(parts) == 1 and treebank.is_root(parts[0]):
        parts = list(parts[0].children)
    return parts


def _first_difference(gold: Sequence[Tree], test: Sequence[Tree]) -> str:
    """Return in words where the words of a test tree differ, "" if they do not."""
    for number, (gold_leaf, test_leaf) in enumerate(
        zip(gold, test, strict=False), start=1
    ):
        if gold_leaf.word != test_leaf.word:
            return (
                f"word {number} is {gold_leaf.word!r} in the gold tree, "
                f"{test_leaf.word!r} in the test tree"
            )
    if len(gold) == len(test):
        return ""
    number = min(len(gold), len(test)) + 1
    longer, shorter = ("gold", "test") if len(gold) > len(test) else ("test", "gold")
    word = max(gold, test, key=len)[number - 1].word
    return (
        f"word {number} is {word!r} in the {longer} tree, missing in the {shorter} tree"
    )
