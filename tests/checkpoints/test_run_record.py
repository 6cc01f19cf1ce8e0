"""Each start of a run adds one whole line to its record."""

import json
import pathlib

import pytest

from tests import settings
from vaswani_jax.checkpoints import run_record
from vaswani_jax.checkpoints.compatibility import Change
from vaswani_jax.core import config


def read_starts(workdir: pathlib.Path) -> list[dict[str, object]]:
    lines = (workdir / "starts.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines if line.endswith("}")]


@pytest.mark.parametrize("lost", [0, 1, 20])
def test_a_start_adds_a_line_even_to_one_that_a_full_disk_cut_off(
    tmp_path: pathlib.Path, lost: int
) -> None:
    first = settings.small_settings()
    second = settings.small_settings(**{"training.num_steps": 9})
    changes = [Change("training.num_steps", 4, 9)]
    run_record.record_start(tmp_path, first, step=0, changes=[], init_from="runs/a")
    path = tmp_path / "starts.jsonl"
    path.write_bytes(path.read_bytes()[: path.stat().st_size - lost])
    run_record.record_start(tmp_path, second, step=4, changes=changes)
    *earlier, last = read_starts(tmp_path)
    assert len(earlier) == (lost < 2)
    assert (last["step"], last["config"]) == (4, config.to_dict(second))
    assert last["changes"] == [{"key": "training.num_steps", "was": 4, "now": 9}]
    for start in earlier:
        assert (start["init_from"], start["config"]) == (
            "runs/a",
            config.to_dict(first),
        )
    assert json.loads((tmp_path / "config.json").read_text()) == last["config"]


def test_other_software_is_described() -> None:
    software = run_record.describe_software()
    assert run_record.software_changes(software) == []
    assert run_record.software_changes({"jax": "0.0.1", "gone": "1"}) == [
        f"jax was 0.0.1, is {software['jax']}"
    ]
