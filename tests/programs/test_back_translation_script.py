"""launch/back_translation.sh, with a stub that translates by capital letters."""

import os
import pathlib
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).parents[2]
# back_translate_text writes a corpus; main only records its flags.
PYTHON = """#!/usr/bin/env bash
echo "$@" >> "$(dirname "$0")/calls"
for flag in "$@"; do
    case $flag in
    --input=*) input=${flag#*=} ;;
    --output=*) output=${flag#*=} ;;
    esac
done
if [ -n "${output-}" ]; then
    mkdir -p "$output"
    tr a-z A-Z < "$input" > "$output/shard-00000.source"
    echo '[[corpora]]' > "$output/corpora.toml"
fi
"""


@pytest.fixture
def text(tmp_path: pathlib.Path) -> pathlib.Path:
    """Five pairs beside a checkout with a stub for Python."""
    shutil.copytree(ROOT / "launch", tmp_path / "launch")
    python = tmp_path / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(PYTHON)
    python.chmod(0o755)
    directory = tmp_path / "a text"
    directory.mkdir()
    for side in ("en", "de"):
        lines = "".join(f"{side} {number}\n" for number in range(1, 6))
        (directory / f"train.{side}").write_text(lines)
        (directory / f"val.{side}").write_text(f"{side} val\n")
    return directory


def run_script(text: pathlib.Path, **environment: str) -> list[str]:
    """The calls of programs, each with its flags."""
    root = text.parent
    record = root / ".venv" / "bin" / "calls"
    record.unlink(missing_ok=True)
    subprocess.run(
        [root / "launch" / "back_translation.sh", text, root / "runs", "--config.a=b"],
        cwd="/",
        env={**os.environ, **environment},
        check=True,
        timeout=300,
    )
    return record.read_text().splitlines()


def test_the_halves_share_no_pair_and_lose_none(text: pathlib.Path) -> None:
    run_script(text)
    halves = text.parent / "runs" / "text"
    assert (halves / "train.en").read_text().split("\n") == ["en 1", "en 2", "en 5", ""]
    assert (halves / "train.de").read_text().split("\n") == ["de 1", "de 2", "de 5", ""]
    assert (halves / "monolingual.de").read_text().split("\n") == ["de 3", "de 4", ""]
    assert (halves / "val.en").read_text() == "en val\n"


def test_both_arms_have_the_same_flags_but_for_the_corpora(text: pathlib.Path) -> None:
    reverse, translation, *trainings, comparison = run_script(text, SEEDS="1 4")
    runs = text.parent / "runs"
    assert "--config.data.source_locale=de" in reverse
    assert f"--input={runs}/text/monolingual.de" in translation
    assert len(trainings) == 4
    for mixed, half in zip(trainings[::2], trainings[1::2], strict=True):
        corpora = (
            f" --config.data.corpora={runs}/corpora.toml"
            " --config.data.stages=2250: parallel=1"
        )
        assert corpora in mixed
        assert mixed.replace(corpora, "").replace("/mixed", "/half") == half
    assert all(call.endswith(" --config.a=b") for call in (reverse, *trainings[1::2]))
    names = [call.split("--workdir=")[1].split(" --")[0] for call in trainings]
    arms = "mixed/seed-1", "half/seed-1", "mixed/seed-4", "half/seed-4"
    assert names == [f"{runs}/{arm}" for arm in arms]
    module = "-m vaswani_jax.compare"
    assert comparison == f"{module} {runs}/half {runs}/mixed --split=valid"


def test_no_arm_reads_a_test_set(text: pathlib.Path) -> None:
    reverse, _, *trainings, _ = run_script(text)
    for call in (reverse, *trainings):
        assert "--config.data.test_source= --config.data.test_target= " in call
