"""Kept outputs are read only if they are still those of the run."""

import json
import pathlib

import pytest

from tests import settings
from vaswani_jax.evaluation import bleu, kept_outputs, scores

SOURCE, REFERENCES, OUTPUTS = ["a b", "c"], ["d", "e f"], ["d", "e"]


@pytest.mark.parametrize(
    ("changes", "unrecorded_source", "is_read"),
    [
        ({}, None, True),
        ({}, SOURCE, True),
        ({}, ["a b", "g"], False),
        ({"source": bleu.lines_checksum(SOURCE)}, ["a b", "g"], True),
        ({"references": bleu.lines_checksum(SOURCE)}, None, False),
        ({"search": {"beam_size": 9}}, None, False),
        ({"search": {"a_setting_of_another_version": 9}}, None, True),
        ({"lines": 3}, None, False),
        ({"step": None}, None, False),
    ],
)
def test_outputs_must_be_of_this_text_and_search(
    tmp_path: pathlib.Path,
    changes: dict[str, object],
    unrecorded_source: list[str] | None,
    is_read: bool,
) -> None:
    search = settings.small_settings().search
    (tmp_path / "evaluations").mkdir()
    name = scores.file_name("test", "averaged", search=search)
    path = tmp_path / "evaluations" / f"{name}.json"
    path.with_suffix(".txt").write_text("".join(f"{line}\n" for line in OUTPUTS))
    record = {"step": 4, "lines": 2, "references": bleu.lines_checksum(REFERENCES)}
    path.write_text(json.dumps(record | changes))
    kept = kept_outputs.read(
        tmp_path,
        "averaged",
        split="test",
        search=search,
        source=SOURCE,
        references=REFERENCES,
        find_unrecorded_source=lambda: unrecorded_source,
    )
    assert (kept is not None) == is_read
    if kept:
        assert (kept.lines, kept.step) == (OUTPUTS, 4)
