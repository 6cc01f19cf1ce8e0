"""Each start of a run adds one whole line to its record, which later runs must fit."""

import json
import pathlib
import subprocess
from typing import Any

import pytest

from tests import settings
from tests.data import small_text
from vaswani_jax.checkpoints import run_record, store
from vaswani_jax.core import config
from vaswani_jax.training import step as training_step


def read_starts(workdir: pathlib.Path) -> list[dict[str, object]]:
    lines = (workdir / "starts.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines if line.endswith("}")]


@pytest.mark.parametrize("lost", [0, 1, 20])
def test_a_start_adds_a_line_even_to_one_that_a_full_disk_cut_off(
    tmp_path: pathlib.Path, lost: int
) -> None:
    first = settings.small_settings()
    second = settings.small_settings(**{"training.num_steps": 9})
    changes = [run_record.Change("training.num_steps", 4, 9)]
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


def test_other_software_is_described() -> None:
    software = run_record.describe_software()
    assert run_record.software_changes(software) == []
    assert run_record.software_changes({"jax": "0.0.1", "gone": "1"}) == [
        f"jax was 0.0.1, is {software['jax']}"
    ]


def test_a_model_of_other_shapes_is_refused_with_the_settings_that_differ(
    tmp_path: pathlib.Path,
) -> None:
    was = {"model.d_model": 6, "model.init_scale": 1.0, "model.dropout_rate": 0.1}
    now = {"model.d_model": 8, "model.init_scale": 0.5, "model.dropout_rate": 0.3}
    small = settings.small_settings(**was)
    changed = settings.small_settings(**now)
    words = " ".join(small_text.WORDS)
    subwords = settings.learn_vocabulary(
        [words] * 9, small_text.settings_of(tmp_path).data
    )
    trained = training_step.create_state(small, vocab_size=subwords.size)
    record = {"vocabulary": subwords.fingerprint, "config": config.to_dict(small)}
    for recorded, reason in (
        (record, "config.model.d_model is 8, was 6; restore the config"),
        (record | {"config": {}}, "decoder/layers_0/.* has shape"),
    ):
        checkpoint = store.Checkpoint(8, {"params": trained.params}, recorded)
        with pytest.raises(
            store.CheckpointError, match=f"step 8 is of another model: {reason}"
        ):
            run_record.check_fits(checkpoint, settings=changed, vocabulary=subwords)


@pytest.mark.parametrize(
    ("key", "was", "now"),
    [
        ("activation", "relu", "swish"),
        ("layer_norm_epsilon", 1e-6, 1e-5),
        ("layer_norm_position", "pre", "post"),
    ],
)
def test_a_model_of_other_functions_and_the_same_shapes_is_refused(
    tmp_path: pathlib.Path, key: str, was: Any, now: Any
) -> None:
    small = settings.small_settings(**{f"model.{key}": was})
    words = " ".join(small_text.WORDS)
    subwords = settings.learn_vocabulary(
        [words] * 9, small_text.settings_of(tmp_path).data
    )
    trained = training_step.create_state(small, vocab_size=subwords.size)
    record = {"vocabulary": subwords.fingerprint, "config": config.to_dict(small)}
    checkpoint = store.Checkpoint(8, {"params": trained.params}, record)
    run_record.check_fits(checkpoint, settings=small, vocabulary=subwords)
    # How it is trained and computed may differ.
    harmless = {
        f"model.{key}": was,
        "model.dropout_rate": 0.3,
        "model.dtype": "bfloat16",
    }
    run_record.check_fits(
        checkpoint, settings=settings.small_settings(**harmless), vocabulary=subwords
    )
    changed = settings.small_settings(**{f"model.{key}": now})
    with pytest.raises(store.CheckpointError, match=f"{key} is {now!r}, was "):
        run_record.check_fits(checkpoint, settings=changed, vocabulary=subwords)


@pytest.mark.parametrize(
    ("key", "is_decisive"),
    [
        ("optimizer.beta2", True),
        ("training.ema_decay", True),
        # Each start applies these, though it makes no update.
        ("training.num_steps", False),
        ("training.average_checkpoints", False),
        ("search.length_penalty", False),
        ("data.lowercase_scores", False),
        ("data.test_source", False),
        # They decide how a run computes, and which repetition of it this is.
        ("training.keep_checkpoints", False),
        ("seed", False),
    ],
)
def test_a_finished_run_keeps_the_settings_of_its_updates(
    key: str, is_decisive: bool
) -> None:
    assert run_record.decides_updates(key) == is_decisive


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
