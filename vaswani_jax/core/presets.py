"""Find and load configuration files: the presets of `configs/`, or a user's own."""

import contextlib
import importlib.util
import inspect
import pathlib
import sys
import types
from collections.abc import Iterator

import ml_collections

from vaswani_jax.core import paths, seeds, tensor_file
from vaswani_jax.core.suggestions import suggest

# Reads the settings of a run from its workdir, so it is no preset by itself.
RECORD = "of_run"


def directory() -> pathlib.Path:
    """Return where the presets lie: in the installed package, or beside it in a clone.

    Raises:
        ImportError: The installation has no presets.
    """
    package = pathlib.Path(__file__).parents[1]
    for candidate in (package / "configs", package.parent / "configs"):
        if (candidate / f"{RECORD}.py").is_file():
            return candidate
    raise ImportError(f"{package} has no presets: install vaswani-jax again")


def names() -> list[str]:
    """Return the presets' names, such as "demo" for `configs/demo.py`."""
    return sorted({path.stem for path in directory().glob("*.py")} - {RECORD})


def find(name: str) -> tuple[pathlib.Path, str]:
    """Return the file and the variant that a name stands for.

    Args:
        name: PRESET, FILE.py, a workdir or FILE.safetensors; a colon and a variant may
            follow the first two.

    Raises:
        ValueError: There is no such preset, file or run.
    """
    name = paths.expand_home(name)
    presets = directory()
    stem, _, variant = name.partition(":")
    if stem == RECORD or stem in names():
        return presets / f"{stem}.py", variant
    if is_run(name):
        return find_run(name)
    if stem.endswith(".py"):
        file = pathlib.Path(stem)
        if not file.is_file():
            raise ValueError(f"there is no file {file}{suggest(file.stem, names())}")
        return file, variant
    if pathlib.Path(name).is_dir():
        seeds.refuse_seeds_directory(pathlib.Path(name))
        raise ValueError(f"{name} holds no run: it has no config.json")
    raise ValueError(
        f"{name} is no preset, FILE.py or workdir{suggest(stem, names())} "
        f"(presets: {', '.join(names())})"
    )


def find_run(workdir: str) -> tuple[pathlib.Path, str]:
    """Return the file and the variant for the settings that `is_run` speaks of."""
    return directory() / f"{RECORD}.py", workdir


def is_run(name: str) -> bool:
    """Return True for a name that stands for recorded settings.

    That is a workdir with its record, a model in one file, there or not, and any URL.
    """
    return (
        "://" in name
        or tensor_file.is_tensor_file(name)
        or pathlib.Path(name, "config.json").is_file()
    )


def load(file: pathlib.Path, variant: str = "") -> ml_collections.ConfigDict:
    """Return the configuration that a file describes.

    Args:
        file: A Python file with a function `get_config`. It may import presets, and
            the files beside it, as `configs.NAME`.
        variant: The argument of `get_config`, if it takes one.

    Raises:
        ValueError: `get_config` takes no variant although there is one, or it returns
            no `ConfigDict`.
        Exception: Whatever the file raises.
    """
    with _presets_as_configs(file.parent):
        get_config = _execute(file).get_config
        if variant and not inspect.signature(get_config).parameters:
            raise ValueError(f"{file.name} has no variants: leave out :{variant}")
        values = get_config(variant) if variant else get_config()
    if not isinstance(values, ml_collections.ConfigDict):
        raise ValueError(
            f"get_config of {file.name} must return an ml_collections.ConfigDict, got "
            f"{type(values).__name__}"
        )
    return values


def load_module(name: str) -> types.ModuleType:
    """Return the module of a preset, for what it has beside `get_config`."""
    with _presets_as_configs(directory()):
        return _execute(directory() / f"{name}.py")


def _execute(file: pathlib.Path) -> types.ModuleType:
    spec = importlib.util.spec_from_file_location(f"configs.{file.stem}", file)
    assert spec is not None and spec.loader is not None, file
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@contextlib.contextmanager
def _presets_as_configs(folder: pathlib.Path) -> Iterator[None]:
    """Make presets and the files in a directory importable as `configs.NAME`.

    The name `configs` belongs to the user: what it means elsewhere is restored.
    """
    user_modules = {
        name: module
        for name, module in sys.modules.items()
        if name.partition(".")[0] == "configs"
    }
    for name in user_modules:
        del sys.modules[name]
    package = types.ModuleType("configs")
    package.__path__ = [str(folder), str(directory())]
    sys.modules["configs"] = package
    try:
        yield
    finally:
        for name in [n for n in sys.modules if n.partition(".")[0] == "configs"]:
            del sys.modules[name]
        sys.modules.update(user_modules)
