"""export as a user runs it: other engines translate what ours does."""

import importlib.util
import pathlib
import re

import pytest

from tests.programs import runs
from vaswani_jax.exchange import formats

LEARN = {
    "model.num_encoder_layers": 2,
    "model.d_model": 32,
    "model.d_ff": 64,
    "model.num_heads": 4,
    "training.num_steps": 250,
    "training.evaluate_every_steps": 250,
    "training.checkpoint_every_steps": 125,
    "optimizer.warmup_steps": 60,
    "data.num_train": 3000,
}
FLAGS = [f"--config.{key}={value}" for key, value in LEARN.items()]


@pytest.fixture(scope="module")
def copier(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """A workdir of a model that has learned a little: its sentences end."""
    workdir = tmp_path_factory.mktemp("run") / "copier"
    # On one device, where 250 updates take the least time.
    result = runs.vaswani("main", workdir, *FLAGS, devices=1)
    assert result.returncode == 0, result.stderr.decode()
    return workdir


@pytest.mark.parametrize("form", sorted(formats.PACKAGES))
def test_the_exported_model_translates_as_before(
    copier: pathlib.Path, tmp_path: pathlib.Path, form: str
) -> None:
    for name in formats.PACKAGES[form]:
        if importlib.util.find_spec(name) is None:
            pytest.skip(f"{name} is not installed: pip install 'vaswani-jax[export]'")
    result = runs.vaswani(
        "export",
        copier,
        *FLAGS,
        f"--format={form}",
        f"--output={tmp_path / form}",
        "--checkpoint=newest",
        devices=1,
    )
    assert result.returncode == 0, result.stderr.decode()
    shown = result.stdout.decode()
    [(equal, total)] = [
        map(int, counts)
        for line in shown.splitlines()
        if line.startswith(("exported, alpha 0: ", "exported, alpha 0, float32"))
        or line.startswith("exported, as configured")
        for counts in re.findall(r"(\d+) of (\d+) lines", line)
    ]
    # What reaches the longest length without an end has no definition in common.
    assert total == 10 and equal >= 9, shown
    if form == "ctranslate2":
        assert "exported, alpha 0, int8: " in shown
    second_export = runs.vaswani(
        "export", copier, *FLAGS, f"--format={form}", f"--output={tmp_path / form}"
    )
    assert "is not empty" in runs.error_of(second_export)


def test_lines_that_are_cut_are_left_out_and_told(
    trained: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    if importlib.util.find_spec("flatbuffers") is None:
        pytest.skip("flatbuffers is not installed: pip install 'vaswani-jax[export]'")
    lines = (trained / "data" / "valid.source.txt").read_text().splitlines()
    # A subword a word, and an end mark.
    longest = sorted(len(line.split()) for line in lines)[5] + 1
    missing = sum(len(line.split()) + 1 > longest for line in lines)
    result = runs.vaswani(
        "export",
        trained,
        f"--config.search.max_source_tokens={longest}",
        *("--format=stablehlo", f"--output={tmp_path / 'out'}"),
    )
    assert result.returncode == 0, result.stderr.decode()
    assert missing and f"{missing} of 10 lines have over" in result.stderr.decode()
    assert f"of {10 - missing} lines" in result.stdout.decode()


def test_a_quantization_of_another_format_is_refused(trained: pathlib.Path) -> None:
    if importlib.util.find_spec("flatbuffers") is None:
        pytest.skip("flatbuffers is not installed: pip install 'vaswani-jax[export]'")
    flags = ["--format=stablehlo", "--output=/nowhere/x", "--quantization=int8"]
    error = runs.error_of(runs.vaswani("export", trained, *flags))
    assert "--quantization is of --format=ctranslate2" in error


def test_the_format_is_required(trained: pathlib.Path) -> None:
    error = runs.error_of(runs.vaswani("export", trained, "--output=/nowhere/x"))
    assert error == "error: --format is missing"
