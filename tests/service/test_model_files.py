"""Models have names, and a version that changes with their files."""

import os

import pytest

from vaswani_jax.checkpoints import select, store
from vaswani_jax.service import model_files
from vaswani_jax.service.model_files import Origin
from vaswani_jax.training import loggers, resume


@pytest.mark.parametrize(
    ("argument", "name", "path"),
    [
        ("runs/demo", "demo", "runs/demo"),
        ("runs/demo/", "demo", "runs/demo/"),
        ("runs/demo@best", "demo", "runs/demo@best"),
        ("a.safetensors", "a", "a.safetensors"),
        ("de-en=runs/x=y", "de-en", "runs/x=y"),
        ("runs/x=y", "x_y", "runs/x=y"),
        ("s3://box/runs/demo", "demo", "s3://box/runs/demo"),
        ("/", "model", "/"),
    ],
)
def test_a_model_has_the_name_that_it_was_given_or_its_directorys(argument, name, path):
    assert model_files.read_origin(argument) == Origin(name, path)


def test_a_run_with_an_equals_sign_in_its_name_may_name_a_checkpoint(
    monkeypatch, tmp_path
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lr=0.1").mkdir()
    for path in ("lr=0.1", "lr=0.1@best"):
        assert model_files.read_origin(path) == Origin("lr_0.1", path)
    argument = "fast=runs/demo@best"
    assert model_files.read_origin(argument) == Origin("fast", "runs/demo@best")


def test_two_models_with_one_name_are_refused():
    with pytest.raises(ValueError, match="two models have the name demo, a/demo and"):
        model_files.read_origins(["a/demo", "b/demo"])
    with pytest.raises(ValueError, match="names no model"):
        model_files.read_origin("a=")


def test_a_version_changes_with_the_files_of_its_checkpoint_alone(tmp_path):
    for folder in ("averaged/8", "checkpoints/8"):
        (tmp_path / folder).mkdir(parents=True)
    file = tmp_path / "averaged" / "8" / "files.json"
    file.write_text("a")
    first = model_files.version(str(tmp_path))
    (tmp_path / "metrics.jsonl").write_text("a")
    (tmp_path / "checkpoints" / "9").mkdir()
    assert model_files.version(str(tmp_path)) == first
    assert model_files.version(f"{tmp_path}@newest") != first
    os.utime(file, ns=(1, 1))
    assert model_files.version(str(tmp_path)) != first
    ensemble = model_files.version(f"{tmp_path}@newest,averaged")
    os.utime(file, ns=(2, 2))
    assert model_files.version(f"{tmp_path}@newest,averaged") != ensemble
    for name in ("pytorch_model.bin", "source.spm", "vocab.json"):
        earlier_version = model_files.version(str(tmp_path))
        (tmp_path / name).write_text("of MarianMT")
        assert model_files.version(str(tmp_path)) != earlier_version
    bundle = tmp_path / "a.safetensors"
    bundle.write_bytes(b"a")
    second = model_files.version(str(bundle))
    bundle.write_bytes(b"ab")
    assert model_files.version(str(bundle)) != second
    assert model_files.version("s3://box/run") is None


def test_a_version_changes_only_with_the_checkpoints_that_its_name_needs(tmp_path):
    checkpoints = tmp_path / "checkpoints"
    for step in ("8", "9"):
        (checkpoints / step).mkdir(parents=True)
    names = ("8", "newest", "average:2", "8,newest")

    def versions():
        return {name: model_files.version(f"{tmp_path}@{name}") for name in names}

    def changed_names():
        return {name for name in names if versions()[name] != earlier_versions[name]}

    earlier_versions = versions()
    unfinished = checkpoints / f"10{store.UNFINISHED}"
    unfinished.mkdir()
    assert changed_names() == set()
    unfinished.rename(checkpoints / "10")
    assert changed_names() == {"newest", "average:2", "8,newest"}
    earlier_versions = versions()
    (checkpoints / "9").rmdir()
    assert changed_names() == {"average:2"}
    earlier_versions = versions()
    (checkpoints / "8").rmdir()
    assert changed_names() == {"8", "average:2", "8,newest"}
    # Later ones do not bring it back.
    earlier_versions = versions()
    (checkpoints / "11").mkdir()
    assert "8" not in changed_names()


def test_a_run_that_resumes_changes_its_version_only_by_its_settings(tmp_path):
    (tmp_path / "config.json").write_text('{"search": {"beam_size": 4}}')
    first = model_files.version(str(tmp_path))
    for name in (resume.EVALUATED, loggers.FILE):
        (tmp_path / name).write_text("{}")
    os.utime(tmp_path / "config.json", ns=(1, 1))
    assert model_files.version(str(tmp_path)) == first
    (tmp_path / "config.json").write_text('{"search": {"beam_size": 5}}')
    os.utime(tmp_path / "config.json", ns=(1, 1))
    assert model_files.version(str(tmp_path)) != first


def test_a_file_whose_name_has_an_at_sign_is_not_split(tmp_path):
    bundle = tmp_path / "demo@2.safetensors"
    bundle.write_bytes(b"a")
    first = model_files.version(str(bundle))
    bundle.write_bytes(b"ab")
    assert model_files.version(str(bundle)) != first
    assert select.split_name(str(bundle)) == (str(bundle), "")
    assert model_files.read_origin(str(bundle)).name == "demo_2"
    run = tmp_path / "run"
    (run / "checkpoints" / "5").mkdir(parents=True)
    assert select.split_name(f"{run}@best") == (str(run), "best")
    assert select.split_name(f"{run}/checkpoints/5") == (str(run), "5")
