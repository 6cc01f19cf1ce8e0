"""Check what the programs say of wrong input: the value, the rule and the place."""

import pathlib
import shutil
import subprocess

import pytest

from tests.programs import command_lines
from tests.programs.runs import command, error_of, vaswani


@pytest.fixture
def text(tmp_path: pathlib.Path) -> list[str]:
    """Parallel text files, as flags that name them."""
    for split, count in (("train", 60), ("valid", 5)):
        lines = [f"{'a b c d e'[: 1 + 2 * (i % 5)]} {i}" for i in range(count)]
        for side in ("source", "target"):
            (tmp_path / f"{split}.{side}").write_text("\n".join(lines) + "\n")
    return [
        "--config.data.source=text",
        f"--config.data.text_directory={tmp_path}",
        "--config.data.vocab_size=40",
        "--config.data.test_source=",
        "--config.data.test_target=",
    ]


REFUSED = {
    "--config.model.num_layer=2": ["unknown key", "num_layer", "num_layers"],
    "--config.modell.num_layers=2": ["unknown key", "modell"],
    "--config.model.d_model=15": ["d_model", "multiple of 2", "15"],
    "--config.data.vocab_size=99999": ["vocab_size", "99999"],
}


@pytest.fixture(scope="module")
def refusals(
    tmp_path_factory: pytest.TempPathFactory,
) -> dict[str, subprocess.CompletedProcess[bytes]]:
    """Return the result of each refused command line; all run in one process."""
    lines = []
    for flag in REFUSED:
        directory = tmp_path_factory.mktemp("line")
        _, _, _, *flags = command("main", directory / "run")
        lines.append(([*flags, flag], directory))
    results = command_lines.run("train", lines, devices=8)
    return dict(zip(REFUSED, results, strict=True))


@pytest.mark.parametrize("flag", REFUSED)
def test_wrong_setting_is_told_before_work_starts(
    refusals: dict[str, subprocess.CompletedProcess[bytes]], flag: str
) -> None:
    error = error_of(refusals[flag])
    assert all(word in error for word in REFUSED[flag]), error


def test_missing_file_is_named(tmp_path: pathlib.Path, text: list[str]) -> None:
    (tmp_path / "train.target").unlink()
    error = error_of(vaswani("main", tmp_path / "run", *text))
    assert "train_target" in error and str(tmp_path / "train.target") in error


def test_unequal_sides_are_told_with_both_counts(
    tmp_path: pathlib.Path, text: list[str]
) -> None:
    with (tmp_path / "train.target").open("a") as stream:
        stream.write("one\nmore\n")
    error = error_of(vaswani("main", tmp_path / "run", *text))
    assert "60" in error and "62" in error


def test_invalid_utf8_is_told_with_file_and_line(
    tmp_path: pathlib.Path, text: list[str]
) -> None:
    (tmp_path / "valid.source").write_bytes(b"a\nb\n\xff\nd\ne\n")
    error = error_of(vaswani("prepare_data", tmp_path / "run", *text))
    assert "valid.source, line 3" in error


def test_changed_text_is_refused_and_rebuilt_by_flag(
    tmp_path: pathlib.Path, text: list[str]
) -> None:
    assert vaswani("prepare_data", tmp_path / "run", *text).returncode == 0
    (tmp_path / "train.target").write_text("a b c\n" * 60)
    error = error_of(vaswani("prepare_data", tmp_path / "run", *text))
    assert "'train' has changed" in error and "--rebuild_data" in error
    rebuilt = vaswani("prepare_data", tmp_path / "run", *text, "--rebuild_data")
    assert rebuilt.returncode == 0, rebuilt.stderr.decode()


def test_damaged_checkpoint_is_named(
    trained: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    workdir = tmp_path / "copy"
    shutil.copytree(trained, workdir)
    for path in (workdir / "checkpoints" / "8").rglob("d/*"):
        path.write_bytes(path.read_bytes()[:-7])
    decoded = vaswani("decode", workdir, "--checkpoint=newest", stdin=b"a\n")
    assert "checkpoints/8 is damaged" in error_of(decoded)
    assert decoded.stdout == b""
    resumed = vaswani("main", workdir, "--config.training.num_steps=12")
    assert resumed.returncode == 0, resumed.stderr.decode()
    messages = resumed.stderr.decode()
    assert "checkpoints/8 is damaged" in messages and "resumed at step 4" in messages


def test_workdir_of_another_vocabulary_is_refused(
    trained: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    workdir = tmp_path / "copy"
    shutil.copytree(trained, workdir)
    flags = ["--config.data.vocab_size=45"]
    refused = error_of(vaswani("main", workdir, *flags))
    assert "vocab_size is 45, was 57" in refused and "--rebuild_data" not in refused
    assert refused.endswith("or name another --workdir")
    rebuilt = vaswani("main", workdir, *flags, "--rebuild_data")
    assert "The run has checkpoints that need this data" in error_of(rebuilt)
    assert "vocab_size is 45" in error_of(vaswani("decode", workdir, *flags))
    # What was there is there.
    decoded = vaswani("decode", workdir, stdin=b"a\n")
    assert decoded.returncode == 0, decoded.stderr.decode()
    # Prepared data of another vocabulary, elsewhere.
    other_data = tmp_path / "other"
    flags += [f"--config.data.directory={other_data}"]
    assert vaswani("prepare_data", tmp_path / "new", *flags).returncode == 0
    for program in ("decode", "evaluate"):
        refused = vaswani(program, workdir, *flags, stdin=b"a\n")
        assert "trained with the vocabulary" in error_of(refused)
    assert "vocab_size is 45, was 57" in error_of(vaswani("main", workdir, *flags))


def test_other_settings_than_the_datas_are_refused_by_every_program(
    trained: pathlib.Path,
) -> None:
    for program in ("decode", "evaluate"):
        flag = "--config.data.max_length=19"
        error = error_of(vaswani(program, trained, flag, stdin=b"a\n"))
        assert "config.data.max_length is 19, was 20" in error


def test_decode_without_a_run_says_so(tmp_path: pathlib.Path) -> None:
    assert "no prepared data" in error_of(vaswani("decode", tmp_path, stdin=b"a\n"))


def test_decode_with_a_missing_input_names_it(trained: pathlib.Path) -> None:
    error = error_of(vaswani("decode", trained, "--input=/nowhere/in.txt"))
    assert "--input" in error and "/nowhere/in.txt" in error


def test_missing_config_is_named(tmp_path: pathlib.Path) -> None:
    result = vaswani("main", tmp_path, config="configs/nothing.py")
    assert result.returncode != 0
    assert b"configs/nothing.py" in result.stderr
    assert b"Traceback" not in result.stderr
