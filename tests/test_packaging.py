"""Check what is installed: every folder, on every system, without the extras."""

import json
import os
import pathlib
import shutil
import subprocess
import tomllib

import pytest

import vaswani_jax
from tests import interpreter

ROOT = pathlib.Path(__file__).parents[1]
PACKAGE = pathlib.Path(vaswani_jax.__file__).parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
MODULES = sorted(
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    for path in PACKAGE.rglob("*.py")
)
# What the extras install, by the name that is imported.
EXTRAS = "babel matplotlib torch transformers ctranslate2 nltk py3langid"
# Imports every module; names of libraries come first, then what is missing.
PROGRAM = """
import importlib, json, signal, sys
from absl import flags

libraries, missing, modules = json.loads(sys.argv[1])
for name in libraries:
    importlib.import_module(name)
for name in missing:
    sys.modules[name] = None
if "fcntl" in missing:
    del signal.SIGHUP, signal.SIGPIPE  # Windows has neither.
for name in modules:
    others = set(flags.FLAGS)
    importlib.import_module(name)
    # Each program has flags of its own.
    for flag in set(flags.FLAGS) - others:
        delattr(flags.FLAGS, flag)
"""


def test_every_folder_is_installed() -> None:
    folders = {module.rpartition(".")[0] for module in MODULES} - {""}
    installed = {*folders, "vaswani_jax.configs"}
    assert set(PROJECT["tool"]["setuptools"]["packages"]) == installed
    assert (PACKAGE / "py.typed").is_file()


@pytest.mark.parametrize(
    ("libraries", "missing"),
    [
        ([], EXTRAS.split()),
        # macOS has both; Windows has neither. The libraries know where they run.
        (
            ["jax", "orbax.checkpoint", "psutil", "sacrebleu", "tensorflow_datasets"],
            ["fcntl", "resource"],
        ),
    ],
    ids=["without the extras", "without what Unix alone has"],
)
def test_every_module_can_be_imported(libraries: list[str], missing: list[str]) -> None:
    modules = [name for name in MODULES if not name.endswith("__main__")]
    arguments = json.dumps([libraries, missing, modules])
    interpreter.output_of(PROGRAM, arguments)


@pytest.mark.skipif(shutil.which("make") is None, reason="there is no make")
@pytest.mark.parametrize(
    ("words", "workdir"), [([], "runs/demo"), (["WORKDIR=a b"], "a b")]
)
def test_make_demo_takes_its_workdir_from_the_command_line_alone(
    words: list[str], workdir: str
) -> None:
    environment = {**os.environ, "WORKDIR": "/scratch", "LOCALE": "xx"}
    printed = subprocess.run(
        ["make", "--dry-run", "demo", *words],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    ).stdout
    assert f"--config.data.target_locale='de' --workdir='{workdir}'" in printed
