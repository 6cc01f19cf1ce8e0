"""A package that is missing is named with the command that installs its extra."""

import pathlib
import re
import shlex
import sys
import tomllib
from collections.abc import Callable

import pytest
from packaging import requirements

import vaswani_jax
from tests import settings
from vaswani_jax.core import extras, training_config
from vaswani_jax.data import language_identification
from vaswani_jax.data.cldr import pairs
from vaswani_jax.exchange import formats, marian_weights
from vaswani_jax.inference import plain_text
from vaswani_jax.plots import canvas
from vaswani_jax.training import loggers

PACKAGE = pathlib.Path(vaswani_jax.__file__).parent
PROJECT = tomllib.loads((PACKAGE.parent / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]


def generate_pairs(_: pathlib.Path) -> None:
    pairs.cldr_pairs(settings.small_settings().data, seed=1)


def read_weights(directory: pathlib.Path) -> None:
    (directory / "pytorch_model.bin").touch()
    marian_weights.read_tensors(directory, is_shared=True)


def require_logger(name: str) -> Callable[[pathlib.Path], object]:
    small = settings.small_settings(**{"training.loggers": name})
    return lambda _: loggers.require(small)


# A package that is missing, its extra, and what needs it.
NEEDS: list[tuple[str, str, Callable[[pathlib.Path], object]]] = [
    ("babel", "demo", generate_pairs),
    ("babel", "demo", lambda _: pairs.cldr_version()),
    ("matplotlib", "plot", lambda _: canvas.require()),
    ("py3langid", "langid", lambda _: language_identification.require()),
    ("nltk", "parsing", lambda _: plain_text.require_nltk()),
    ("torch", "export", read_weights),
    *((name, name, require_logger(name)) for name in training_config.LOGGERS),
    *(
        (package, "export", lambda _, form=form: formats.require(form))
        for form, packages in formats.PACKAGES.items()
        for package in packages
    ),
]


@pytest.mark.parametrize(("package", "extra", "call"), NEEDS)
def test_a_missing_package_is_named_with_the_command_that_installs_it(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: pathlib.Path,
    package: str,
    extra: str,
    call: Callable[[pathlib.Path], object],
) -> None:
    monkeypatch.setitem(sys.modules, package, None)  # as if it were not installed
    sentence = rf"needs? .*\b{package}\b.*: pip install 'vaswani-jax\[{extra}\]'$"
    with pytest.raises(ImportError, match=sentence):
        call(tmp_path)
    assert package in {requirements.Requirement(line).name for line in EXTRAS[extra]}


def test_the_command_installs_an_extra_of_this_project() -> None:
    for extra in EXTRAS:
        pip, install, name = shlex.split(extras.how_to_install(extra))
        assert (pip, install) == ("pip", "install")
        requirement = requirements.Requirement(name)
        assert re.sub("[-_.]+", "-", requirement.name) == PROJECT["name"]
        assert requirement.extras == {extra}


def test_every_extra_that_the_package_names_exists() -> None:
    calls = re.compile(r"(?:how_to_install\(|require\([^)]*extra=)[\"'](\w+)[\"']")
    texts = [path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py")]
    names = {name for text in texts for name in calls.findall(text)}
    assert names and names <= set(EXTRAS)
