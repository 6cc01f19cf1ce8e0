"""Read the models that a command line names, and notice when their files change."""

import contextlib
import dataclasses
import pathlib
import re
from collections.abc import Iterable, Sequence

from vaswani_jax.checkpoints import select, store
from vaswani_jax.core import paths

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
# The files in the directory of a model; a run has its checkpoints in folders.
ENDINGS = ("json", "safetensors", "bin", "spm")
# A run that resumes writes all these again: the settings, usually as they were, and
# records that no model is loaded from.
SETTINGS, RECORDS = "config.json", ("evaluated.json", "loggers.json")


@dataclasses.dataclass(frozen=True)
class Origin:
    """The origin of a model.

    Attributes:
        name: The name that requests give.
        path: A run, also with @CHECKPOINT, a bundle or a MarianMT directory.
    """

    name: str
    path: str


def read_origin(argument: str) -> Origin:
    """Return the name and the path of NAME=PATH, or of PATH alone.

    >>> read_origin("runs/demo"), read_origin("fast=runs/demo@best")
    (Origin(name='demo', path='runs/demo'), Origin(name='fast', path='runs/demo@best'))

    Raises:
        ValueError: There is no path, or it begins with the home of no user.
    """
    name, equals, path = argument.partition("=")
    run, _ = select.split_name(argument)
    if not (equals and NAME.fullmatch(name)) or pathlib.Path(run).exists():
        name, path = "", argument
    path = paths.expand_home(path)
    if not path:
        raise ValueError(f"{argument!r} names no model: give RUN, FILE or NAME=PATH")
    if not name:
        last = re.split(r"[/\\]", select.split_name(path)[0].rstrip("/\\"))[-1]
        name = re.sub(r"[^A-Za-z0-9._-]+", "_", last.removesuffix(".safetensors"))
        name = name.lstrip("._-") or "model"
    return Origin(name, path)


def read_origins(arguments: Iterable[str]) -> list[Origin]:
    """Return the origins that a command line names.

    Raises:
        ValueError: Two have one name; or as `read_origin`.
    """
    origins: dict[str, Origin] = {}
    for origin in map(read_origin, arguments):
        if first := origins.get(origin.name):
            raise ValueError(
                f"two models have the name {origin.name}, {first.path} and "
                f"{origin.path}: name one with NAME=PATH"
            )
        origins[origin.name] = origin
    return list(origins.values())


def version(path: str) -> object:
    """Return a value that changes with the files of a model; None for a URL."""
    if "://" in path:
        return None
    name, checkpoint = select.split_name(path)
    root = pathlib.Path(name)
    if not root.is_dir():
        return _stamps([root])
    # A directory of MarianMT has files of all these kinds, a run its settings.
    files = [
        file
        for ending in ENDINGS
        for file in root.glob(f"*.{ending}")
        if file.name not in (SETTINGS, *RECORDS)
    ]
    settings = None
    with contextlib.suppress(OSError):
        settings = (root / SETTINGS).read_bytes()
    checkpoints = [
        directory
        for checkpoint_name in (checkpoint or "averaged").split(",")
        for directory in select.paths(root, checkpoint_name)
    ]
    seals = [directory / store.SEAL for directory in checkpoints]
    stamps = _stamps([*files, *checkpoints, *seals])
    return stamps, settings


def _stamps(files: Sequence[pathlib.Path]) -> tuple[tuple[str, int, int, int], ...]:
    stamps = []
    for file in files:
        with contextlib.suppress(OSError):
            status = file.stat()
            stamps.append(
                (str(file), status.st_mtime_ns, status.st_size, status.st_ino)
            )
    return tuple(sorted(stamps))
