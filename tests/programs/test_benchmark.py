"""`vaswani_jax.benchmark` as a user runs it."""

import json
import math
import pathlib
import subprocess
import sys
from typing import Any

import pytest

import vaswani_jax
from tests.programs import command_lines, runs
from vaswani_jax.core import types
from vaswani_jax.model import transformer

CONFIG = f"--config={runs.ROOT / 'configs' / 'copy_task.py'}"
SMALL = [
    "--config.model.num_layers=1",
    "--config.model.d_model=16",
    "--config.model.d_ff=24",
    "--config.model.num_heads=2",
    "--config.model.d_k=4",
    "--config.model.d_v=6",
]


def benchmark(*arguments: str) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "vaswani_jax.benchmark"]
    return runs.run(*command, CONFIG, *SMALL, *arguments, devices=None)


@pytest.fixture(scope="module")
def figures() -> dict[str, Any]:
    """Figures of random work on four devices; each side has its vocabulary."""
    result = benchmark(
        "train",
        "--shape=6x5x7",
        "--vocab_size=50",
        "--steps=3",
        "--devices=4",
        "--json",
        "--config.data.vocabulary_sharing=separate",
        "--config.data.target_vocab_size=30",
    )
    assert result.returncode == 0, result.stderr
    return dict(json.loads(result.stdout))


def test_random_work_is_timed_on_the_devices_asked_for(figures: dict[str, Any]) -> None:
    assert figures["num_devices"] == 4 and figures["shapes"] == ["6x5x7"]
    # Four devices have two rows each.
    assert figures["padding_share"] == pytest.approx(2 / 8)
    assert 0 < figures["compile_seconds"] < figures["first_step_seconds"]
    seconds = figures["all_step_seconds"]
    assert len(seconds) == 3 and figures["step_seconds"] == sorted(seconds)[1]
    # 6 rows of 7 target tokens each, three times.
    rate = figures["target_tokens_per_second"]
    assert rate == pytest.approx(3 * 42 / sum(seconds))
    # Four bytes each of parameters, two moments and gradients, beside activations.
    assert 16 * figures["parameters"] < figures["step_memory_bytes"] < 10**9
    share = figures["flops_per_second"] / figures["peak_flops_per_second"]
    assert figures["model_flops_utilization"] == pytest.approx(share)


def test_the_training_batches_of_prepared_data_are_timed(
    tmp_path: pathlib.Path,
) -> None:
    # Of 128 rows each, so 200 pairs are two batches, and four are two epochs.
    small = [
        "--config.data.num_train=200",
        "--config.data.num_buckets=2",
        "--config.data.source_tokens_per_batch=2048",
        "--config.data.target_tokens_per_batch=2048",
    ]
    result = benchmark("train", f"--workdir={tmp_path}", "--steps=4", "--json", *small)
    assert result.returncode == 0, result.stderr
    figures = json.loads(result.stdout)
    assert figures["shapes"] == ["128x16x16"]
    tokens = (tmp_path / "data" / "train.target.uint16").stat().st_size // 2
    rate = figures["target_tokens_per_second"]
    assert rate * sum(figures["all_step_seconds"]) == pytest.approx(2 * (tokens + 200))
    shares = 2 * (tokens + 200) / (4 * 128 * 16)
    assert figures["padding_share"] == pytest.approx(1 - shares)


def test_a_vocabulary_size_leaves_the_other_side_as_it_is(
    figures: dict[str, Any],
) -> None:
    values = [flag.removeprefix("--config.").split("=") for flag in SMALL]
    small = vaswani_jax.load_config(
        str(runs.ROOT / "configs" / "copy_task.py"),
        {key: int(value) for key, value in values},
    )
    shapes = transformer.param_shapes(small.model, types.VocabSizes(50, 30))
    expected = sum(map(math.prod, shapes.values()))
    assert figures["parameters"] == expected


def test_searches_are_timed_by_batch_size() -> None:
    sizes = ["--source_tokens=6", "--output_tokens=9", "--vocab_size=50"]
    result = benchmark("decode", "--batches=3,1", *sizes, "--steps=3", "--json")
    assert result.returncode == 0, result.stderr
    figures = json.loads(result.stdout)
    assert [speed["batch"] for speed in figures] == [3, 1]
    for speed in figures:
        seconds = speed["all_batch_seconds"]
        assert len(seconds) == 3 and speed["batch_seconds"] == sorted(seconds)[1]
        rate = speed["output_tokens_per_second"]
        assert rate == pytest.approx(9 * speed["batch"] / speed["batch_seconds"])
        assert speed["first_batch_seconds"] > 0


def test_a_search_is_timed_without_the_fused_attention_of_its_model() -> None:
    """The fused kernel needs a GPU and an even length."""
    sizes = ["--source_tokens=5", "--output_tokens=3", "--vocab_size=50"]
    flags = ["--batches=1", *sizes, "--steps=1", "--json", *CUDNN.split()]
    result = benchmark("decode", *flags)
    assert result.returncode == 0, result.stderr
    [speed] = json.loads(result.stdout)
    assert (speed["source_tokens"], speed["dtype"]) == (5, "bfloat16")


LEARNED = "--config.model.positional_encoding=learned"
CUDNN = (
    "--config.model.attention=cudnn --config.model.dtype=bfloat16 "
    "--config.model.d_k=8 --config.model.d_v=8"
)
REFUSED = {
    "train": "--workdir and --shape are missing: give one of them",
    f"train --shape=2x8x1025 {LEARNED}": (
        "--shape=2x8x1025 is longer than config.model.max_positions"
    ),
    **{
        f"decode {flag} {LEARNED}": (
            f"{flag} is longer than config.model.max_positions (1024)"
        )
        for flag in ("--source_tokens=1025", "--output_tokens=1025")
    },
    "train --steps=0": "error: --steps must be a positive integer, got '0'",
    f"train --shape=2x4x4 {CUDNN}": (
        "config.model.attention=cudnn needs a GPU; JAX sees"
    ),
    "train --shape=999999999999x9x9": "Unable to allocate",
    "train --shape=3x4": "--shape must be ROWSxSOURCExTARGET, got '3x4'",
    "fly --shape=3x4x5": "--task must be one of train, decode, got 'fly'",
    "demo": "error: --task must be one of train, decode, got 'demo'; usage: ",
    "decode --batches=1,x": "--batches must be positive numbers, got 'x'",
    "decode --batches=": "--batches must be positive numbers, got ''",
    "train --batches=4 --shape=3x4x5": "--batches is a flag of decode,",
    "decode --shape=3x4x5": "--shape is a flag of train, not of decode",
    "train more --shape=3x4x5": "unexpected argument more",
}


@pytest.fixture(scope="module")
def refusals(
    tmp_path_factory: pytest.TempPathFactory,
) -> dict[str, subprocess.CompletedProcess[bytes]]:
    """Return the result of each refused command line; all run in one process."""
    directory = tmp_path_factory.mktemp("lines")
    lines = [([CONFIG, *SMALL, *line.split()], directory) for line in REFUSED]
    return dict(zip(REFUSED, command_lines.run("benchmark", lines), strict=True))


@pytest.mark.parametrize("line", REFUSED)
def test_wrong_flags_are_named(
    refusals: dict[str, subprocess.CompletedProcess[bytes]], line: str
) -> None:
    assert REFUSED[line] in messages_of(refusals[line])


def test_a_batch_that_needs_too_much_memory_is_refused() -> None:
    result = benchmark("train", "--shape=99999x99x99", "--vocab_size=400000")
    assert "bytes. A smaller batch needs less: " in messages_of(result)


def messages_of(result: subprocess.CompletedProcess[bytes]) -> str:
    """Return all that a command wrote that has failed without a traceback."""
    assert result.returncode != 0
    messages = (result.stderr + result.stdout).decode()
    assert "Traceback" not in messages
    return messages
