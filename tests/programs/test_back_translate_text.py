"""back-translate as a user runs it: killed, resumed, and on other devices."""

import json
import pathlib
import re
import shutil

import pytest

from tests.programs import runs

# A shard is three batches of eight rows, for as many devices.
FLAGS = [
    "--method=sampling",
    "--shard_lines=20",
    "--config.search.temperature=0.8",
    "--config.search.source_tokens_per_batch=128",
]


@pytest.fixture(scope="module")
def mono(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    path = tmp_path_factory.mktemp("text") / "mono.txt"
    lines = [f"{'abcdefg'[n % 7]} b {'c ' * (n % 9)}" for n in range(60)]
    path.write_text("\n".join([*lines, ""]))
    return path


def shards(directory: pathlib.Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.glob("shard-*")}


def test_a_killed_corpus_on_eight_devices_is_that_of_one(
    trained: pathlib.Path, mono: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    command = [*runs.command("back_translate_text", trained), f"--input={mono}", *FLAGS]
    result = runs.run(*command, f"--output={whole}", devices=1)
    assert result.returncode == 0, result.stderr.decode()
    assert b"60 lines in, 60 pairs out" in result.stderr
    # What a kill leaves while the second shard is written.
    shutil.copytree(whole, killed)
    (killed / "corpora.toml").unlink()
    manifest = json.loads((killed / "manifest.json").read_text())
    del manifest["shards"]["1"], manifest["shards"]["2"]
    (killed / "manifest.json").write_text(json.dumps(manifest))
    for path in (*killed.glob("shard-00002.*"), killed / "shard-00001.target"):
        path.unlink()
    result = runs.run(*command, f"--output={killed}", devices=8)
    assert result.returncode == 0, result.stderr.decode()
    assert b"shard 2 of 3" in result.stderr and b"shard 1 of 3" not in result.stderr
    assert len(shards(whole)) == 2 * 3
    assert shards(killed) == shards(whole)
    assert (killed / "manifest.json").read_bytes() == (
        whole / "manifest.json"
    ).read_bytes()


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--word_blank=0.2"], "--word_blank needs --method=noised_beam"),
        (
            ["--method=beam", "--config.search.sampling"],
            "--method=beam searches, config.search.sampling=True draws",
        ),
        (["--method=noised_beam", "--word_shuffle=-1"], "must be at least 0, got -1"),
        (["--config.search.top_k=2"], "top_k=2 needs config.search.sampling=True"),
        (["--output=s3://bucket/out"], "must be a directory of this machine"),
        (["--input=missing"], "no file missing"),
    ],
)
def test_flags_that_make_no_sense_are_refused(
    trained: pathlib.Path,
    mono: pathlib.Path,
    tmp_path: pathlib.Path,
    flags: list[str],
    message: str,
) -> None:
    command = runs.command("back_translate_text", trained)
    names = [f"--input={mono}", f"--output={tmp_path / 'out'}"]
    error = runs.error_of(runs.run(*command, *names, *flags))
    assert re.search(re.escape(message), error), error
    assert not (tmp_path / "out").exists()
