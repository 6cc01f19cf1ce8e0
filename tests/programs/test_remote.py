"""A run whose workdir and text lie on a store, from machine to machine."""

import pathlib
import subprocess
import time

import fsspec
import jax
import numpy as np
import pytest

from tests import object_store
from tests.programs import long_runs, runs


def test_a_run_that_is_killed_goes_on_on_another_machine_to_the_last_digit(
    s3: object_store.ObjectStore,
    trained: pathlib.Path,
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    url = f"{s3.make_bucket()}/run"
    monkeypatch.setenv("VASWANI_JAX_MIRRORS", str(tmp_path / "one"))
    train = runs.command("main", url)
    with runs.running(train, stdout=subprocess.DEVNULL) as process:
        wait_for_file(f"{url}/checkpoints/4/files.json", process)
        process.kill()
        _, log = process.communicate(timeout=300)
    [local_copy] = (path for path in (tmp_path / "one").iterdir() if path.is_dir())
    assert f"--workdir={url} has its local copy in {local_copy}" in log.decode()

    monkeypatch.setenv("VASWANI_JAX_MIRRORS", str(tmp_path / "two"))
    resumed = runs.finish(url)
    assert "resumed at step" in resumed
    assert "tokenised" not in resumed, "the data is prepared once"
    filesystem, root = fsspec.core.url_to_fs(url)
    filesystem.get(root, str(tmp_path / "stored"), recursive=True)
    stored, expected = map(long_runs.ended, (tmp_path / "stored", trained))
    assert stored[0].step == expected[0].step == 8
    jax.tree.map(np.testing.assert_array_equal, stored[0].items, expected[0].items)
    assert stored[1] == expected[1]

    # A third machine needs the average alone.
    monkeypatch.setenv("VASWANI_JAX_MIRRORS", str(tmp_path / "three"))
    decoded = runs.vaswani("decode", url, stdin=b"a b c\nd e\n")
    assert decoded.returncode == 0, decoded.stderr.decode()
    [local_copy] = (path for path in (tmp_path / "three").iterdir() if path.is_dir())
    assert (local_copy / "averaged").exists()
    assert not (local_copy / "checkpoints").exists()
    assert decoded.stdout.count(b"\n") == 2


def wait_for_file(url: str, process: subprocess.Popen[bytes]) -> None:
    """Wait until a running process has sent a file."""
    filesystem, path = fsspec.core.url_to_fs(url)

    def is_sent() -> bool:
        time.sleep(0.2)  # The store is in this process, and takes its time.
        filesystem.invalidate_cache()
        return bool(filesystem.exists(path))

    long_runs.wait_until(is_sent, url, process=process)


def test_text_and_prepared_data_come_from_a_store(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bucket = tmp_path / "bucket"
    bucket.mkdir()
    lines = "".join(f"{letter} b c d e\n" for letter in "abcdefgh" * 8)
    for name in ("train", "valid"):
        for side in ("en", "de"):
            (bucket / f"{name}.{side}").write_text(lines)
    (bucket / "other").write_text("not asked for\n")
    flags = [
        "--config.data.source=text",
        f"--config.data.text_directory=file://{bucket}",
        f"--config.data.directory=file://{bucket}/prepared",
        *(
            f"--config.data.{name}_{kind}={name}.{side}"
            for name in ("train", "valid")
            for kind, side in (("source", "en"), ("target", "de"))
        ),
        "--config.data.test_source=",
        "--config.data.test_target=",
        "--config.data.vocab_size=16",
    ]
    monkeypatch.setenv("VASWANI_JAX_MIRRORS", str(tmp_path / "one"))
    result = runs.vaswani("prepare_data", tmp_path / "run", *flags)
    assert result.returncode == 0, result.stderr.decode()
    assert not list((tmp_path / "one").rglob("other"))
    assert (bucket / "prepared/manifest.json").exists()
    # Another machine finds it prepared.
    monkeypatch.setenv("VASWANI_JAX_MIRRORS", str(tmp_path / "two"))
    second = runs.vaswani("prepare_data", tmp_path / "other", *flags)
    assert second.returncode == 0, second.stderr.decode()
    assert b"tokenised train" in result.stderr
    assert b"tokenised train" not in second.stderr
