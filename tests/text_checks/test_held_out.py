"""Held-out pairs that are in the training text."""

import pytest

from tests.text_checks import texts
from vaswani_jax.text_checks import held_out
from vaswani_jax.text_checks.findings import Finding
from vaswani_jax.text_checks.sample import Pair

TRAIN = texts.sentences(200)


def overlap(
    valid: list[Pair], train: list[Pair]
) -> tuple[dict[str, float], list[Finding]]:
    watched = held_out.HeldOutSearch({"valid": valid})
    watched.add(train[:150], first_line=1)
    watched.add(train[150:], first_line=151)
    return watched.measures()["valid"], watched.find(is_file=True)


def test_clean_text_does_not_overlap() -> None:
    clean = texts.clean("de")
    assert overlap(clean["valid"], clean["train"])[1] == []
    measures, found = overlap([("Oh, it is late", "x")], [("Ah, he was early", "x")])
    assert not any(measures.values()) and not found


@pytest.mark.parametrize(
    ("count", "severity"), [(0, None), (2, "minor"), (20, "serious")]
)
def test_copied_pairs_are_counted(count: int, severity: str | None) -> None:
    lines = [
        (f"{n} " + " ".join(str(n * k % 101) for k in range(2, 9)), f"z{n}")
        for n in range(100)
    ]
    train = [*TRAIN, *lines[:count]]
    measures, found = overlap(lines, train)
    assert measures["same_pair"] == count / 100 == measures["same_source"]
    assert [str(finding.severity) for finding in found] == [severity] * bool(severity)
    if found:
        assert str(found[0].examples[0]).startswith("training line 201: 0 ")
        assert "--config.data.valid_source=FILE" in found[0].remedies[1]


def test_nearly_copied_pairs_are_found_by_both_sides() -> None:
    source = "The little dog of our neighbours runs over the wet grass"
    target = "Der kleine Hund unserer Nachbarn rennt über das nasse Gras"
    near = (f"{source.upper()} today!", target.replace("Gras", "Feld"))
    measures, [finding] = overlap([(source, target)], [near])
    assert (measures["same_pair"], measures["near_pair"]) == (0, 1)
    assert str(finding.examples[0]).startswith("training line 1: THE LITTLE")
    # Of a near and the same pair, the same is shown, where it is.
    [same] = overlap([(source, target)], [near, (source, target)])[1]
    assert str(same.examples[0]).startswith("training line 2: The little")
    assert (
        finding.severity == "serious" and "with near copies, 100.0%" in finding.message
    )
    # Another translation of the same source is other text.
    measures, found = overlap([(source, target)], [(source, "Etwas ganz anderes hier")])
    assert measures == {"same_pair": 0, "near_pair": 0, "same_source": 1}
    assert not found


def test_lines_have_shingles_in_common_as_counted_by_hand() -> None:
    # Of 1 2 3 4 5 6, and of 1 2 3 4 5 7: 3 of 5 different shingles.
    measures, _ = overlap([("1 2 3 4 5 6", "1 2 3 4 5 6")], [("1 2 3 4 5 7",) * 2])
    assert measures["near_pair"] == 1
    measures, _ = overlap([("1 2 3 4 5 6", "1 2 3 4 5 6")], [("1 2 3 4 8 7",) * 2])
    assert measures["near_pair"] == 0


def test_lines_that_only_begin_alike_are_no_copies() -> None:
    opening = " ".join(f"o{n}" for n in range(40))
    held_out_line, training_line = (
        f"{opening} {' '.join(f'{letter}{n}' for n in range(160))}" for letter in "ab"
    )
    measures, found = overlap([(held_out_line,) * 2], [(training_line,) * 2])
    assert measures == {"same_pair": 0, "near_pair": 0, "same_source": 0}
    assert not found
    # One more word in the middle makes a near copy.
    longer_line = training_line.replace(opening, f"{opening} today")
    measures, _ = overlap([(training_line,) * 2], [(longer_line,) * 2])
    assert measures == {"same_pair": 0, "near_pair": 1, "same_source": 0}


def test_held_out_lines_are_looked_at_up_to_a_number_of_shingles(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(held_out, "MAX_SHINGLES", 15)
    # Each pair has 5 shingles on each side.
    lines = [(" ".join(f"{name}{n}" for n in range(7)),) * 2 for name in "abc"]
    assert overlap(lines, lines[:1])[0]["same_pair"] == 1 / 2


def test_short_lines_that_everybody_says_are_no_finding_but_many_are() -> None:
    greetings = [(f"Yes {n}.", f"Ja {n}.") for n in range(30)]
    others = [(f"No {n}.", f"Nein {n}.") for n in range(91)]
    measures, found = overlap([*others, *greetings[:9]], greetings)
    assert measures["same_pair"] == 0.09 and not found
    _, [finding] = overlap([*others, *greetings], greetings)
    assert finding.severity == "serious"


def test_places_name_their_corpus() -> None:
    watched = held_out.HeldOutSearch({"test": [("a b c d e", "x")] * 1})
    watched.add([("u", "v"), ("a b c d e", "x")], first_line=1, corpus="news")
    [finding] = watched.find(is_file=False)
    assert str(finding.examples[0]).startswith("training news line 2: a b c d e")
    assert len(finding.remedies) == 1
