"""Name the cleaning settings that leave out what checks of training text find."""

import dataclasses
from collections.abc import Sequence
from typing import Any

from vaswani_jax.core import config, types
from vaswani_jax.text_checks.findings import Finding

# The settings of configs/raw_text.py, by the kinds of findings.
SETTINGS: dict[str, tuple[str, Any]] = {
    "broken_encoding": ("clean_encodings", True),
    "control_characters": ("clean_control_characters", True),
    "duplicates": ("clean_duplicates", True),
    "empty": ("clean_empty", True),
    "equal_sides": ("clean_equal_sides", True),
    "language": ("clean_language_odds", 100),
    "length_ratio": ("clean_max_ratio", 2.5),
    "other_script": ("clean_min_script", 0.5),
    "swapped_lines": ("clean_language_odds", 100),
    "untranslated": ("clean_language_odds", 100),
}
# Cleaning is no remedy where it would leave out most of a text.
MAX_SHARE = 0.5
# `clean_max_ratio` counts from sides of equal length: in text whose sides usually
# differ more than this, it leaves out good pairs.
MAX_USUAL_RATIO = 1.5


def add_cleaning_remedies(
    all_findings: Sequence[Finding],
    data: config.DataConfig,
    *,
    usual_ratio: float = 1.0,
) -> tuple[list[Finding], list[str]]:
    """Name the settings that leave out what a finding is about, unless they are on.

    Held-out text is never cleaned. A limit is on if it leaves out all that the value
    of `SETTINGS` does.

    Args:
        all_findings: The findings of all checks.
        data: Has the cleaning settings.
        usual_ratio: The largest `lengths.usual_ratio` of the training text.

    Returns:
        The findings, without those whose setting is on, and a note for each of these.
    """
    remaining, notes = [], []
    for finding in all_findings:
        setting, value = SETTINGS.get(finding.kind, ("", None))
        is_unfit = setting == "clean_max_ratio" and usual_ratio > MAX_USUAL_RATIO
        if data.source == "treebank" or is_unfit:  # trees are never cleaned
            setting = ""
        is_cleaned = finding.split == "train" and finding.share < MAX_SHARE
        if not setting or not is_cleaned:
            remaining.append(finding)
        elif _is_on(setting, value, data):
            text = f"{types.SPLIT_NAMES['train']} {finding.corpus}".rstrip()
            on = f"data.{setting}={getattr(data, setting)} is on"
            notes.append(f"{text}: {finding.message}; {on}")
        else:
            remedies = [f"--config.data.{setting}={value}", *finding.remedies]
            remaining.append(dataclasses.replace(finding, remedies=remedies))
    return remaining, notes


def _is_on(setting: str, value: Any, data: config.DataConfig) -> bool:
    current = getattr(data, setting)
    if setting == "clean_min_script":  # the only limit from below
        return bool(current >= value)
    return bool(current) and (value is True or current <= value)
