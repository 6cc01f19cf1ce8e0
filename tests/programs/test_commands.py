"""Programs by the commands of `vaswani`, as a user runs them."""

import json
import pathlib
import re
import subprocess
import sys

import pytest

from tests.programs import runs
from vaswani_jax.cli import commands
from vaswani_jax.core import config


def vaswani(*words: str) -> subprocess.CompletedProcess[bytes]:
    """Run `python -m vaswani_jax`, which is `vaswani` where it is installed."""
    return runs.run(sys.executable, "-m", "vaswani_jax", *words, devices=None)


def output_of(*words: str) -> str:
    """Return what a command that succeeds prints."""
    completed = vaswani(*words)
    assert completed.returncode == 0, completed.stderr.decode()
    return completed.stdout.decode()


def test_help_of_train_lists_every_setting_with_its_value() -> None:
    text = output_of("train", "table3:A1", "--help")
    assert "--init_from" in text
    for key, setting in config.SETTINGS.items():
        assert len(re.findall(rf"^  {re.escape(key)}=", text, re.MULTILINE)) == 1
        first_words = setting.meaning.split()[:5]
        assert re.search(r"\s+".join(map(re.escape, first_words)), text)
    assert "\n  model.d_k=512\n" in text  # of A1
    assert "\n  model.attention_bias=false\n" in text


@pytest.mark.parametrize("command", commands.COMMANDS)
def test_help_of_a_command_lists_its_flags(command: str) -> None:
    text = output_of(command, "--help")
    assert text.startswith(f"usage: vaswani {command} ")
    assert "  --[no]quiet\n" in text
    assert "app.py" not in text
    takes_processes = command in (
        *("train", "translate", "back-translate", "evaluate"),
    )
    assert ("  --coordinator\n" in text) == takes_processes
    assert ("  --process_id\n" in text) == takes_processes
    takes_config = "[--config.KEY=VALUE ...]" in text.partition("\n")[0]
    assert ("  --[no]print_config\n" in text) == takes_config


def test_a_run_whose_directory_has_the_name_of_a_preset_keeps_its_settings(
    trained: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    (tmp_path / "demo").symlink_to(trained)
    printed = [
        runs.run(
            *(sys.executable, "-m", "vaswani_jax", "translate", name),
            "--print_config",
            devices=None,
            cwd=tmp_path,
        ).stdout
        for name in ("demo", "./demo")
    ]
    assert printed[0] == printed[1]
    assert b"--config.data.source=copy\n" in printed[0]


def test_printed_settings_can_be_read_again(tmp_path: pathlib.Path) -> None:
    printed = output_of("train", "demo", "--config.seed=5", "--print_config")
    assert "--config.seed=5\n" in printed
    assert len(printed.splitlines()) == len(config.SETTINGS)
    (tmp_path / "flags").write_text(printed)
    flag = f"--flagfile={tmp_path / 'flags'}"
    assert output_of("train", "base_ende", flag, "--print_config") == printed


def test_a_run_is_named_by_its_directory(trained: pathlib.Path) -> None:
    result = vaswani("evaluate", str(trained), "--split=valid", "--quiet")
    assert result.returncode == 0, result.stderr.decode()
    assert b"valid: 10 lines in" in result.stdout
    # The model has learned too little to end its translations.
    [warning] = result.stderr.decode().splitlines()
    assert warning.startswith("warning: 10 lines got a translation without an end")
    record = json.loads((trained / "config.json").read_text())
    printed = output_of("translate", str(trained), "--print_config").splitlines()
    assert f"--config.model.d_model={record['model']['d_model']}" in printed
    changed = "--config.search.beam_size=3"
    assert changed in output_of("train", str(trained), changed, "--print_config")
