"""`vaswani check` as a user runs it."""

import importlib.util
import json
import pathlib
import subprocess
import sys

import pytest

from tests.programs import command_lines, runs
from tests.text_checks import texts


def check(*arguments: str) -> subprocess.CompletedProcess[bytes]:
    return runs.run(
        sys.executable, "-m", "vaswani_jax", "check", *arguments, devices=None
    )


REFUSED = {
    "demo": ["--hardware is missing", "--data"],
    "demo --hardware=v5:8": ["unknown chip 'v5'", "known: v4, v5e, v5p"],
    "demo --hardware=v5e:2x4,h100:12": ["h100:12", "a multiple of 8"],
    "demo --hardware=v5e:3x4": ["v5e:3x4", "must be even"],
    "demo --hardware=v5e:8 --dollars_per_hour=-1": ["dollars_per_hour"],
    "--hardware=v5e:8": ["--config is missing"],
    "demo --data --all_shapes": ["--all_shapes needs --hardware"],
}


@pytest.fixture(scope="module")
def refusals(
    tmp_path_factory: pytest.TempPathFactory,
) -> dict[str, subprocess.CompletedProcess[bytes]]:
    """Return the result of each refused command line; all run in one process."""
    lines = [(line.split(), tmp_path_factory.mktemp("line")) for line in REFUSED]
    return dict(zip(REFUSED, command_lines.run("check", lines), strict=True))


@pytest.mark.parametrize("line", REFUSED)
def test_mistakes_are_refused_in_one_line(
    refusals: dict[str, subprocess.CompletedProcess[bytes]], line: str
) -> None:
    error = runs.error_of(refusals[line])
    assert all(word in error for word in REFUSED[line]), error


@pytest.mark.parametrize(
    ("hardware", "extra", "module"),
    [("v5e:8", "tpu", "libtpu"), ("h100:8", "cuda", "jax_cuda13_plugin")],
)
def test_a_missing_compiler_is_named(hardware: str, extra: str, module: str) -> None:
    if importlib.util.find_spec(module):
        pytest.skip(f"{module} is installed")
    error = runs.error_of(check("demo", f"--hardware={hardware}"))
    assert f"pip install 'vaswani-jax[{extra}]'" in error


@pytest.fixture
def text(tmp_path: pathlib.Path) -> list[str]:
    """Flags of a clean text in files."""
    texts.write(tmp_path, texts.splits())
    return [
        "own_text",
        "--data",
        f"--workdir={tmp_path / 'run'}",
        f"--config.data.text_directory={tmp_path}",
        "--config.data.source_locale=en",
        "--config.data.target_locale=de",
    ]


def test_clean_text_ends_with_status_0_and_changes_nothing(
    text: list[str], tmp_path: pathlib.Path
) -> None:
    before = {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    result = check(*text)
    assert result.returncode == 0, result.stderr.decode()
    output = result.stdout.decode()
    assert "train: 900 pairs" in output and output.endswith("nothing found\n")
    assert {p: p.stat().st_mtime_ns for p in tmp_path.iterdir()} == before


def test_serious_faults_end_with_status_2(
    text: list[str], tmp_path: pathlib.Path
) -> None:
    splits = texts.splits()
    texts.shuffle_targets(splits)
    texts.write(tmp_path, splits)
    result = check(*text, "--json")
    assert result.returncode == 2, result.stderr.decode()
    report = json.loads(result.stdout)
    assert report["serious"] and report["findings"][0]["kind"] == "misaligned"
    assert report["findings"][0]["lines"] == [[201, 400]]
    assert report["texts"]["train"]["pairs"] == 900


def test_text_that_cannot_be_read_is_refused_in_one_line(
    text: list[str], tmp_path: pathlib.Path
) -> None:
    (tmp_path / "train.target").write_bytes(b"ein\n\xff\n")
    error = runs.error_of(check(*text))
    assert "train.target, line 2: not UTF-8" in error
    (tmp_path / "train.target").write_bytes(b"ein\n")
    assert "the same number of lines" in runs.error_of(check(*text))
    (tmp_path / "train.target").unlink()
    assert "config.data.train_target: no file" in runs.error_of(check(*text))


def test_the_data_of_a_run_are_checked_with_its_vocabulary(
    trained: pathlib.Path,
) -> None:
    result = check(str(trained), "--data", "--json")
    assert result.returncode == 0, result.stderr.decode()
    report = json.loads(result.stdout)
    assert report["texts"]["train"]["pairs"] == 200
    assert report["texts"]["train"]["tokens"]["source"]["unknown"] == 0


@pytest.mark.tpu_compiler
def test_data_of_other_settings_is_refused_before_the_text_is_read(
    trained: pathlib.Path,
) -> None:
    pytest.importorskip("libtpu", reason="needs pip install 'vaswani-jax[tpu]'")
    changed = "--config.data.max_length=9"
    result = check(str(trained), "--data", "--hardware=v5e:4", changed)
    assert "was prepared from other data" in runs.error_of(result)
    assert not result.stdout


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
