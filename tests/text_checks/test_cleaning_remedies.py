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
    assert not remaining and f"data.{key} leaves them out" in note
    # Cleaning would leave out most of this text.
    assert cleaning_remedies.add_cleaning_remedies([finding(kind, share=0.9)], on)[0]
    assert cleaning_remedies.add_cleaning_remedies([finding(kind, split="test")], on)[
        0
    ] == [finding(kind, split="test")]


def test_values_are_those_of_the_preset_for_raw_text() -> None:
    preset = load_module("raw_text").CLEANING
    for key, value in cleaning_remedies.SETTINGS.values():
        assert preset[f"data.{key}"] == value


def test_what_no_setting_mends_stays_as_it_is() -> None:
    assert cleaning_remedies.add_cleaning_remedies([finding("misaligned")], DATA) == (
        [finding("misaligned")],
        [],
    )
