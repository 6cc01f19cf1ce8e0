"""Machines that share a store, each with its own local copies."""

import pathlib
from typing import Any

import fsspec
import pytest

from vaswani_jax.core import files, remote


class Machine:
    """A machine has its own local copies."""

    def __init__(self, mirrors: pathlib.Path, patch: pytest.MonkeyPatch) -> None:
        self._mirrors, self._patch = mirrors, patch

    def _arrive(self) -> None:
        self._patch.setenv("VASWANI_JAX_MIRRORS", str(self._mirrors))

    def open(self, url: str) -> files.Directory:
        self._arrive()
        return remote.open_directory(url)

    def pull(self, url: str, **options: Any) -> pathlib.Path:
        self._arrive()
        return remote.open_directory(url).pull(**options)

    def push(self, url: str, *, folder: str = "") -> None:
        self.open(url).push(folder=folder)


def write(directory: pathlib.Path, texts: dict[str, str]) -> None:
    for name, text in texts.items():
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_text(text)


def content(directory: pathlib.Path) -> dict[str, str]:
    paths = [path for path in directory.rglob("*") if path.is_file()]
    return {str(path.relative_to(directory)): path.read_text() for path in paths}


def stored(url: str) -> dict[str, str]:
    store, root = fsspec.core.url_to_fs(url)
    return {
        path[len(root) + 1 :]: store.cat_file(path).decode()
        for path in store.find(root)
    }


RUN = {
    "starts.jsonl": "first\n",
    "config.json": "{}",
    "metrics.jsonl": "1\n2\n",
    "checkpoints/2/params/a": "two",
    "checkpoints/2/files.json": "two's seal",
    "data/manifest.json": "m",
    "data/train.source": "tokens",
}
