"""The result of a check of data: measures of each text, findings, notes."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from vaswani_jax.core import plurals, types
from vaswani_jax.text_checks import findings
from vaswani_jax.text_checks.findings import Finding, Severity

# Columns of the text.
_WIDTH, _NUMBER = 18, 10
_FIGURES = {
    "mean": "mean",
    "median": "median",
    "95% up to": "95%",
    "longest": "maximum",
}


@dataclasses.dataclass(frozen=True)
class DataReport:
    """The result of `check_data` for the texts of a configuration or of a run.

    Attributes:
        texts: Measures of each text, by "train", "valid" and "test"; by "train NAME"
            for each of several corpora.
        findings: What is wrong, serious findings first.
        notes: What is not checked and why, what is read instead of missing text, and
            faults that the settings of cleaning leave out.
    """

    texts: Mapping[str, Mapping[str, Any]]
    findings: Sequence[Finding]
    notes: Sequence[str]

    @property
    def is_serious(self) -> bool:
        """True if a finding makes training or scores worthless."""
        return any(f.severity is Severity.SERIOUS for f in self.findings)

    def to_dict(self) -> dict[str, Any]:
        """Return all of it as JSON can hold it."""
        return {
            "serious": self.is_serious,
            "texts": {name: dict(measures) for name, measures in self.texts.items()},
            "findings": [
                dataclasses.asdict(finding)
                | {"examples": list(map(str, finding.examples))}
                for finding in self.findings
            ],
            "notes": list(self.notes),
        }

    def describe(self) -> str:
        """Return all of it as text: measures, then findings with their remedies."""
        blocks = [_describe_text(name, text) for name, text in self.texts.items()]
        blocks += [describe_finding(finding) for finding in self.findings]
        if self.notes:
            blocks.append("\n".join(f"note: {note}" for note in self.notes))
        return "\n\n".join([*blocks, self._verdict()])

    def _verdict(self) -> str:
        if not self.findings:
            return "nothing found"
        numbers = [
            f"{number} {severity}"
            for severity in Severity
            if (number := sum(f.severity is severity for f in self.findings))
        ]
        return f"found: {', '.join(numbers)}"


def describe_finding(finding: Finding) -> str:
    """Return a finding as lines: its message, its remedies, examples."""
    text = f"{finding.split} {finding.corpus}".rstrip()
    lines = [f"{finding.severity}: {text}: {finding.message} [{finding.kind}]"]
    for number, remedy in enumerate(finding.remedies):
        lines.append(f"  {'or' if number else 'fix'}: {remedy}")
    lines += [f"  {text}" for text in (*finding.locations, *finding.examples)]
    return "\n".join(lines)


def _describe_text(name: str, text: Mapping[str, Any]) -> str:
    lines = [f"{name}: {text['pairs']:,} pairs, {text['origin']}"]
    lines.append(_line("", "".join(f"{name:>{_NUMBER}}" for name in _FIGURES)))
    for unit in ("characters", "words", "tokens"):
        lines += [
            _line(f"{side} {unit}", _describe_lengths(lengths))
            for side, lengths in text.get(unit, {}).items()
            if "mean" in lengths  # Without pairs there is no mean.
        ]
    if "tokens" in text:
        lines.append(
            _line("segmentation", _of_sides(text["tokens"], _describe_segmentation))
        )
    for key, label in (("scripts", "letters"), ("languages", "languages")):
        if any(text.get(key, {}).values()):
            lines.append(_line(label, _of_sides(text[key], _describe_shares)))
    repetitions = [
        f"{noun} {findings.percent(text[key])}"
        for key, noun in (
            ("repeated_pairs", "pairs"),
            ("repeated_sources", "sources"),
            ("repeated_targets", "targets"),
        )
    ]
    lines.append(_line("repeated", ", ".join(repetitions)))
    if (agreement := text.get("agreement")) is not None:
        lines.append(
            _line(
                "alignment",
                f"{findings.percent(agreement)} of targets fit better than others "
                "close by (50% by chance)",
            )
        )
    if "same_pair" in text:
        lines.append(
            _line(
                "in training",
                f"same pair {findings.percent(text['same_pair'])}, with near copies "
                f"{findings.percent(text['near_pair'])}, same source "
                f"{findings.percent(text['same_source'])}",
            )
        )
    return "\n".join(lines)


def _line(label: str, text: str) -> str:
    return f"  {label:<{_WIDTH}}{text}"


def _of_sides(values: Mapping[str, Any], describe: Any) -> str:
    return "; ".join(
        f"{side}: {describe(values[side])}" for side in types.SIDES if values.get(side)
    )


def _describe_lengths(lengths: Mapping[str, float]) -> str:
    mean, *quantiles = (lengths[name] for name in _FIGURES.values())
    numbers = [f"{mean:,.1f}", *(f"{number:,}" for number in quantiles)]
    return "".join(f"{number:>{_NUMBER}}" for number in numbers)


def _describe_segmentation(segmentation: Mapping[str, float]) -> str:
    return (
        f"{segmentation['per_word']:.2f} tokens a word, unknown "
        f"{findings.percent(segmentation['unknown'])}, bytes "
        f"{findings.percent(segmentation['bytes'])}"
    )


def _describe_shares(shares: Mapping[str, float]) -> str:
    common = [
        f"{name} {findings.percent(share)}" for name, share in list(shares.items())[:3]
    ]
    num_rare = len(shares) - len(common)
    rare = [plurals.format_count(num_rare, "other")] if num_rare else []
    return ", ".join([*common, *rare])
