"""Damaged checkpoints, and circumstances that change under a run."""

import json
import pathlib
import shutil
from collections.abc import Callable
from typing import Any

import fsspec
import jax
import numpy as np
import orbax.checkpoint as ocp
import pytest

from tests import object_store, settings
from tests.checkpoints import damages
from tests.training.small_runs import OVERRIDES, save_average, train
from vaswani_jax.checkpoints import run_record, store
from vaswani_jax.core import config, files, processes, remote
from vaswani_jax.data import prepared, vocabulary
from vaswani_jax.training import resume

pytestmark = pytest.mark.usefixtures("steps_once")

DAMAGES = [damages.truncate, damages.flip, damages.lose_a_part, damages.empty]
CHANGES = OVERRIDES | {"training.checkpoint_every_steps": 2}


@pytest.fixture(scope="module")
def at_4(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """A run of 4 steps, with checkpoints of the second and the fourth."""
    directory = tmp_path_factory.mktemp("at_4")
    train(settings.small_settings(**CHANGES, **{"training.num_steps": 4}), directory)
    return directory


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory) -> store.Checkpoint:
    """The same run to step 6, never interrupted."""
    small = settings.small_settings(**CHANGES, **{"training.num_steps": 6})
    return train(small, tmp_path_factory.mktemp("whole"))


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_a_damaged_checkpoint_is_passed_over_and_made_again(
    tmp_path: pathlib.Path,
    at_4: pathlib.Path,
    uninterrupted: store.Checkpoint,
    log_lines: pytest.LogCaptureFixture,
    damage: Callable[[pathlib.Path], None],
) -> None:
    shutil.copytree(at_4, tmp_path / "broken")
    directory = tmp_path / "broken" / "checkpoints"
    damage(directory / "4")
    long = settings.small_settings(**CHANGES, **{"training.num_steps": 6})
    last = train(long, tmp_path / "broken")
    text = log_lines.text
    assert f"checkpoint {directory / '4'} is damaged" in text
    assert "resumed at step 2" in text
    assert (tmp_path / "broken" / "checkpoints.damaged" / "4").is_dir()
    jax.tree.map(np.testing.assert_array_equal, uninterrupted.items, last.items)
    assert store.steps(directory) == [2, 4, 6]
    store.restore(directory, 4, names=["params", "optimizer"])


def test_what_a_kill_left_is_sealed_or_removed(
    tmp_path: pathlib.Path, at_4: pathlib.Path, uninterrupted: store.Checkpoint
) -> None:
    workdir = tmp_path / "run"
    shutil.copytree(at_4, workdir)
    # It came before the seal, as it could in earlier versions; and in a write.
    path = workdir / "checkpoints/4"
    (path / store.SEAL).unlink()
    record_file = path / store.RECORD / "metadata"
    items = ocp.StandardCheckpointer()
    digests = {
        name: store.digest(items.restore(path.absolute() / name))
        for name in ("params", "optimizer")
    }
    record = json.loads(record_file.read_text()) | {"digests": digests}
    record_file.write_text(json.dumps(record))
    unfinished = workdir / f"checkpoints/9{store.UNFINISHED}-123"
    (unfinished / "params").mkdir(parents=True)
    long = settings.small_settings(**CHANGES, **{"training.num_steps": 6})
    last = train(long, workdir)
    jax.tree.map(np.testing.assert_array_equal, uninterrupted.items, last.items)
    assert (workdir / "checkpoints/4" / store.SEAL).exists()
    assert not unfinished.exists()


def test_when_all_are_damaged_nothing_is_moved_or_made_anew(
    tmp_path: pathlib.Path,
) -> None:
    small = settings.small_settings(**OVERRIDES)
    train(small, tmp_path)
    for number in ("2", "4"):
        damages.truncate(tmp_path / "checkpoints" / number)
    files_before = sorted(tmp_path.rglob("checkpoints/**/*"))
    with pytest.raises(store.CheckpointError, match="all 2 checkpoints"):
        train(small, tmp_path)
    assert sorted(tmp_path.rglob("checkpoints/**/*")) == files_before


def open_vocabulary(directory: pathlib.Path) -> vocabulary.Vocabulary:
    return prepared.open_prepared(directory).vocabulary


def test_another_training_text_is_refused(tmp_path: pathlib.Path) -> None:
    # The same words in another order: a vocabulary of the same fingerprint.
    lines = [f"{a} {b} c d" for a in "abcdefgh" for b in "ijklmnop"]
    named = {
        f"data.{split}_{side}": "text"
        for split in ("train", "valid")
        for side in ("source", "target")
    }
    small = settings.small_settings(
        **OVERRIDES,
        **named,
        **{
            "data.source": "text",
            "data.text_directory": str(tmp_path),
            "data.vocab_size": 24,
            "data.test_source": "",
            "data.test_target": "",
        },
    )
    (tmp_path / "text").write_text("\n".join(lines))
    train(small, tmp_path / "run")
    (tmp_path / "text").write_text("\n".join(reversed(lines)))
    fingerprint_before = open_vocabulary(tmp_path / "run/data").fingerprint
    shutil.rmtree(tmp_path / "run/data")
    with pytest.raises(ValueError, match=r"was trained on the text .*, but the data"):
        train(small, tmp_path / "run")
    assert open_vocabulary(tmp_path / "run/data").fingerprint == fingerprint_before


def test_a_run_may_begin_a_moving_average_but_not_weight_decay(
    tmp_path: pathlib.Path, at_4: pathlib.Path
) -> None:
    workdir = files.Directory(shutil.copytree(at_4, tmp_path / "run"))
    changes = {**CHANGES, "training.num_steps": 4}
    small = settings.small_settings(**changes, **{"training.ema_decay": 0.9})
    data = prepared.open_prepared(workdir.path / "data")

    def resumed(small: config.Config) -> resume.Resumed:
        fingerprints = {
            "training_text": data.training_text_fingerprint(),
            "valid_text": data.text_fingerprint("valid"),
            "tokenizer": "13a",
        }
        return resume.resume(
            resume.Run(small, workdir, data.vocabulary, **fingerprints)
        )

    state = resumed(small).state
    jax.tree.map(np.testing.assert_array_equal, state.average, state.params)
    decayed = settings.small_settings(**changes, **{"optimizer.weight_decay": 0.1})
    message = "cannot resume with: config.optimizer.weight_decay is 0.1, was 0.0"
    with pytest.raises(ValueError, match=message):
        resumed(decayed)


def test_another_version_of_a_package_is_logged(
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
    log_lines: pytest.LogCaptureFixture,
) -> None:
    now = run_record.describe_software()
    monkeypatch.setattr(
        run_record, "describe_software", lambda: {**now, "jax": "0.0.1"}
    )
    train(settings.small_settings(**OVERRIDES, **{"training.num_steps": 2}), tmp_path)
    monkeypatch.undo()
    train(settings.small_settings(**OVERRIDES), tmp_path)
    text = log_lines.text
    assert f"jax was 0.0.1, is {now['jax']}: the digits may differ" in text
    lines = (tmp_path / "starts.jsonl").read_text().splitlines()
    starts = [json.loads(line) for line in lines]
    assert [start["environment"]["jax"] for start in starts] == ["0.0.1", now["jax"]]


@pytest.mark.parametrize(
    ("other_processes", "message"),
    [
        ([[3, 0]], r"steps \[2, 3\]"),
        ([[-1, 0]], r"\[2, -1\]"),
        ([[2, 1]], "other parameters"),
    ],
)
def test_processes_that_see_other_checkpoints_are_refused(
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
    other_processes: list[list[int]],
    message: str,
) -> None:
    params = {"a": np.ones(2, np.float32)}
    items = {"params": params, "optimizer": params}
    checkpoint = store.Checkpoint(2, items, {"vocabulary": "abc"})
    store.save(tmp_path, checkpoint, keep=3)
    monkeypatch.setattr(processes, "num_processes", lambda: 2)

    def gathered(same: np.ndarray) -> np.ndarray:
        # Those of this process, then what the others would send.
        return np.stack([same, *(np.array(row, np.int32) for row in other_processes)])

    monkeypatch.setattr(processes, "gather_from_all", gathered)
    with pytest.raises(store.CheckpointError, match=message):
        resume.newest_valid(tmp_path)
    fingerprint = int(store.fingerprint(tmp_path / "2")[:7], 16)
    other_processes[:] = [[2, fingerprint]]
    valid = resume.newest_valid(tmp_path)
    assert valid is not None and valid.step == 2


def test_the_average_of_an_earlier_run_does_not_come_back_from_a_store(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VASWANI_JAX_MIRRORS", str(tmp_path / "mirrors"))
    workdir = remote.open_directory(f"file://{tmp_path}/store/run")
    small = settings.small_settings(**OVERRIDES, **{"training.num_steps": 2})
    train(small, workdir)
    save_average(small, workdir.path)
    workdir.push(folder="averaged")
    stored = tmp_path / "store/run/averaged"
    assert (stored / "2.safetensors").exists() and (stored / "2").is_dir()
    shutil.rmtree(workdir.path / "checkpoints")
    train(small, workdir)
    assert not [path for path in stored.rglob("*") if path.is_file()]
    workdir.pull()
    assert list((workdir.path / "averaged").iterdir()) == []
    assert store.steps(workdir.path / "averaged.old") == [2]


def test_an_outage_costs_no_update_and_the_store_has_all_later(
    s3: object_store.ObjectStore,
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
    log_lines: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setenv("VASWANI_JAX_MIRRORS", str(tmp_path))
    url = f"{s3.make_bucket()}/run"
    workdir = remote.open_directory(url)
    small = settings.small_settings(**OVERRIDES)
    evaluations = iter([s3.stop, lambda: None])

    def evaluate(params: object) -> dict[str, float]:
        next(evaluations)()
        return {"valid/loss": 0.0}

    try:
        # Training goes on without the first checkpoint; the last one must be there.
        with pytest.raises(store.NotWrittenError, match=rf"^{url}: Could not connect"):
            train(small, workdir, evaluator=evaluate)
    finally:
        s3.start()
    warning = next(line for line in log_lines.messages if url in line)
    assert warning.startswith(f"{url}: Could not connect")
    assert warning.endswith("; training continues without it")
    assert store.steps(workdir.path / "checkpoints") == [2, 4]
    filesystem, root = fsspec.core.url_to_fs(url)
    filesystem.invalidate_cache()
    assert not filesystem.find(f"{root}/checkpoints")
    train(small, workdir)
    filesystem.invalidate_cache()
    for step in (2, 4):
        assert filesystem.exists(f"{root}/checkpoints/{step}/files.json")


def test_a_run_ends_when_another_has_begun_on_its_store(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VASWANI_JAX_MIRRORS", str(tmp_path))
    workdir = remote.open_directory("memory://bucket/run")
    memory = fsspec.filesystem("memory")
    save = store.save

    def save_late(*args: Any, **kwargs: Any) -> None:
        save(*args, **kwargs)
        starts = memory.cat_file("/bucket/run/starts.jsonl")
        memory.pipe_file("/bucket/run/starts.jsonl", starts + b"another\n")

    monkeypatch.setattr(store, "save", save_late)
    try:
        with pytest.raises(files.SupersededError, match="another run has begun"):
            train(settings.small_settings(**OVERRIDES), workdir)
        assert not memory.find("/bucket/run/checkpoints/2")
    finally:
        memory.store.clear()
    assert store.steps(workdir.path / "checkpoints") == [2]


def test_a_damaged_checkpoint_of_a_local_copy_is_fetched_again(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VASWANI_JAX_MIRRORS", str(tmp_path / "mirrors"))
    workdir = remote.open_directory(f"file://{tmp_path}/bucket/run")
    train(settings.small_settings(**OVERRIDES), workdir)
    seal = workdir.path / "checkpoints/4/files.json"
    contents = seal.read_bytes()
    seal.write_bytes(contents.replace(b"a", b"b"))
    train(settings.small_settings(**OVERRIDES), workdir)
    assert seal.read_bytes() == contents
    assert not (workdir.path / "checkpoints.damaged").exists()
