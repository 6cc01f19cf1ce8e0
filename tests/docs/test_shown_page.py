"""The page of a run that the site links to is small, and is made when it is built."""

import importlib.util
import json
import pathlib
import types

import pytest

pytest.importorskip("sphinx", reason="sphinx is of the extra docs")
DOCS = pathlib.Path(__file__).parents[2] / "docs"
MAX_BYTES = 450_000


def load() -> types.ModuleType:
    path = DOCS / "_extensions" / "shown_page.py"
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_small_and_names_its_command() -> None:
    shown_page = load()
    assert len(shown_page.render().encode()) <= MAX_BYTES
    values = json.loads(shown_page.VALUES.read_text(encoding="utf-8"))
    assert values["command"].startswith("vaswani page runs/")
    assert values["heads"]


def test_a_built_site_has_the_page_and_a_failed_build_none(
    tmp_path: pathlib.Path,
) -> None:
    shown_page, app = load(), types.SimpleNamespace(outdir=tmp_path)
    (tmp_path / "_static").mkdir()
    shown_page.write(app, ValueError())
    assert not (tmp_path / shown_page.PAGE).exists()
    shown_page.write(app, None)
    text = (tmp_path / shown_page.PAGE).read_text(encoding="utf-8")
    assert text.startswith("<!doctype html>") and "The brown dog" in text
