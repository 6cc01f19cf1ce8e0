"""`vaswani check` as a user runs it."""

import importlib.util
import json
import pathlib
import subprocess
import sys

import pytest

from tests.programs import runs


def check(*arguments: str) -> subprocess.CompletedProcess[bytes]:
    return runs.run(
        sys.executable, "-m", "vaswani_jax", "check", *arguments, devices=None
    )


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["demo"], ["--hardware is missing"]),
        (["demo", "--hardware=v5:8"], ["unknown chip 'v5'", "known: v4, v5e, v5p"]),
        (["demo", "--hardware=v5e:2x4,h100:12"], ["h100:12", "a multiple of 8"]),
        (["demo", "--hardware=v5e:3x4"], ["v5e:3x4", "must be even"]),
        (["demo", "--hardware=v5e:8", "--dollars_per_hour=-1"], ["dollars_per_hour"]),
        (["--hardware=v5e:8"], ["--config is missing"]),
    ],
)
def test_mistakes_are_refused_in_one_line(
    arguments: list[str], words: list[str]
) -> None:
    error = runs.error_of(check(*arguments))
    assert all(word in error for word in words), error


@pytest.mark.parametrize(
    ("hardware", "extra", "module"),
    [("v5e:8", "tpu", "libtpu"), ("h100:8", "cuda", "jax_cuda13_plugin")],
)
def test_a_missing_compiler_is_named(hardware: str, extra: str, module: str) -> None:
    if importlib.util.find_spec(module):
        pytest.skip(f"{module} is installed")
    error = runs.error_of(check("demo", f"--hardware={hardware}"))
    assert f"pip install 'vaswani-jax[{extra}]'" in error


@pytest.mark.tpu_compiler
def test_a_run_is_judged_with_the_shapes_of_its_data(trained: pathlib.Path) -> None:
    pytest.importorskip("libtpu", reason="needs pip install 'vaswani-jax[tpu]'")
    command = (str(trained), "--hardware=v5e:4", "--json", "--dollars_per_hour=1.5")
    result = check(*command)
    assert result.returncode == 0, result.stderr.decode()
    [verdict] = json.loads(result.stdout)
    assert verdict["fits"] and verdict["num_shapes"] == 1
    [step] = verdict["steps"]
    # 1,024 tokens are 64 rows of 16; 200 pairs are four such batches.
    assert (step["rows"], step["length"]) == (64 / 4, 16)
    assert step["batches_per_epoch"] == 4
    assert 0 < verdict["expected_mfu"] < 1
    hours = verdict["expected_device_hours"]
    assert verdict["expected_dollars"] == pytest.approx(1.5 * hours)
    assert verdict["launch"].startswith(f"launch/one_host.sh --config={trained}")
    assert "the step of 64 x 16" in result.stderr.decode()
    # What was found is found again, with the same compile time.
    assert json.loads(check(*command).stdout) == [verdict]
