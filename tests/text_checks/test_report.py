"""What a check says, as text and as JSON."""

import json

from vaswani_jax.text_checks.findings import Example, Finding, Severity
from vaswani_jax.text_checks.report import DataReport

LENGTHS = {"mean": 3.25, "median": 3, "95%": 1005, "maximum": 20_000}
TEXT = {
    "origin": "a.en and a.de",
    "pairs": 12_345,
    "characters": {"source": LENGTHS, "target": LENGTHS},
    "words": {"source": LENGTHS, "target": {}},
    "scripts": {"source": {"Latn": 0.75, "Cyrl": 0.25}, "target": {}},
    "languages": {"source": {}, "target": {}},
    "repeated_pairs": 0.5,
    "repeated_sources": 0.0,
    "repeated_targets": 0.00001,
    "agreement": 0.987,
    "same_pair": 0.1,
    "near_pair": 0.2,
    "same_source": 0.3,
}
FINDING = Finding(
    kind="empty",
    severity=Severity.MINOR,
    split="train",
    corpus="news",
    message="2 pairs have an empty side",
    share=0.01,
    remedies=["do this", "that"],
    lines=[(7, 8)],
    locations=["lines 7 to 8 are a.en, line 2 to a.en, line 3"],
    examples=[Example(7, " | b", location="a.en, line 2"), Example(1234, "c | d")],
)


def test_text_has_measures_findings_and_what_mends_them() -> None:
    lines = DataReport({"train news": TEXT}, [FINDING], ["no"]).describe().split("\n")
    assert lines[0] == "train news: 12,345 pairs, a.en and a.de"
    assert lines[1].split() == ["mean", "median", "95%", "up", "to", "longest"]
    assert lines[3].split() == [*"target characters 3.2 3 1,005 20,000".split()]
    assert [line.index("characters") for line in lines[2:4]] == [9, 9]
    assert {len(line) for line in lines[1:5]} == {60}
    assert "  letters           source: Latn 75.0%, Cyrl 25.0%" in lines
    assert "  repeated          pairs 50.0%, sources 0.0%, targets under 0.01%" in lines
    assert any("98.7% of targets fit better" in line for line in lines)
    assert lines[-11:] == [
        "",
        "minor: train news: 2 pairs have an empty side [empty]",
        "  fix: do this",
        "  or: that",
        "  lines 7 to 8 are a.en, line 2 to a.en, line 3",
        "  a.en, line 2:  | b",
        "  line 1,234: c | d",
        "",
        "note: no",
        "",
        "found: 1 minor",
    ]


def test_a_text_without_pairs_has_no_lengths() -> None:
    segmentation = {"per_word": 0.0, "per_character": 0.0, "unknown": 0.0, "bytes": 0.0}
    none = {"characters": {}, "words": {}, "agreement": None}
    tokens = {"tokens": {"source": segmentation, "target": segmentation}}
    text = DataReport({"train": TEXT | none | tokens}, [], []).describe()
    assert "source tokens" not in text and "source: 0.00 tokens a word" in text


def test_json_has_all_of_it() -> None:
    report = DataReport({"train news": TEXT}, [FINDING], ["no"])
    record = json.loads(json.dumps(report.to_dict()))
    assert record["serious"] is False
    assert record["texts"]["train news"] == TEXT
    [finding] = record["findings"]
    assert (finding["kind"], finding["severity"]) == ("empty", "minor")
    assert finding["examples"] == ["a.en, line 2:  | b", "line 1,234: c | d"]
    assert record["notes"] == ["no"]


def test_clean_text_has_nothing_found() -> None:
    report = DataReport({}, [], [])
    assert report.describe() == "nothing found" and not report.is_serious
