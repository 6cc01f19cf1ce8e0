"""Name the files and lines of what checks find, in texts of several files."""

import dataclasses
from collections.abc import Mapping, Sequence

from vaswani_jax.data.sources import Place
from vaswani_jax.text_checks.findings import Example, Finding
from vaswani_jax.text_checks.reading import Text

# A split, and a corpus of it.
_Name = tuple[str, str]


def add_places(all_findings: Sequence[Finding], texts: Sequence[Text]) -> list[Finding]:
    """Return findings that name file and line where a text has several files."""
    numbers: dict[_Name, set[int]] = {(t.split, t.corpus): set() for t in texts}
    for finding in all_findings:
        for name, number in _numbers(finding):
            numbers.setdefault(name, set()).add(number)
    places = {
        (text.split, text.corpus): text.locate(numbers[text.split, text.corpus])
        for text in texts
    }
    return [_with_places(finding, places) for finding in all_findings]


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


def _with_places(
    finding: Finding, places: Mapping[_Name, Mapping[int, Place]]
) -> Finding:
    text_places = places.get((finding.split, finding.corpus), {})
    parts = [
        f"lines {first:,} to {last:,} are {_describe(text_places[first])} to "
        f"{_describe(text_places[last])}"
        for first, last in finding.lines
        if first in text_places and last in text_places
    ]
    examples = []
    for example in finding.examples:
        place = places.get(_name(example, finding), {}).get(example.number)
        if place:
            text = _describe(place, side=example.side or "source")
            example = dataclasses.replace(example, place=text)
        examples.append(example)
    return dataclasses.replace(finding, places=parts, examples=examples)


def _describe(place: Place, *, side: str = "source") -> str:
    path = place.target if side == "target" else place.source
    return f"{path}, line {place.line:,}"
