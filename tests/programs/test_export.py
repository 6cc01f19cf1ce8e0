"""export as a user runs it: other engines translate what ours does."""

import importlib.util
import json
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

from tests import settings, workers
from tests.programs import command_lines, runs
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
    "search.max_tokens": 0,  # the searches that are compared have no such limit
}
FLAGS = [f"--config.{key}={value}" for key, value in LEARN.items()]


@pytest.fixture(scope="session")
def copier(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """A workdir of a model that has learned a little: its sentences end."""

    def train(workdir: pathlib.Path) -> None:
        # On one device, where 250 updates take the least time.
        result = runs.vaswani("main", workdir, *FLAGS, devices=1)
        assert result.returncode == 0, result.stderr.decode()

    return workers.copy_once(tmp_path_factory, "run/copier", train)


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
    if form == "stablehlo":  # The rule knows no format.
        second_export = runs.vaswani(
            "export", copier, *FLAGS, f"--format={form}", f"--output={tmp_path / form}"
        )
        assert "is not empty" in runs.error_of(second_export)


def test_lines_that_are_cut_are_left_out_and_told(
    trained: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    lines = (trained / "data" / "valid.source.txt").read_text().splitlines()
    # A subword a word, and an end mark.
    longest = sorted(len(line.split()) for line in lines)[5] + 1
    missing = sum(len(line.split()) + 1 > longest for line in lines)
    result = runs.vaswani(
        "export",
        trained,
        f"--config.search.max_source_tokens={longest}",
        *("--format=bundle", f"--output={tmp_path}/copy.safetensors"),
    )
    assert result.returncode == 0, result.stderr.decode()
    assert missing and f"{missing} of 10 lines have over" in result.stderr.decode()
    assert f"of {10 - missing} lines" in result.stdout.decode()


@pytest.fixture(scope="module")
def file(
    trained: pathlib.Path, tmp_path_factory: pytest.TempPathFactory
) -> pathlib.Path:
    """The model of the short run in one file, in bfloat16."""
    path = tmp_path_factory.mktemp("files") / "copy.safetensors"
    flags = ["--format=bundle", f"--output={path}", "--dtype=bfloat16"]
    result = runs.vaswani("export", trained, *flags)
    assert result.returncode == 0, result.stderr.decode()
    size = f"{path.stat().st_size:,} bytes"
    assert f"written: {path}, {size}" in result.stderr.decode()
    assert " of 10 lines (" in result.stdout.decode()
    error = runs.error_of(runs.vaswani("export", trained, *flags))
    assert error == f"error: --output={path} exists: name another file"
    flags[1] = f"--output={tmp_path_factory.getbasetemp()}/none/copy.safetensors"
    error = runs.error_of(runs.vaswani("export", trained, *flags))
    assert error.startswith("error: --output: there is no directory ")
    return path


def run_on(
    file: pathlib.Path, command: str, *flags: str, stdin: bytes = b""
) -> subprocess.CompletedProcess[bytes]:
    """Run a command on a file, whose settings it takes."""
    words = [sys.executable, "-m", "vaswani_jax", command, str(file), *flags]
    return runs.run(*words, stdin=stdin)


def test_a_file_takes_the_place_of_its_run(
    trained: pathlib.Path, file: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    result = run_on(file, "translate", "--config.search.beam_size=3", stdin=b"a b\nc\n")
    assert result.returncode == 0, result.stderr.decode()
    assert result.stdout.count(b"\n") == 2
    assert b"checkpoint averaged: step 8 (the mean of [4, 8])" in result.stderr
    again = tmp_path / "again.safetensors"
    result = run_on(file, "export", "--format=bundle", f"--output={again}")
    assert result.returncode == 0, result.stderr.decode()
    assert (
        f"note: without the text of {file}, nothing is compared"
        in result.stderr.decode()
    )
    error = runs.error_of(run_on(file, "evaluate"))
    assert error == (
        f"error: {file} is a model in one file, without text: name the prepared data "
        "of its run, --config.data.directory=RUN/data"
    )
    flags = ["--split=valid", f"--config.data.directory={trained / 'data'}"]
    result = run_on(file, "evaluate", *flags)
    assert result.returncode == 0, result.stderr.decode()
    assert "valid: 10 lines in, 10 lines out" in result.stdout.decode()
    text = tmp_path / "text"
    text.write_text("a b\nc\n")
    result = run_on(file, "evaluate", f"--split={text},{text}")
    assert result.returncode == 0, result.stderr.decode()
    assert "text: 2 lines in, 2 lines out" in result.stdout.decode()
    assert sorted(file.parent.iterdir()) == [file]


def test_a_file_is_exported_whatever_the_directory_that_it_records_holds(
    trained: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    data = shutil.copytree(trained / "data", tmp_path / "data")
    bundle, flag = tmp_path / "a.safetensors", f"--config.data.directory={data}"
    form, text = "--format=bundle", tmp_path / "text"
    text.write_text("a b\nc\n")
    result = runs.vaswani("export", trained, flag, form, f"--output={bundle}")
    assert result.returncode == 0, result.stderr.decode()

    def check(name: str, reason: str, note: str) -> None:
        output = f"--output={tmp_path / name}.safetensors"
        error = runs.error_of(run_on(bundle, "export", flag, form, output))
        assert reason in error
        result = run_on(bundle, "export", form, output)
        messages = result.stderr.decode()
        assert result.returncode == 0, messages
        assert f"note: without the text of {bundle}, nothing is compared" in messages
        assert note in messages
        page = (f"--heads={text},{text}", f"--output={tmp_path / name}.json")
        result = run_on(bundle, "page", "--input=-", *page, stdin=b"a b\n")
        messages = result.stderr.decode()
        assert result.returncode == 0, messages
        assert note in messages and "without training text" in messages

    path = data / "manifest.json"
    manifest = json.loads(path.read_text())
    changed_settings = {**manifest["settings"], "max_length": 99}
    path.write_text(json.dumps({**manifest, "settings": changed_settings}))
    reason = "config.data.max_length is 20, was 99"
    check("settings", reason, reason)
    small = settings.small_settings(**{"data.vocab_size": 20})
    vocabulary = settings.learn_vocabulary(["a b c d e f g h"] * 20, small.data)
    vocabulary.save(data)
    path.write_text(json.dumps({**manifest, "vocabulary": vocabulary.fingerprint}))
    note = f"note: {data} has the vocabulary of another model"
    check("vocabulary", f"the data has {vocabulary.fingerprint}", note)


def test_a_page_and_a_figure_are_made_of_a_file(
    file: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    output = tmp_path / "page.json"
    result = run_on(file, "page", "--input=-", f"--output={output}", stdin=b"a b\n")
    assert result.returncode == 0, result.stderr.decode()
    shown = json.loads(output.read_text())
    assert shown["models"] == [{"name": "averaged", "step": 8}]
    error = runs.error_of(run_on(file, "page"))
    assert "without text: name a file of sentences with --input" in error
    if importlib.util.find_spec("matplotlib"):
        picture = tmp_path / "model.svg"
        result = run_on(file, "plot", "--figure=1", f"--output={picture}")
        assert result.returncode == 0, result.stderr.decode()


def test_a_file_that_is_missing_or_damaged_is_refused_in_one_line(
    file: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    other = tmp_path / "other.safetensors"
    assert f"there is no file {other}" in runs.error_of(run_on(other, "translate"))
    other.write_bytes(file.read_bytes()[:1000])
    assert "cut off" in runs.error_of(run_on(other, "translate"))
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    other.write_bytes(content)
    error = runs.error_of(run_on(other, "translate"))
    assert f"error: {other} is damaged: vocabulary/vocabulary.model has " in error


WITHOUT_FORMAT = "--output=/nowhere/x"
REFUSED = {
    # Flags of one format with others.
    "--format=bundle --output=/nowhere/x": "must be a file whose name ends",
    "--format=marian --output=/x --dtype=bfloat16": "--dtype needs --form",
    "--format=stablehlo --output=/nowhere/x --quantization=int8": (
        "needs --format=ctranslate2"
    ),
    # Wrong flags, whatever the format.
    "--format=stablehlo --output=gs://bucket/x": (
        "--output=gs://bucket/x must be a path on this"
    ),
    "--format=stablehlo --output=/dev/null": (
        "--output=/dev/null is a file: name a directory"
    ),
    "--format=stablehlo --output=/nowhere/x --checkpoint=best,newest": (
        "name one checkpoint"
    ),
    WITHOUT_FORMAT: "--format is missing",
}


@pytest.fixture(scope="module")
def refusals(
    trained: pathlib.Path, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, subprocess.CompletedProcess[bytes]]:
    """Return the result of each refused command line; all run in one process."""
    _, _, _, *flags = runs.command("export", trained)
    lines = [
        ([*flags, *line.split()], tmp_path_factory.mktemp("line")) for line in REFUSED
    ]
    results = command_lines.run("export", lines, devices=8)
    return dict(zip(REFUSED, results, strict=True))


@pytest.mark.parametrize("line", REFUSED)
def test_wrong_flags_are_refused(
    refusals: dict[str, subprocess.CompletedProcess[bytes]], line: str
) -> None:
    assert REFUSED[line] in runs.error_of(refusals[line])


def test_the_format_is_required(
    refusals: dict[str, subprocess.CompletedProcess[bytes]],
) -> None:
    error = runs.error_of(refusals[WITHOUT_FORMAT])
    assert error == "error: --format is missing"
