"""Section 6.3: the figures of a parser, as `bracketing` counts them."""

import dataclasses
from collections.abc import Mapping
from typing import Any


@dataclasses.dataclass(frozen=True)
class Counts:
    """Numbers of constituents.

    >>> counts = Counts(gold=4, test=2, matched=2)
    >>> counts.precision, counts.recall, round(counts.f1, 2)
    (100.0, 50.0, 66.67)

    Attributes:
        gold: Those of the reference.
        test: Those of the test.
        matched: Those of both.
    """

    gold: int
    test: int
    matched: int

    @property
    def precision(self) -> float:
        """The share of the test's constituents that match, in percent."""
        return percent(self.matched, self.test)

    @property
    def recall(self) -> float:
        """The share of the reference's constituents that match, in percent."""
        return percent(self.matched, self.gold)

    @property
    def f1(self) -> float:
        """The harmonic mean of precision and recall."""
        return percent(2 * self.matched, self.gold + self.test)

    def as_dict(self) -> dict[str, int | float]:
        """Return the figures, then the numbers, by their names."""
        figures = {"f1": self.f1, "precision": self.precision, "recall": self.recall}
        return figures | dataclasses.asdict(self)


@dataclasses.dataclass(frozen=True)
class BracketingScore:
    """The score of a parser; percentages run from 0 to 100.

    Attributes:
        counts: Counts of constituents over all sentences; `f1`, `precision` and
            `recall` come from these.
        complete_match: Percentage of sentences whose constituents all match.
        crossing: Mean number of a sentence's constituents that cross one of the
            reference.
        no_crossing: Percentage of sentences without such constituents.
        short: Counts for sentences of at most 40 words.
        unlabelled: Counts in which matching words are enough, whatever the label.
        tagging: Percentage of words with the tag of the reference; None if no test tree
            has tags.
        by_label: Counts by label, the most frequent first; PRT counts as ADVP.
        by_length: Counts by the number of words of the sentence.
        sentences: The number of sentences that count.
        errors: Sentences that EVALB leaves out: their words differ, or one of their
            lines is no tree.
        skips: Sentences that EVALB leaves out: the test has no words.
        signature: How the score was computed.
    """

    counts: Counts
    complete_match: float
    crossing: float
    no_crossing: float
    short: Counts
    unlabelled: Counts
    tagging: float | None
    by_label: Mapping[str, Counts]
    by_length: Mapping[str, Counts]
    sentences: int
    errors: int
    skips: int
    signature: str

    @property
    def f1(self) -> float:
        """The harmonic mean of precision and recall, from 0 to 100."""
        return self.counts.f1

    @property
    def precision(self) -> float:
        """The share of the test's constituents that match, in percent."""
        return self.counts.precision

    @property
    def recall(self) -> float:
        """The share of the reference's constituents that match, in percent."""
        return self.counts.recall

    def figures(self) -> dict[str, float]:
        """Return the figures by their names, F1 first; `tagging` if there are tags."""
        figures = {
            "f1": self.f1,
            "precision": self.precision,
            "recall": self.recall,
            "complete_match": self.complete_match,
            "crossing": self.crossing,
            "no_crossing": self.no_crossing,
            "f1_40": self.short.f1,
            "f1_unlabelled": self.unlabelled.f1,
        }
        return figures if self.tagging is None else figures | {"tagging": self.tagging}

    def as_dict(self) -> dict[str, Any]:
        """Return everything, for JSON."""
        return {
            **self.figures(),
            **{name: getattr(self, name) for name in ("sentences", "errors", "skips")},
            "signature": self.signature,
            **{
                name: {key: counts.as_dict() for key, counts in table.items()}
                for name, table in (
                    ("by_label", self.by_label),
                    ("by_length", self.by_length),
                )
            },
        }

    def format(self, *, by_label: bool = False, by_length: bool = False) -> str:
        """Return one line for each figure, F1 with the signature first.

        Args:
            by_label: Add a table of labels.
            by_length: Add a table of sentence lengths.
        """
        rows = [f"{name} {value:.2f}" for name, value in self.figures().items()]
        rows[0] += f"  {self.signature}"
        if by_label:
            rows += _table("label", self.by_label)
        if by_length:
            rows += _table("words", self.by_length)
        return "\n".join(rows)


def percent(part: int, total: int) -> float:
    """Return a part of a total in percent; 0 of nothing.

    >>> percent(1, 4), percent(0, 0)
    (25.0, 0.0)
    """
    return 100 * part / total if total else 0.0


def _table(heading: str, rows: Mapping[str, Counts]) -> list[str]:
    """Return lines of figures and numbers under a heading."""
    width = max(map(len, [heading, *rows]))
    return [
        "",
        f"{heading:{width}}      f1  precision  recall    gold    test",
        *(
            f"{name:{width}}  {counts.f1:6.2f}  {counts.precision:9.2f}  "
            f"{counts.recall:6.2f}  {counts.gold:6d}  {counts.test:6d}"
            for name, counts in rows.items()
        ),
    ]
