"""Repeated pairs and lines."""

import collections
import random
from typing import Any

import pytest

from tests.text_checks import texts
from vaswani_jax.data import cleaning
from vaswani_jax.text_checks import duplicates
from vaswani_jax.text_checks.sample import Pair


def counted(pairs: list[Pair], **options: Any) -> duplicates.Duplicates:
    result = duplicates.Duplicates(**options)
    for begin in range(0, len(pairs), 50):
        result.add(pairs[begin : begin + 50])
    return result


def kinds(pairs: list[Pair]) -> list[tuple[str, str]]:
    found = counted(pairs).find(split="train", may_copy=False)
    return [(finding.kind, str(finding.severity)) for finding in found]


def test_clean_text_has_no_finding() -> None:
    assert kinds(texts.sentences(200)) == []
    assert kinds([]) == []


def test_repeated_pairs_are_counted() -> None:
    pairs = texts.sentences(90)
    measures = counted([*pairs, *pairs[:10]]).measures()
    assert measures["repeated_pairs"] == measures["repeated_sources"] == 0.1
    assert kinds([*pairs, *pairs[:10]]) == [("duplicates", "minor")]
    assert kinds([*pairs[:40], *pairs[:40]]) == [("duplicates", "serious")]
    # A sentence with several translations is no fault.
    several = [(source, f"{target} {n}") for source, target in pairs for n in range(2)]
    assert counted(several).measures()["repeated_sources"] == 0.5
    assert kinds(several) == []


def test_untranslated_pairs_are_found_but_where_text_is_copied() -> None:
    pairs = texts.sentences(100)
    pairs[:10] = [(source, source) for source, _ in pairs[:10]]
    assert kinds(pairs) == [("equal_sides", "minor")]
    assert counted(pairs).find(split="train", may_copy=True) == []
    # A tag makes no translation.
    tagged = counted(
        [(f"<2de> {source}", target) for source, target in pairs],
        remove_tag=lambda line: line.removeprefix("<2de>"),
    )
    assert tagged.measures()["equal_sides"] == 0.1
    # Numbers and names stay as they are.
    assert (
        kinds([*pairs[10:], *((f"{n} Paris", f"{n} Paris") for n in range(50))]) == []
    )


def test_untranslated_pairs_are_found_in_languages_without_spaces() -> None:
    pairs = texts.sentences(90)
    copies = [
        (line, line) for line in (f"我今天去北京明天回上海{n}" for n in range(10))
    ]
    assert kinds([*pairs, *copies]) == [("equal_sides", "minor")]
    names = [(line, line) for line in (f"北京{n}" for n in range(10))]
    assert kinds([*pairs, *names]) == []


def test_one_line_all_over_a_side_is_shown() -> None:
    pairs = texts.sentences(100)
    pairs[:40] = [(source, "Kommentar melden") for source, _ in pairs[:40]]
    [finding] = counted(pairs).find(split="train", may_copy=False)
    assert (finding.kind, finding.severity, finding.share) == (
        "one_line",
        "serious",
        0.4,
    )
    assert "target" in finding.message and "Kommentar melden" in finding.message
    # Many different sources do not hide it.
    text = duplicates.Duplicates()
    text.add([(f"source {n}", "Kommentar melden") for n in range(2000)])
    [finding] = text.find(split="train", may_copy=False)
    assert "Kommentar melden" in finding.message


def test_pairs_of_several_corpora_are_counted_once_for_each() -> None:
    pairs = texts.sentences(90)
    for max_kept in (10_000, 60):
        across = duplicates.AcrossCorpora(max_kept=max_kept)
        across.add(counted(pairs[:60] + pairs[:30], max_kept=max_kept))
        assert across.find() == []
        across.add(counted(pairs[30:], max_kept=10_000))
        # Of 60 and 60 different pairs, 30 are in both.
        tolerance = 0.1 if max_kept == 60 else 1e-9
        [finding] = across.find()
        assert finding.share == pytest.approx(0.25, abs=tolerance)
        assert (finding.kind, finding.severity) == ("duplicates", "minor")


def test_in_bounded_memory_shares_are_nearly_the_same() -> None:
    generator = random.Random(0)
    lines = [str(generator.randrange(3000)) for _ in range(4000)]
    exact = duplicates.Hashes()
    bounded = duplicates.Hashes(max_kept=500)
    for hashes in (exact, bounded):
        hashes.add(map(cleaning.hash_text, lines))
    distinct = len(collections.Counter(lines))
    assert exact.share_repeated() == pytest.approx(1 - distinct / 4000)
    assert len(bounded.counts()[0]) <= 500
    assert bounded.share_repeated() == pytest.approx(1 - distinct / 4000, abs=0.1)


@pytest.mark.parametrize("line", ["again", "more", "once", "not", "other"])
def test_a_common_line_is_counted_in_bounded_memory(
    line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(duplicates, "_BUFFER", 500)
    lines = [line] * 3000 + list(map(str, range(7000)))
    random.Random(0).shuffle(lines)
    for max_kept in (10_000, 400):
        hashes = duplicates.Hashes(max_kept=max_kept)
        for begin in range(0, len(lines), 50):
            hashes.add(map(cleaning.hash_text, lines[begin : begin + 50]))
        value, share = hashes.largest()
        assert value == cleaning.hash_text(line)
        assert share == 0.3
        assert hashes.share_repeated() == pytest.approx(0.2999)
