"""Name the files and lines of what checks find, in texts of several files."""

import dataclasses
from collections.abc import Mapping, Sequence

from vaswani_jax.data.sources import Location
from vaswani_jax.text_checks.findings import Example, Finding
from vaswani_jax.text_checks.reading import Text

# A split, and a corpus of it.
_Name = tuple[str, str]


def add_locations(
    all_findings: Sequence[Finding], texts: Sequence[Text]
) -> list[Finding]:
    """Return findings that name file and line where a text has several files."""
    numbers: dict[_Name, set[int]] = {(t.split, t.corpus): set() for t in texts}
    for finding in all_findings:
        for name, number in _numbers(finding):
            numbers.setdefault(name, set()).add(number)
    locations = {
        (text.split, text.corpus): text.locate(numbers[text.split, text.corpus])
        for text in texts
    }
    return [_with_locations(finding, locations) for finding in all_findings]


def _numbers(finding: Finding) -> list[tuple[_Name, int]]:
    name = finding.split, finding.corpus
    result = [(name, number) for lines in finding.lines for number in lines]
    result += [(_name(e, finding), e.number) for e in finding.examples]
    return result


def _name(example: Example, finding: Finding) -> _Name:
    """Return the text that an example is of."""
    if example.split:
        return example.split, example.corpus
    return finding.split, finding.corpus


def _with_locations(
    finding: Finding, locations: Mapping[_Name, Mapping[int, Location]]
) -> Finding:
    text_locations = locations.get((finding.split, finding.corpus), {})
    parts = [
        f"lines {first:,} to {last:,} are "
        + _describe_part(text_locations[first], text_locations[last])
        for first, last in finding.lines
        if first in text_locations and last in text_locations
    ]
    examples = []
    for example in finding.examples:
        location = locations.get(_name(example, finding), {}).get(example.number)
        if location:
            text = _describe(location, side=example.side or "source")
            example = dataclasses.replace(example, location=text)
        examples.append(example)
    return dataclasses.replace(finding, locations=parts, examples=examples)


def _describe_part(first: Location, last: Location) -> str:
    if first.source == last.source:
        return f"{first.source}, lines {first.line:,} to {last.line:,}"
    return f"{_describe(first)} to {_describe(last)}"


def _describe(location: Location, *, side: str = "source") -> str:
    path = location.target if side == "target" else location.source
    return f"{path}, line {location.line:,}"
