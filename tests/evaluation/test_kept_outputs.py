"""Kept outputs are read only if they are still those of the run."""

import json
import pathlib

import pytest

from tests import settings
from vaswani_jax.checkpoints import run_record
from vaswani_jax.evaluation import bleu, kept_outputs, scores

SOURCE, REFERENCES, OUTPUTS = ["a b", "c"], ["d", "e f"], ["d", "e"]


def keep_and_read(
    workdir: pathlib.Path,
    *,
    unrecorded_source: list[str] | None = None,
    **changes: object,
) -> kept_outputs.KeptOutputs | None:
    """Keep outputs as `evaluate` does, with a changed record, and read them."""
    search = settings.small_settings().search
    (workdir / "evaluations").mkdir(exist_ok=True)
    name = scores.file_name("test", "averaged", search=search)
    path = workdir / "evaluations" / f"{name}.json"
    path.with_suffix(".txt").write_text("".join(f"{line}\n" for line in OUTPUTS))
    record = {"step": 4, "lines": 2, "references": bleu.lines_checksum(REFERENCES)}
    path.write_text(json.dumps(record | changes))
    return kept_outputs.read(
        workdir,
        "averaged",
        split="test",
        search=search,
        source=SOURCE,
        references=REFERENCES,
        find_unrecorded_source=lambda: unrecorded_source,
    )


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
    kept = keep_and_read(tmp_path, unrecorded_source=unrecorded_source, **changes)
    assert (kept is not None) == is_read
    if kept:
        assert (kept.lines, kept.step) == (OUTPUTS, 4)


def test_outputs_of_an_earlier_run_are_not_those_of_a_run_without_the_checkpoint(
    tmp_path: pathlib.Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "vaswani_jax")
    small = settings.small_settings()
    run_record.record_start(tmp_path, small, step=0, changes=[])
    first_run = run_record.identify_run(tmp_path)["id"]
    run_record.record_start(tmp_path, small, step=4, changes=[])
    assert keep_and_read(tmp_path, run=first_run)
    run_record.record_start(tmp_path, small, step=0, changes=[])
    assert keep_and_read(tmp_path, run=first_run) is None
    assert caplog.text.count("they come from an earlier run of this workdir") == 1
    # Version 0.2 recorded no run.
    assert keep_and_read(tmp_path)
