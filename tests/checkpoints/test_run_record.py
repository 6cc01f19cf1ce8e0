"""Each start of a run adds one whole line to its record, with the software."""

import json
import pathlib
import subprocess

import pytest

from tests import settings
from vaswani_jax.checkpoints import compatibility, run_record
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
    changes = [compatibility.Change("training.num_steps", 4, 9)]
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


@pytest.mark.parametrize("content", ['{"model_type": "marian"}', "[1]", "{", '"a"'])
def test_a_config_of_another_program_is_refused(
    tmp_path: pathlib.Path, content: str
) -> None:
    run_record.refuse_other_config(tmp_path)
    run_record.record_start(
        tmp_path, settings.small_settings(), step=0, changes=[], init_from=""
    )
    run_record.refuse_other_config(tmp_path)
    (tmp_path / "starts.jsonl").unlink()  # as of a model that was imported
    run_record.refuse_other_config(tmp_path)
    (tmp_path / "config.json").write_text(content)
    with pytest.raises(ValueError, match=r"config\.json is not the record of a run"):
        run_record.refuse_other_config(tmp_path)


def test_a_run_that_began_from_given_parameters_begins_from_no_others(
    tmp_path: pathlib.Path,
) -> None:
    small = settings.small_settings()
    run_record.refuse_random_restart(tmp_path, name="runs/b")
    for step, init_from, origin in (
        (0, "", ""),
        (0, "runs/a@best", "runs/a@best"),
        (4, "", "runs/a@best"),  # It resumed, and has lost its checkpoints since.
        (0, "runs/c", "runs/c"),
        (0, "", ""),
    ):
        run_record.record_start(
            tmp_path, small, step=step, changes=[], init_from=init_from
        )
        if not origin:
            run_record.refuse_random_restart(tmp_path, name="runs/b")
            continue
        message = f"^runs/b has no checkpoint, .*; add --init_from={origin}, or name"
        with pytest.raises(ValueError, match=message):
            run_record.refuse_random_restart(tmp_path, name="runs/b")


def test_other_software_is_described() -> None:
    software = run_record.describe_software()
    assert run_record.software_changes(software) == []
    assert run_record.software_changes({"jax": "0.0.1", "gone": "1"}) == [
        f"jax was 0.0.1, is {software['jax']}"
    ]


def test_a_run_is_the_last_start_from_step_0(tmp_path: pathlib.Path) -> None:
    small = settings.small_settings()
    assert run_record.identify_run(tmp_path)["id"] == ""
    ids = []
    for step in (0, 4, 8):  # A start, and two that resume it.
        run_record.record_start(tmp_path, small, step=step, changes=[])
        ids.append(run_record.identify_run(tmp_path)["id"])
    assert ids[0] and ids == [ids[0]] * 3
    run_record.record_start(tmp_path, small, step=0, changes=[])
    assert run_record.identify_run(tmp_path)["id"] not in ("", ids[0])


def test_the_newest_start_is_that_of_the_last_whole_line(
    tmp_path: pathlib.Path,
) -> None:
    small = settings.small_settings()
    assert run_record.newest_start(tmp_path) == ""
    ids = []
    for step in (0, 4):
        run_record.record_start(tmp_path, small, step=step, changes=[])
        ids.append(run_record.newest_start(tmp_path))
    assert len({"", *ids}) == 3
    with open(tmp_path / "starts.jsonl", "a", encoding="utf-8") as file:
        file.write('{"id": "cut')
    assert run_record.newest_start(tmp_path) == ids[1]


def test_a_repository_around_the_installation_is_not_the_source(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / ".venv/vaswani_jax/checkpoints/run_record.py"
    source.parent.mkdir(parents=True)
    source.touch()
    git = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@b"]
    for command in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "theirs"]):
        subprocess.run([*git, *command], check=True)
    monkeypatch.setattr(run_record, "__file__", str(source))
    assert run_record.revision() == "unknown"
    for command in (["add", "."], ["commit", "-q", "-m", "ours"]):
        subprocess.run([*git, *command], check=True)
    head = subprocess.run(
        [*git, "rev-parse", "HEAD"], capture_output=True, text=True, check=True
    )
    assert run_record.revision() == head.stdout[:12]
