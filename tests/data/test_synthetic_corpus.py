"""Shards on a disk: what a kill, damage or other settings leave of them."""

import json
import os
import pathlib
import tomllib

import pytest

from vaswani_jax.core import types
from vaswani_jax.data import synthetic_corpus

SETTINGS = {"seed": 1, "method": "beam"}
SIDES = {"source": ["a", ""], "target": ["b", "c"]}


def write(directory: pathlib.Path, *shards: int, tag: str = "<BT>") -> None:
    with synthetic_corpus.open_corpus(directory, SETTINGS) as corpus:
        for shard in shards:
            assert not corpus.is_written(shard)
            corpus.write(shard, SIDES, counts={"lines": 2})
        corpus.finish(tag=tag)


def written(directory: pathlib.Path) -> list[bool]:
    with synthetic_corpus.open_corpus(directory, SETTINGS) as corpus:
        return [corpus.is_written(shard) for shard in range(3)]


def test_a_later_program_finds_what_is_written(tmp_path: pathlib.Path) -> None:
    write(tmp_path / "out", 0, 2)
    assert written(tmp_path / "out") == [True, False, True]
    assert (tmp_path / "out/shard-00002.source").read_bytes() == b"a\n\n"
    assert (tmp_path / "out/shard-00002.target").read_bytes() == b"b\nc\n"
    record = json.loads((tmp_path / "out/manifest.json").read_text())
    assert record["total"] == {"lines": 4} and record["settings"] == SETTINGS


def test_a_shard_without_a_record_is_not_written(tmp_path: pathlib.Path) -> None:
    """A kill came between its files and the manifest, or the first one's."""
    write(tmp_path)
    for side in types.SIDES:
        (tmp_path / f"shard-00000.{side}").write_text("half")
    assert written(tmp_path) == [False] * 3
    write(tmp_path, 0)
    assert written(tmp_path) == [True, False, False]


def test_a_damaged_shard_is_made_again_with_a_warning(
    tmp_path: pathlib.Path, caplog: pytest.LogCaptureFixture
) -> None:
    write(tmp_path, 0, 1)
    (tmp_path / "shard-00001.target").write_text("b\nd\n")
    assert written(tmp_path) == [True, False, False]
    [record] = caplog.records
    assert "shard-00001.target has changed: writing the shard again" in record.message


def test_other_settings_are_refused_with_both_values(tmp_path: pathlib.Path) -> None:
    write(tmp_path, 0)
    settings = {**SETTINGS, "seed": 2}
    with (
        pytest.raises(ValueError, match="begun with seed=1, not 2: use the same"),
        synthetic_corpus.open_corpus(tmp_path, settings),
    ):
        pass
    assert written(tmp_path) == [True, False, False]


@pytest.mark.parametrize(
    "manifest",
    [
        *("", "[]", '{"version": 1}', '{"version": 2, "settings": {}}', "\0"),
        '{"version": 1, "settings": {"models": [{"settings": 1}]}, "shards": {}}',
    ],
)
def test_a_damaged_manifest_is_refused(tmp_path: pathlib.Path, manifest: str) -> None:
    (tmp_path / "manifest.json").write_text(manifest)
    with pytest.raises(ValueError, match=r"manifest\.json is damaged"):
        written(tmp_path)


def test_other_files_are_not_mixed_with_shards(tmp_path: pathlib.Path) -> None:
    (tmp_path / "mono.de").write_text("text")
    with pytest.raises(ValueError, match="has other files"):
        write(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["mono.de"]
    (tmp_path / "a#b").mkdir()
    with pytest.raises(ValueError, match="must have no #"):
        write(tmp_path / "a#b")
    with pytest.raises(
        ValueError, match=r"is not UTF-8, and corpora\.toml must name it"
    ):
        write(tmp_path / os.fsdecode(b"donn\xe9es"))


def test_two_programs_do_not_write_one_corpus(tmp_path: pathlib.Path) -> None:
    with (
        synthetic_corpus.open_corpus(tmp_path, SETTINGS),
        pytest.raises(ValueError, match=r"--output=.* is in use by process"),
    ):
        write(tmp_path)


@pytest.mark.parametrize("tag", ["", '"\\<BT>'])
def test_corpora_toml_names_the_shards(tmp_path: pathlib.Path, tag: str) -> None:
    directory = tmp_path / "-bäck [1]"
    write(directory, 0, tag=tag)
    [corpus] = tomllib.loads((directory / "corpora.toml").read_text())["corpora"]
    assert corpus.pop("tag", "") == tag
    assert corpus.pop("name") == "bck1"
    for side, name in corpus.items():
        pattern = pathlib.Path(name)
        assert pattern.is_absolute() and "[[]1]" in name
        assert pattern.name == f"shard-*.{side}"
