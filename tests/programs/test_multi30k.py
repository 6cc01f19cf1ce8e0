"""launch/multi30k.sh, with a stub that translates by capital letters."""

import os
import pathlib
import re
import shutil
import subprocess

import pytest

from configs import multi30k_ende

ROOT = pathlib.Path(__file__).parents[2]
# decode writes its input in capitals; main only says what it is asked.
PYTHON = """#!/usr/bin/env bash
echo "$@" >> "$(dirname "$0")/asked"
for flag in "$@"; do
    case $flag in
    --input=*) input=${flag#*=} ;;
    --output=*) output=${flag#*=} ;;
    esac
done
if [ -n "${output-}" ]; then tr a-z A-Z < "$input" > "$output"; fi
[[ "$*" != *"${FAILS:-nothing}"* ]]
"""


@pytest.fixture
def text(tmp_path: pathlib.Path) -> pathlib.Path:
    """Two pairs, the last source line without its end, beside a checkout with stubs."""
    shutil.copytree(ROOT / "launch", tmp_path / "launch")
    python = tmp_path / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(PYTHON)
    python.chmod(0o755)
    directory = tmp_path / "a text"
    directory.mkdir()
    for name in ("train", "val", "test_2016_flickr"):
        (directory / f"{name}.en").write_text(f"a {name}\na second")
        (directory / f"{name}.de").write_text(f"ein {name}\nein zweites\n")
    return directory


def asked(text: pathlib.Path, status: int = 0, **environment: str) -> list[str]:
    """The programs that were asked for, each with its flags."""
    root = text.parent
    record = root / ".venv" / "bin" / "asked"
    record.unlink(missing_ok=True)
    result = subprocess.run(
        [root / "launch" / "multi30k.sh", text, root / "runs", "--config.seed=2"],
        cwd="/",
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert result.returncode == status, result.stderr
    return record.read_text().splitlines()


def value_of(line: str, flag: str) -> str:
    """The value of a flag."""
    match = re.search(rf"--{re.escape(flag)}=(.*?)( --|$)", line)
    assert match, line
    return match[1]


def test_the_text_and_all_translations_are_learned_from(text: pathlib.Path) -> None:
    *teachers, diversified, tuned = asked(text)
    runs = text.parent / "runs"
    english, german = ["a train", "a second"], ["ein train", "ein zweites"]
    sources, targets = (
        (runs / "text" / f"train.{side}").read_text().splitlines()
        for side in ("en", "de")
    )
    assert sources == [*english * 2, "EIN TRAIN", "EIN ZWEITES"]
    assert targets == [*german, "A TRAIN", "A SECOND", *german]
    for name in ("val.en", "val.de"):
        assert (runs / "text" / name).read_bytes() == (text / name).read_bytes()
    decoded = teachers[1::2]
    assert [value_of(line, "workdir").rpartition("/")[2] for line in decoded] == list(
        multi30k_ende.STAGES
    )[:2]
    assert [value_of(line, "input") for line in decoded] == [
        str(text / "train.en"),
        str(text / "train.de"),
    ]
    trained = *teachers[::2], diversified, tuned
    assert [value_of(line, "config").rpartition(":")[2] for line in trained] == list(
        multi30k_ende.STAGES
    )
    assert [value_of(line, "config.data.text_directory") for line in trained] == [
        *([str(text)] * 2),
        str(runs / "text"),
        str(text),
    ]
    assert value_of(tuned, "init_from") == f"{runs}/diversified@newest"
    assert all("--config.seed=2" in line for line in trained)


def test_it_goes_on_where_it_was_stopped(text: pathlib.Path) -> None:
    assert len(asked(text, status=1, FAILS="runs/backward.en")) == 4
    runs = text.parent / "runs"
    assert (runs / "forward.de").exists() and not (runs / "backward.en").exists()
    backward, _, *commands = asked(text)
    assert value_of(backward, "workdir").endswith("runs/backward")
    assert asked(text) == commands[-2:]


def test_a_missing_file_is_told_before_hours_of_work(text: pathlib.Path) -> None:
    (text / "test_2016_flickr.de").unlink()
    result = subprocess.run(
        [text.parent / "launch" / "multi30k.sh", text, text.parent / "runs"],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert result.returncode == 1
    assert result.stderr == f"error: there is no {text}/test_2016_flickr.de\n"
    assert not (text.parent / "runs").exists()


def test_only_the_last_stage_sees_the_test_set() -> None:
    configs = {stage: multi30k_ende.get_config(stage) for stage in multi30k_ende.STAGES}
    assert [stage for stage, config in configs.items() if config.data.test_source] == [
        "tuned"
    ]
    names = {config.data.text_directory for config in configs.values()}
    assert len(names) == 1
    forward, backward = configs["forward"].data, configs["backward"].data
    for split in ("train", "valid"):
        assert forward[f"{split}_source"] == backward[f"{split}_target"]
        assert forward[f"{split}_target"] == backward[f"{split}_source"]
