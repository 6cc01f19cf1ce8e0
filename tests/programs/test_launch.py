"""The scripts of launch/, with a stub for python that writes down what it is asked."""

import pathlib
import shutil
import subprocess

import pytest

LAUNCH = pathlib.Path(__file__).parents[2] / "launch"


@pytest.fixture
def root(tmp_path: pathlib.Path) -> pathlib.Path:
    shutil.copytree(LAUNCH, tmp_path / "launch")
    python = tmp_path / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text('#!/bin/sh\necho "$@" >> "$(dirname "$0")/asked"\n')
    python.chmod(0o755)
    return tmp_path


def asked(root: pathlib.Path, *command: str) -> list[str]:
    subprocess.run([root / "launch" / command[0], *command[1:]], cwd="/", check=True)
    return (root / ".venv" / "bin" / "asked").read_text().splitlines()


def test_one_host_passes_its_flags_to_main(root: pathlib.Path) -> None:
    found = asked(root, "one_host.sh", "--config=a.py", "--workdir=b c")
    assert found == ["-m vaswani_jax.main --config=a.py --workdir=b c"]


def test_table3_trains_each_row_but_those_that_are_scored(root: pathlib.Path) -> None:
    scored = root / "out" / "table3_small_A2" / "evaluations"
    scored.mkdir(parents=True)
    (scored / "valid-averaged-beam4-alpha0.6.json").touch()
    (root / "out" / "table3_small_A3").mkdir()  # begun, not scored
    found = asked(
        root, "table3.sh", "configs/table3_small.py", str(root / "out"), "--x=1"
    )
    rows = "base A1 A3 A4 B1 B2 C1 C2 C3 C4 C5 C6 C7 D1 D2 D3 D4 E big".split()
    assert found == [
        f"-m vaswani_jax.main --config=configs/table3_small.py:{row}"
        f" --workdir={root}/out/table3_small_{row}"
        f" --config.data.directory={root}/out/table3_small_data --x=1"
        for row in rows
    ]
