"""Cleaning settings among the remedies of findings."""

import dataclasses

import pytest

from tests import settings
from vaswani_jax.core.config import SETTINGS
from vaswani_jax.core.presets import load_module
from vaswani_jax.text_checks import cleaning_remedies
from vaswani_jax.text_checks.findings import Finding, Severity

DATA = settings.small_settings().data


def finding(kind: str, *, split: str = "train", share: float = 0.1) -> Finding:
    return Finding(
        kind=kind,
        severity=Severity.MINOR,
        split=split,
        message="lines are bad",
        share=share,
        remedies=["look at them"],
    )


@pytest.mark.parametrize("kind", cleaning_remedies.SETTINGS)
def test_a_finding_names_its_setting_until_it_is_on(kind: str) -> None:
    key, value = cleaning_remedies.SETTINGS[kind]
    [finding_with_setting], notes = cleaning_remedies.add_cleaning_remedies(
        [finding(kind)], DATA
    )
    assert finding_with_setting.remedies == [
        f"--config.data.{key}={value}",
        "look at them",
    ]
    assert not notes
    on = dataclasses.replace(DATA, **{key: SETTINGS[f"data.{key}"].type(value)})
    remaining, [note] = cleaning_remedies.add_cleaning_remedies([finding(kind)], on)
    assert not remaining
    assert note == f"training: lines are bad; data.{key}={getattr(on, key)} is on"
    # Cleaning would leave out most of this text.
    for data in (DATA, on):
        assert cleaning_remedies.add_cleaning_remedies(
            [finding(kind, share=0.9)], data
        ) == ([finding(kind, share=0.9)], [])
    assert cleaning_remedies.add_cleaning_remedies([finding(kind, split="test")], on)[
        0
    ] == [finding(kind, split="test")]


def test_trees_are_not_cleaned() -> None:
    trees = dataclasses.replace(DATA, source="treebank")
    found = [finding("duplicates")]
    assert cleaning_remedies.add_cleaning_remedies(found, trees) == (found, [])


def test_no_limit_of_ratios_is_named_where_good_pairs_are_beyond_it() -> None:
    on = dataclasses.replace(DATA, clean_max_ratio=2.5)
    found = [finding("length_ratio"), finding("empty")]
    for data in (DATA, on):
        [first, second], notes = cleaning_remedies.add_cleaning_remedies(
            found, data, usual_ratio=1.6
        )
        assert first == found[0] and not notes
        assert second.remedies[0] == "--config.data.clean_empty=True"


@pytest.mark.parametrize(
    ("kind", "key", "weak", "strict"),
    [
        ("length_ratio", "clean_max_ratio", 50.0, 2.0),
        ("other_script", "clean_min_script", 0.1, 0.8),
        ("language", "clean_language_odds", 1e9, 10.0),
    ],
)
def test_a_weaker_limit_leaves_the_finding(
    kind: str, key: str, weak: float, strict: float
) -> None:
    for value, is_on in ((weak, False), (strict, True)):
        data = dataclasses.replace(DATA, **{key: value})
        remaining, notes = cleaning_remedies.add_cleaning_remedies(
            [finding(kind)], data
        )
        assert (len(remaining), len(notes)) == (not is_on, is_on)


def test_values_are_those_of_the_preset_for_raw_text() -> None:
    preset = load_module("raw_text").CLEANING
    for key, value in cleaning_remedies.SETTINGS.values():
        assert preset[f"data.{key}"] == value


def test_what_no_setting_mends_stays_as_it_is() -> None:
    assert cleaning_remedies.add_cleaning_remedies([finding("misaligned")], DATA) == (
        [finding("misaligned")],
        [],
    )
