"""A run whose workdir and text lie on a store, from machine to machine."""

import pathlib

import jax
import numpy as np
import pytest

from tests.programs import runs
from vaswani_jax.checkpoints import store


def test_a_run_on_a_store_goes_on_on_another_machine(
    trained: pathlib.Path, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"file://{tmp_path}/bucket/copy"

    def on(machine: str, program: str, *flags: str, **more: str) -> str:
        monkeypatch.setenv("VASWANI_JAX_MIRRORS", str(tmp_path / machine))
        stdin = b"a b c\nd e\n"
        result = runs.vaswani(program, url, *flags, **more, stdin=stdin)
        assert result.returncode == 0, result.stderr.decode()
        return result.stderr.decode() + result.stdout.decode()

    told = on("one", "main", "--config.training.num_steps=4")
    assert f"--workdir={url} is mirrored in {tmp_path}/one/" in told
    told = on("two", "main")
    assert "resumed at step 4" in told
    assert "tokenised" not in told, "the data is prepared once"
    directories = [tmp_path / "bucket/copy/checkpoints", trained / "checkpoints"]
    assert [store.steps(directory) for directory in directories] == [[4, 8], [4, 8]]
    stored, expected = (
        store.restore(directory, 8, ["params", "optimizer"]).items
        for directory in directories
    )
    jax.tree.map(np.testing.assert_array_equal, stored, expected)
    # A third machine needs the average alone.
    translated = on("three", "decode")
    [mirror] = [path for path in (tmp_path / "three").iterdir() if path.is_dir()]
    assert (mirror / "averaged").exists()
    assert not (mirror / "checkpoints").exists()
    result = runs.vaswani("decode", trained, stdin=b"a b c\nd e\n")
    lines = result.stdout.decode()
    assert lines.count("\n") == 2
    assert translated.endswith(lines)


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
    again = runs.vaswani("prepare_data", tmp_path / "other", *flags)
    assert again.returncode == 0, again.stderr.decode()
    assert b"tokenised train" in result.stderr
    assert b"tokenised train" not in again.stderr
